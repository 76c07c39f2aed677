"""`python -m benchmarks.comparison PAGE`: plugrad against the other installed libraries.

Times are measured alternately in one process; features are tested by running a snippet in its own
process. Both tables are written between the markers of a page, with the command and the versions.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module, metadata
from pathlib import Path

# One thread for all: arrays this small do not benefit from more.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from benchmarks.features import FEATURES, NOT_TRIED, PREPARE
from benchmarks.libraries import Array
from benchmarks.measure import PLUGRAD, TORCH, Effort, Sample, interleave
from benchmarks.report import environment, number

# Name -> module, and the distribution that brings it.
LIBRARIES = {
    PLUGRAD: ("plugrad", "plugrad"),
    TORCH: ("torch", "torch"),
    "JAX": ("jax", "jax"),
    "HIPS autograd": ("autograd", "autograd"),
    "MyGrad": ("mygrad", "mygrad"),
    "tinygrad": ("tinygrad", "tinygrad"),
}
LENGTH = 100
Step = Callable[[], object]


def chain(y: object, factor: object, length: int) -> object:
    """`y = y * b`, `length` times."""
    for _ in range(length):
        y = y * factor  # type: ignore[operator]  # of any library
    return y


def tape_chain(module: str, start: Array, factor: Array, length: int) -> Step:
    """plugrad and PyTorch."""
    library = import_module(module)
    x = library.from_numpy(start.copy()).requires_grad_()
    b = library.from_numpy(factor.copy())

    def step() -> None:
        chain(x, b, length).sum().backward()  # type: ignore[attr-defined]
        x.grad = None

    return step


def jax_chain(start: Array, factor: Array, length: int, *, jit: bool) -> Step:
    jax = import_module("jax")
    x, b = jax.numpy.asarray(start), jax.numpy.asarray(factor)
    gradient = jax.grad(lambda x: chain(x, b, length).sum())  # type: ignore[attr-defined]
    if jit:
        gradient = jax.jit(gradient)
    return lambda: gradient(x).block_until_ready()


def hips_chain(start: Array, factor: Array, length: int) -> Step:
    numpy = import_module("autograd.numpy")
    gradient = import_module("autograd").grad(lambda x: numpy.sum(chain(x, factor, length)))
    return lambda: gradient(start)


def mygrad_chain(start: Array, factor: Array, length: int) -> Step:
    x = import_module("mygrad").tensor(start)

    def step() -> None:
        chain(x, factor, length).sum().backward()  # type: ignore[attr-defined]
        x.null_grad()

    return step


def tinygrad_chain(start: Array, factor: Array, length: int) -> Step:
    tensor = import_module("tinygrad").Tensor
    x, b = tensor(start).realize(), tensor(factor).realize()

    def step() -> None:
        chain(x, b, length).sum().gradient(x)[0].realize()  # type: ignore[attr-defined]

    return step


def contestants(start: Array, factor: Array, length: int) -> dict[str, Step]:
    """The chain in every installed library that works on this machine."""
    makers: dict[str, Callable[[], Step]] = {
        PLUGRAD: lambda: tape_chain("plugrad", start, factor, length),
        TORCH: lambda: tape_chain("torch", start, factor, length),
        "JAX": lambda: jax_chain(start, factor, length, jit=False),
        "JAX, compiled by jit": lambda: jax_chain(start, factor, length, jit=True),
        "HIPS autograd": lambda: hips_chain(start, factor, length),
        "MyGrad": lambda: mygrad_chain(start, factor, length),
        "tinygrad": lambda: tinygrad_chain(start, factor, length),
    }
    found: dict[str, Step] = {}
    for name, make in makers.items():
        if not installed(name.partition(",")[0]):
            continue
        try:
            step = make()
            step()
        except RuntimeError as error:
            # tinygrad compiles C, and has no device without clang.
            print(f"{name} does not compute here: {error}", file=sys.stderr)
        else:
            found[name] = step
    return found


def installed(name: str) -> bool:
    return importlib.util.find_spec(LIBRARIES[name][0]) is not None


def import_times(effort: Effort) -> dict[str, Sample]:
    """Milliseconds for importing a library in a fresh process that has NumPy."""
    code = "import numpy, time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    names = [name for name in LIBRARIES if installed(name)]
    values: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(2 if effort.smoke else 9):
        for name in names:
            command = [sys.executable, "-c", code.format(LIBRARIES[name][0])]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            values[name].append(float(done.stdout) * 1e3)
    return {name: Sample.of(found) for name, found in values.items()}


def megabytes(distribution: str) -> float:
    """Size of a distribution and of its requirements, without NumPy."""
    sizes: dict[str, int] = {}
    todo = [distribution]
    while todo:
        name = re.sub(r"[-_.]+", "-", todo.pop()).lower()
        if name in sizes or name == "numpy":
            continue
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # for another platform
        files = [Path(str(file.locate())) for file in found.files or []]
        sizes[name] = sum(file.stat().st_size for file in files if file.is_file())
        needed = [line for line in found.requires or [] if "extra ==" not in line]
        todo += [re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in needed]
    return sum(sizes.values()) / 1e6


def times_table(effort: Effort) -> list[list[str]]:
    length = 10 if effort.smoke else LENGTH
    generator = np.random.default_rng(0)
    start = generator.random((4, 4), dtype=np.float32)
    factor = np.full((4, 4), 0.999, dtype=np.float32)
    samples = interleave(contestants(start, factor, length), effort, units=length)
    imports = import_times(effort)
    own = samples[PLUGRAD].median
    head = ["library", "us per operation", "to plugrad", "import, ms", "installed, MB"]
    rows = [head, ["---", *["---:"] * (len(head) - 1)]]
    for name in [*LIBRARIES, *(key for key in samples if key not in LIBRARIES)]:
        if not installed(name.partition(",")[0]):
            continue
        found = samples.get(name)
        row = [name]
        row += [number(found.median), number(found.median / own)] if found else ["", ""]
        if name in LIBRARIES:
            row += [number(imports[name].median), number(megabytes(LIBRARIES[name][1]))]
        rows.append(row + [""] * (len(head) - len(row)))
    return rows


def features_table() -> list[list[str]]:
    """Which snippets run without an error; a library without a snippet lacks the feature."""
    names = [name for name in LIBRARIES if installed(name)]
    rows = [["", *names], ["---"] * (len(names) + 1)]
    for feature, snippets in FEATURES.items():
        rows.append([feature, *(tried(name, snippets) for name in names)])
    return rows


def tried(name: str, snippets: Mapping[str, str]) -> str:
    snippet = snippets.get(name)
    if snippet is None:
        return "no"
    if snippet == NOT_TRIED:
        return "not tried"
    code = f"{PREPARE[name]}\n{snippet}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{name}: {snippet}\n{done.stderr}", file=sys.stderr)
    return "fails" if done.returncode else "yes"


def markdown(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def about() -> str:
    """The command, the versions, the machine."""
    shown = environment()
    shown["command"] = "python -m benchmarks.comparison docs/comparison.md"
    shown.pop(TORCH, None)
    for name, (_, distribution) in LIBRARIES.items():
        if installed(name) and name != PLUGRAD:
            shown[name] = metadata.version(distribution)
    return "\n".join(
        f"* {key}: `{value}`" if key == "command" else f"* {key}: {value}"
        for key, value in shown.items()
    )


def replaced(page: str, name: str, text: str) -> str:
    """The page with a new text between its markers ``<!-- name -->`` and ``<!-- end name -->``."""
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
    changed, count = pattern.subn(lambda found: f"{found[1]}\n{text}\n\n{found[2]}", page)
    if count != 1:
        raise SystemExit(f"the page needs one pair of markers '{name}', it has {count}")
    return changed


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparison", description=__doc__)
    parser.add_argument("page", type=Path, metavar="PAGE", help="Markdown with markers")
    parser.add_argument("--smoke", action="store_true", help="only check that everything runs")
    parser.add_argument("--features", action="store_true", help="keep the times in the page")
    arguments = parser.parse_args()
    page = arguments.page.read_text(encoding="utf-8")
    page = replaced(page, "features", markdown(features_table()))
    if not arguments.features:
        figures = f"{markdown(times_table(Effort(arguments.smoke)))}\n\n{about()}"
        page = replaced(page, "times", figures)
    if not arguments.smoke:
        arguments.page.write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
