"""A graph in graphviz's language; its program `dot` makes pictures of that."""

from __future__ import annotations

import shutil
import subprocess
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from plugrad.tensor.base import TensorBase
from plugrad.transforms.capture.node import Node, meta_of

if TYPE_CHECKING:
    from plugrad.transforms.capture.graph import Graph

TENSOR = 'shape=ellipse, style=filled, fillcolor="#dbeafe", color="#1d4ed8"'
CONSTANT = 'shape=ellipse, style=filled, fillcolor="#fef3c7", color="#b45309"'
OPERATOR = 'shape=box, style=filled, fillcolor="#dcfce7", color="#15803d"'
WRITE = 'shape=box, style=filled, fillcolor="#ffedd5", color="#c2410c"'


def dot(graph: Graph) -> str:
    """The source text: ellipses are inputs and constants, boxes operators, orange where they write.

    An operator that uses a value after a write has an edge from that write.
    """
    lines = [f"digraph {graph.name} {{", '  node [fontname="Helvetica"];']
    lines += [
        f"  {each.name} [label={_quoted(each.name, str(each.meta))}, {TENSOR}];"
        for each in graph.inputs
    ]
    for constant in graph.held.values():
        value = constant.value
        what = str(meta_of(value)) if isinstance(value, TensorBase) else type(value).__name__
        lines.append(f"  {constant.name} [label={_quoted(constant.name, what)}, {CONSTANT}];")
    # Where a value comes from: the node that made it, or wrote to it last.
    made: dict[str, str] = {}
    for number, node in enumerate(graph.nodes):
        own = f"node_{number}"
        style = WRITE if node.writes else OPERATOR
        lines.append(f"  {own} [label={_quoted(*_label(node))}, {style}];")
        for name in dict.fromkeys(node.reads()):
            label = f" [label={_quoted(name)}]" if name in made else ""
            lines.append(f"  {made.get(name, name)} -> {own}{label};")
        made.update(dict.fromkeys((*node.defines(), *node.writes), own))
    results = [name for name in graph.needed() if name in made or name not in graph.gradients]
    lines.append('  result [label="result", shape=plaintext];')
    lines += [
        f"  {made.get(name, name)} -> result [label={_quoted(name)}];" for name in sorted(results)
    ]
    return "\n".join([*lines, "}", ""])


def render(graph: Graph, path: str | PathLike[str]) -> None:
    """Write the source text, or have graphviz write a picture."""
    target = Path(path)
    ending = target.suffix.removeprefix(".")
    if ending in ("dot", "gv"):
        target.write_text(dot(graph), encoding="utf-8")
        return
    program = shutil.which("dot")
    if program is None:
        raise RuntimeError(
            f"draw(): a picture of format {ending!r} is made by graphviz's program 'dot', which is "
            "not installed; install graphviz, or write the source text to a file that ends in .dot"
        )
    made = subprocess.run(
        [program, f"-T{ending}", "-o", str(target)],
        input=dot(graph),
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        raise RuntimeError(f"draw(): graphviz could not write {target}: {made.stderr.strip()}")


def _label(node: Node) -> list[str]:
    new = set(node.defines())
    metas = [str(meta) for name, meta in zip(node.results, node.metas, strict=True) if name in new]
    return [node.op.op.full_name, *dict.fromkeys(metas)]


def _quoted(*lines: str) -> str:
    text = "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return f'"{text}"'
