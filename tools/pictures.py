"""Draws the pictures of docs/: `python tools/pictures.py` writes docs/pictures/*.svg.

A picture is a table of boxes on a grid, and of arrows between them. The tests compare the files
with the output of this module.
"""

from __future__ import annotations

import sys
import tomllib
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import svg_dark  # noqa: E402  # beside this file, which is run by its path

FOLDER = ROOT / "docs" / "pictures"

COLUMN, ROW = 170, 84
WIDTH, HEIGHT = 138, 44
MARGIN = 24
FONT = "font-family='Helvetica, Arial, sans-serif'"
# An outline separates letters from the lines that they cross.
HALO = "stroke='#ffffff' stroke-width='3' paint-order='stroke'"
# The kinds of boxes: fill, stroke and radius of the corners.
KINDS = {
    "tensor": ("#dbeafe", "#1d4ed8", 20),
    "leaf": ("#fef3c7", "#b45309", 20),
    "node": ("#dcfce7", "#15803d", 4),
    "sink": ("#ffedd5", "#c2410c", 4),
    "thing": ("#f3f4f6", "#4b5563", 4),
    "queue": ("#ede9fe", "#6d28d9", 4),
    "lost": ("#ffffff", "#9ca3af", 4),
}


@dataclass(frozen=True)
class Box:
    """`column` and `row` may be fractions; `text` may have a second line after a newline."""

    name: str
    column: float
    row: float
    text: str
    kind: str = "node"


@dataclass(frozen=True)
class Arrow:
    """From one box to another; `style` is "solid", "dashed" (a weak reference) or "grey"."""

    start: str
    end: str
    label: str = ""
    style: str = "solid"


@dataclass(frozen=True)
class Picture:
    title: str
    boxes: list[Box]
    arrows: list[Arrow]
    # Text without a box: column, row, text.
    notes: list[tuple[float, float, str]] = field(default_factory=list)


def _edge_point(box: Box, other: Box) -> tuple[float, float]:
    """The point where the line between the centres of two boxes leaves the first."""
    x, y = _middle(box)
    dx, dy = (a - b for a, b in zip(_middle(other), (x, y), strict=True))
    scale = min(
        (WIDTH / 2 + 3) / abs(dx) if dx else float("inf"),
        (HEIGHT / 2 + 3) / abs(dy) if dy else float("inf"),
    )
    return x + dx * scale, y + dy * scale


def _middle(box: Box) -> tuple[float, float]:
    return (
        MARGIN + box.column * COLUMN + WIDTH / 2,
        MARGIN + box.row * ROW + HEIGHT / 2 + 16,
    )


def _text(x: float, y: float, text: str, size: int, color: str, anchor: str = "middle") -> str:
    return (
        f"<text x='{x:.0f}' y='{y:.0f}' font-size='{size}' fill='{color}' "
        f"text-anchor='{anchor}' {FONT} {HALO}>{escape(text)}</text>"
    )


def _box(box: Box) -> list[str]:
    fill, stroke, radius = KINDS[box.kind]
    x, y = _middle(box)
    lines = box.text.split("\n")
    drawn = [
        f"<rect x='{x - WIDTH / 2:.0f}' y='{y - HEIGHT / 2:.0f}' width='{WIDTH}' "
        f"height='{HEIGHT}' rx='{radius}' fill='{fill}' stroke='{stroke}' stroke-width='1.4'/>"
    ]
    top = y + 4.5 - 7.5 * (len(lines) - 1)
    for number, line in enumerate(lines):
        size = 13 if number == 0 else 11
        drawn.append(_text(x, top + 15 * number, line, size, "#111827"))
    return drawn


