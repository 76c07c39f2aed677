"""Prints a graph as Python that can be read and run."""

from __future__ import annotations

import keyword
import math
from typing import TYPE_CHECKING, Any

from plugrad.device import Device
from plugrad.dispatch.binding import default_of
from plugrad.dtype import DType
from plugrad.transforms.capture.node import Node, Ref
from plugrad.transforms.capture.trees import paths, source

if TYPE_CHECKING:
    from plugrad.transforms.capture.graph import Graph

CONTEXTS = {
    "grad": "plugrad.enable_grad()",
    "no_grad": "plugrad.no_grad()",
    "inference": "plugrad.inference_mode()",
}


def program(graph: Graph) -> str:
    """The function with its imports."""
    return f"import plugrad\nfrom plugrad import ops\n\n\n{function_text(graph)}\n"


def function_text(graph: Graph) -> str:
    """The function alone."""
    parameters, body = _parameters(graph)
    for constant in graph.held.values():
        if constant.grad_of:
            body.append(f"{constant.name} = {constant.grad_of}.grad")
    outside = ""
    for device in graph.guards.autocast:
        body.append(f"{outside}with plugrad.autocast({device!r}, enabled=False):")
        outside += "    "
    mode = graph.guards.mode
    for node in graph.nodes:
        if node.mode != mode:
            mode = node.mode
            if mode != graph.guards.mode:
                body.append(f"{outside}with {CONTEXTS[mode]}:")
        indent = "" if mode == graph.guards.mode else "    "
        body.append(outside + indent + statement(node))
    if outside and not graph.nodes:
        body.append(f"{outside}pass")
    body += [f"{owner}.grad = {name}" for owner, name in graph.gradients.items()]
    outputs = [literal(output) for output in graph.outputs]
    kinds = {c.value: name for name, c in graph.held.items() if isinstance(c.value, type)}
    body.append(f"return {source(graph.output_tree, outputs, kinds)}")
    lines = [f"def {graph.name}({', '.join(parameters)}):", *[f"    {line}" for line in body]]
    return "\n".join(lines)


def _parameters(graph: Graph) -> tuple[list[str], list[str]]:
    """The function's parameters, and statements that take containers apart."""
    args, kwargs = graph.guards.tree.children
    inputs = {each.position: each.name for each in graph.inputs}
    parameters: list[str] = []
    body: list[str] = []
    position = 0
    pairs = [(f"args_{number}", child) for number, child in enumerate(args.children)]
    count = len(pairs)
    pairs += zip(kwargs.keys, kwargs.children, strict=True)
    for number, (name, tree) in enumerate(pairs):
        leaves = paths(tree, name)
        if number < count and tree.kind is None:
            parameters.append(inputs.get(position, name))
        else:
            if number == count:
                parameters.append("*")
            parameters.append(name)
            for offset, path in enumerate(leaves):
                if position + offset in inputs:
                    body.append(f"{inputs[position + offset]} = {path}")
        position += len(leaves)
    return parameters, body


def statement(node: Node) -> str:
    """One call."""
    text = call(node)
    new = set(node.defines())
    if not new:
        return text
    metas = [str(meta) for name, meta in zip(node.results, node.metas, strict=True) if name in new]
    names = [name if name in new else "_" for name in node.results]
    if node.single:
        return f"{names[0]} = {text}  # {metas[0]}"
    left = ", ".join(str(name) for name in names) + ("," if len(names) == 1 else "")
    return f"{left} = {text}  # {'; '.join(dict.fromkeys(metas))}"


def call(node: Node) -> str:
    """The expression, without arguments that have their default."""
    schema = node.op.op.schema
    positional: list[str] = []
    named: list[str] = []
    skipped = False
    for argument, value in zip(schema.arguments, node.values, strict=True):
        if argument.has_default and _is_default(value, default_of(argument)):
            skipped = True
        elif argument.kwarg_only or skipped:
            named.append(f"{argument.name}={literal(value)}")
        else:
            positional.append(literal(value))
    op = node.op
    # Attributes that Python reads otherwise.
    path = f"ops.{op.namespace}"
    for part in (op.op.name, op.op.overload or "default"):
        path = f"getattr({path}, {part!r})" if keyword.iskeyword(part) else f"{path}.{part}"
    return f"{path}({', '.join([*positional, *named])})"


def _is_default(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(value == default)


def literal(value: Any) -> str:
    """An argument as Python."""
    if isinstance(value, Ref):
        return value.name
    if isinstance(value, DType):
        return str(value)
    if isinstance(value, Device):
        return f"plugrad.device({str(value)!r})"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    if isinstance(value, complex):
        return f"complex({literal(value.real)}, {literal(value.imag)})"
    if isinstance(value, list):
        return f"[{', '.join(literal(item) for item in value)}]"
    if isinstance(value, tuple):
        inside = ", ".join(literal(item) for item in value)
        return f"({inside}{',' if len(value) == 1 else ''})"
    return repr(value)