def _arrow(arrow: Arrow, boxes: dict[str, Box]) -> list[str]:
    start, end = boxes[arrow.start], boxes[arrow.end]
    (x1, y1), (x2, y2) = _edge_point(start, end), _edge_point(end, start)
    color = "#9ca3af" if arrow.style == "grey" else "#374151"
    dashes = " stroke-dasharray='5 4'" if arrow.style == "dashed" else ""
    drawn = [
        f"<line x1='{x1:.0f}' y1='{y1:.0f}' x2='{x2:.0f}' y2='{y2:.0f}' stroke='{color}' "
        f"stroke-width='1.4'{dashes} marker-end='url(#tip)'/>"
    ]
    if arrow.label:
        level = abs(y1 - y2) < 1
        x, y = (x1 + x2) / 2, (y1 + y2) / 2
        drawn.append(
            _text(x, y - 6, arrow.label, 11, "#374151")
            if level
            else _text(x + 7, y + 4, arrow.label, 11, "#374151", "start")
        )
    return drawn


def render(picture: Picture) -> str:
    """The picture as an SVG document."""
    boxes = {box.name: box for box in picture.boxes}
    columns = max([box.column for box in picture.boxes])
    rows = max([*(box.row for box in picture.boxes), *(row for _, row, _ in picture.notes)])
    width = int(2 * MARGIN + columns * COLUMN + WIDTH)
    height = int(2 * MARGIN + rows * ROW + HEIGHT + 16)
    lines = [
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
        f"viewBox='0 0 {width} {height}' role='img' aria-label='{escape(picture.title)}'>",
        f"<title>{escape(picture.title)}</title>",
        svg_dark.style(),
        "<defs><marker id='tip' viewBox='0 0 10 10' refX='9' refY='5' markerWidth='7' "
        "markerHeight='7' orient='auto'><path d='M0 0L10 5L0 10z' fill='#374151'/></marker></defs>",
        f"<rect width='{width}' height='{height}' fill='#ffffff'/>",
        _text(MARGIN, 22, picture.title, 12, "#6b7280", "start"),
    ]
    for arrow in picture.arrows:
        lines += _arrow(arrow, boxes)
    for box in picture.boxes:
        lines += _box(box)
    for column, row, text in picture.notes:
        x, y = MARGIN + column * COLUMN, MARGIN + row * ROW + HEIGHT / 2 + 20
        lines.append(_text(x, y, text, 12, "#374151", "start"))
    return "\n".join([*lines, "</svg>"]) + "\n"


# The contents of each package or module in the layers of pyproject.toml.
PARTS = {
    "_C": "names of torch._C",
    "__main__": "python -m plugrad",
    "_generated": "written by codegen",
    "_first": "the order of imports",
    "_interpreters": "one interpreter only",
    "_intrinsics": "functions in C",
    "_library": "finds modules",
    "_notebooks": "HTML of objects",
    "_printed_name": "plugrad or torch",
    "_tensor": "the class Tensor",
    "_torch_names": "names of PyTorch's",
    "amp": "autocast, scaler",
    "array_api": "the standard",
    "autograd": "engine, backward",
    "cli": "the command plugrad",
    "codegen": "the generator",
    "config": "of this process",
    "device": "devices",
    "dispatch": "keys, operators",
    "dtype": "element types",
    "errors": "error types",
    "fft": "Fourier transforms",
    "func": "derivatives, batches",
    "functional": "of several operators",
    "graph": "nodes and edges",
    "levels": "calls in transforms",
    "library": "custom operators",
    "linalg": "linear algebra",
    "masked": "reductions with masks",
    "memory_format": "orders in memory",
    "ops": "operators",
    "overrides": "functions overridden",
    "plugins": "find, load, choose",
    "profiler": "what took the time",
    "random": "seeds, generators",
    "return_types": "named results",
    "signal": "windows",
    "tensor": "the tensor itself",
    "testing": "checks, the kit",
    "transforms": "vmap, capture",
    "types": "for annotations",
    "version": "of this build",
}


def layers() -> Picture:
    """The layers of the core, from the rule in pyproject.toml."""
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = rules["tool"]["importlinter"]["contracts"]
    rows = next(rule["layers"] for rule in contracts if rule["id"] == "layers")
    boxes = [
        Box(name, column * 0.9, number * 0.62, f"{name}\n{PARTS[name]}", "thing")
        for number, row in enumerate(rows)
        for column, name in enumerate(row.split(" : "))
    ]
    title = "The core's layers: a package uses only packages in rows below its own"
    return Picture(title, boxes, [])


PICTURES = {
    "layers": layers(),
    "keys": Picture(
        "a * b where a requires grad: one call, from the highest key of its set down",
        [
            Box("call", 0, 0, "a * b", "tensor"),
            Box("python", 0, 1.2, "PythonMode\nnot in the set", "lost"),
            Box("transforms", 1.15, 1.2, "Transforms\nnot in the set", "lost"),
            Box("autograd", 2.3, 1.2, "AutogradCPU"),
            Box("inplace", 3.45, 1.2, "ADInplaceOrView\nno kernel: passed", "lost"),
            Box("cpu", 4.6, 1.2, "CPU", "thing"),
            Box("node", 2.3, 2.4, "MulBackward0\nsaves a and b"),
            Box("array", 4.6, 2.4, "numpy.multiply\non raw arrays", "queue"),
        ],
        [
            Arrow("call", "autograd"),
            Arrow("autograd", "inplace", "", "grey"),
            Arrow("inplace", "cpu", "", "grey"),
            Arrow("autograd", "node", "records"),
            Arrow("cpu", "array", "runs"),
        ],
        [
            (1.55, 0.25, "the highest key of its set"),
            (3.35, 0.62, "redispatch, without Autograd"),
        ],
    ),
    "plugins": Picture(
        "Who brings what: distributions, the hooks of their plugins, and what becomes of them",
        [
            Box("foo", 0, 0, "plugrad-foo\na backend", "thing"),
            Box("special", 0, 1.5, "plugrad-special\noperators", "thing"),
            Box("nn", 0, 3, "plugrad-nn\nmodules", "thing"),
            Box("backends", 1.6, 0, "plugrad_backends", "queue"),
            Box("kernels", 1.6, 1, "plugrad_kernels", "queue"),
            Box("ops", 1.6, 2, "plugrad_ops", "queue"),
            Box("namespaces", 1.6, 3, "plugrad_namespaces", "queue"),
            Box("keys", 3.2, 0, "Foo, AutogradFoo\nkeys of device='foo'"),
            Box("table", 3.2, 1, "kernel tables\nof all backends"),
            Box("operators", 3.2, 2, "special::...\noperators, gradients"),
            Box("modules", 3.2, 3, "plugrad.nn\nplugrad.special"),
        ],
        [
            Arrow("foo", "backends"),
            Arrow("special", "kernels"),
            Arrow("special", "ops"),
            Arrow("special", "namespaces"),
            Arrow("nn", "namespaces"),
            Arrow("backends", "keys"),
            Arrow("kernels", "table"),
            Arrow("ops", "operators"),
            Arrow("namespaces", "modules"),
            Arrow("keys", "table", "its column"),
        ],
    ),
    "built": Picture(
        "loss = (x * w).sum(), built from left to right; backward follows the lower row",
        [
            Box("x", 0, 0, "x", "tensor"),
            Box("w", 0, 1, "w\nrequires_grad", "leaf"),
            Box("y", 1.5, 0.5, "y", "tensor"),
            Box("loss", 3, 0.5, "loss", "tensor"),
            Box("acc", 0, 2.2, "AccumulateGrad", "sink"),
            Box("mul", 1.5, 2.2, "MulBackward0\nsequence_nr 0"),
            Box("sum", 3, 2.2, "SumBackward0\nsequence_nr 1"),
        ],
        [
            Arrow("x", "y", "", "grey"),
            Arrow("w", "y", "mul", "grey"),
            Arrow("y", "loss", "sum", "grey"),
            Arrow("y", "mul", "grad_fn"),
            Arrow("loss", "sum", "grad_fn"),
            Arrow("sum", "mul", "edge, input 0"),
            Arrow("mul", "acc", "edge, input 0"),
            Arrow("acc", "w", "variable"),
        ],
    ),
    "holders": Picture(
        "Who keeps whom alive; dashed: a weak reference",
        [
            Box("y", 0, 0, "y = x.exp()", "tensor"),
            Box("meta", 1.3, 0, "AutogradMeta\ngrad_fn, output_nr", "thing"),
            Box("exp", 2.6, 0, "ExpBackward0"),
            Box("saved", 3.9, 0, "SavedVariable\nresult, version 0", "thing"),
            Box("bare", 3.9, 0.95, "y without history", "tensor"),
            Box("storage", 1.3, 0.95, "Storage\nversion 0", "thing"),
            Box("acc", 2.6, 2.4, "AccumulateGrad", "sink"),
            Box("xmeta", 1.3, 2.4, "AutogradMeta\naccumulator", "thing"),
            Box("x", 0, 2.4, "x, a leaf", "leaf"),
        ],
        [
            Arrow("y", "meta"),
            Arrow("meta", "exp"),
            Arrow("exp", "saved"),
            Arrow("saved", "bare"),
            Arrow("y", "storage"),
            Arrow("bare", "storage"),
            Arrow("exp", "acc", "next_edges"),
            Arrow("x", "xmeta"),
            Arrow("xmeta", "acc", "", "dashed"),
        ],
        [(2.7, 3.05, "AccumulateGrad.variable is x: the graph keeps its leaves")],
    ),
    "views": Picture(
        "v = base[0]; v.mul_(w): the write into a view is one operator on the base",
        [
            Box("base", 0, 0, "base\nafter the write", "tensor"),
            Box("v", 0, 1.4, "v\nafter the write", "tensor"),
            Box("slices", 1.5, 0, "CopySlices"),
            Box("select", 1.5, 1.4, "AsStridedBackward0\nmade when asked for"),
            Box("inner", 3, 1, "MulBackward0\ninside the slice"),
            Box("former", 3, 0, "grad_fn of base\nbefore the write"),
            Box("acc", 3, 2, "AccumulateGrad\nof w", "sink"),
        ],
        [
            Arrow("base", "slices", "grad_fn"),
            Arrow("v", "select", "grad_fn"),
            Arrow("select", "slices", "edge"),
            Arrow("slices", "former", "edge 0"),
            Arrow("slices", "inner", "owns", "grey"),
            Arrow("slices", "acc", "edge 1"),
        ],
    ),
    "cell": Picture(
        "x = zeros(2, 3); v = x[1]; w = v[1:]: one array for all, and a place for each",
        [
            Box("x", 0, 0, "x\nits own array", "tensor"),
            Box("v", 0, 1, "v\nits own array", "tensor"),
            Box("w", 0, 2, "w\nits own array", "tensor"),
            Box("px", 1.5, 0, "Alias\nno steps", "thing"),
            Box("pv", 1.5, 1, "Alias\nselect(0, 1)", "thing"),
            Box("pw", 1.5, 2, "Alias\nselect, slice", "thing"),
            Box("cell", 3, 1, "Cell\nthe array of x", "node"),
        ],
        [
            Arrow("px", "x", "", "dashed"),
            Arrow("pv", "v", "", "dashed"),
            Arrow("pw", "w", "", "dashed"),
            Arrow("px", "cell"),
            Arrow("pv", "cell"),
            Arrow("pw", "cell"),
        ],
        [(2.2, 2.75, "w.add_(1): slice_scatter, select_scatter, then x and v anew")],
    ),
    "dependencies": Picture(
        "b = a * 2; c = a.exp(); d = b + c: a node runs when all edges into it have delivered",
        [
            Box("add", 0, 1, "AddBackward0\nwaits for 0"),
            Box("mul", 1.3, 0.3, "MulBackward0\nwaits for 1"),
            Box("exp", 1.3, 1.7, "ExpBackward0\nwaits for 1"),
            Box("a", 2.6, 1, "a's node\nwaits for 2"),
            Box("acc", 3.9, 1, "AccumulateGrad\nwaits for 1", "sink"),
        ],
        [
            Arrow("add", "mul"),
            Arrow("add", "exp"),
            Arrow("mul", "a"),
            Arrow("exp", "a"),
            Arrow("a", "acc"),
        ],
        [(1.9, 2.45, "the InputBuffer of a's node adds the two gradients")],
    ),
    "threads": Picture(
        "A pass over the host and two devices: who runs what, and through which queue",
        [
            Box("caller", 0, 0, "caller's thread\nexecute()", "thing"),
            Box("home", 1.4, 0, "home queue\nlocal to the pass", "queue"),
            Box("root", 2.8, 0, "nodes of the host"),
            Box("t0", 0, 1.2, "thread foo:0", "thing"),
            Box("q0", 1.4, 1.2, "DeviceQueue\nof foo:0", "queue"),
            Box("n0", 2.8, 1.2, "nodes of foo:0"),
            Box("t1", 0, 2.4, "thread foo:1", "thing"),
            Box("q1", 1.4, 2.4, "DeviceQueue\nof foo:1", "queue"),
            Box("n1", 2.8, 2.4, "nodes of foo:1"),
        ],
        [
            Arrow("home", "caller", "get"),
            Arrow("q0", "t0", "pop"),
            Arrow("q1", "t1", "pop"),
            Arrow("root", "home", "push"),
            Arrow("root", "q0", "", "grey"),
            Arrow("n0", "q0", "push"),
            Arrow("n0", "home", "", "grey"),
            Arrow("n0", "q1", "", "grey"),
            Arrow("n1", "q1", "push"),
        ],
    ),
    "reentrant": Picture(
        "Passes inside passes: 60 on a stack, then a thread of the pool goes on",
        [
            Box("p0", 0, 0, "pass, depth 0", "thing"),
            Box("p1", 1.5, 0, "pass, depth 1", "thing"),
            Box("dots", 2.9, 0, "...", "lost"),
            Box("p60", 4.1, 0, "pass, depth 60", "thing"),
            Box("pool", 4.1, 1.2, "thread of the pool\ndrives the pass", "queue"),
            Box("wait", 1.5, 1.2, "the thread below\nwaits meanwhile", "lost"),
        ],
        [
            Arrow("p0", "p1", "a node calls"),
            Arrow("p1", "dots", "backward()"),
            Arrow("dots", "p60"),
            Arrow("p60", "pool", "hand over"),
            Arrow("pool", "wait", "done", "dashed"),
        ],
    ),
    "captured": Picture(
        "relu(x @ weight) + 1 as a graph of operators",
        [
            Box("x0", 0, 0, "x0\nfloat32[1, 2]", "tensor"),
            Box("c0", 0, 1.2, "c0\nfloat32[2, 2]", "leaf"),
            Box("mm", 1.4, 0.6, "mm\nfloat32[1, 2]"),
            Box("relu", 2.6, 0.6, "relu\nfloat32[1, 2]"),
            Box("add", 3.8, 0.6, "add.Scalar\nfloat32[1, 2]"),
            Box("result", 5, 0.6, "result", "lost"),
        ],
        [
            Arrow("x0", "mm"),
            Arrow("c0", "mm"),
            Arrow("mm", "relu"),
            Arrow("relu", "add"),
            Arrow("add", "result"),
        ],
    ),
}


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, picture in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(render(picture), encoding="utf-8")
        print(f"docs/pictures/{name}.svg")


if __name__ == "__main__":
    main()
