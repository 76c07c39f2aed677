"""Merge graphs of one model, captured at several sizes, into one graph with numbers that may depend
on the sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plugrad.transforms.capture import Graph, Meta, Node, Ref
from plugrad_onnx.onnx.errors import OnnxExporterError, SizeError
from plugrad_onnx.onnx.recording import Places
from plugrad_onnx.onnx.sizes import merged


@dataclass(frozen=True)
class Call:
    """A node of the graph that all captures have in common.

    Attributes:
        node: the node of the first capture.
        args, kwargs: the arguments; numbers may be `Varying`.
        shapes, dtypes: of the results; None for a result that is not a tensor.
    """

    node: Node
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    shapes: tuple[tuple[Any, ...] | None, ...]
    dtypes: tuple[Any, ...]


def aligned(graphs: Sequence[Graph], places: Places) -> list[Call]:
    """The nodes of graphs that differ only in numbers.

    Raises:
        OnnxExporterError: they differ in something else, such as how often a loop ran.
    """
    first = graphs[0]
    for other in graphs[1:]:
        for a, b in zip(first.nodes, other.nodes, strict=False):
            if a.op != b.op or a.results != b.results or len(a.metas) != len(b.metas):
                raise _differ(a, places)
        if len(first.nodes) != len(other.nodes):
            shorter = min(len(first.nodes), len(other.nodes))
            longer = max(first.nodes, other.nodes, key=len)
            raise _differ(longer[shorter], places)
    calls: list[Call] = []
    for group in zip(*[graph.nodes for graph in graphs], strict=True):
        node = group[0]
        try:
            shapes = tuple(
                _shape([each.metas[n] for each in group]) for n in range(len(node.metas))
            )
            args = tuple(_merged([each.args for each in group]))
            kwargs = {name: _merged([each.kwargs[name] for each in group]) for name in node.kwargs}
        except SizeError as error:
            raise OnnxExporterError(
                f"the operator {node.op.name()} {error}{_at(places, node)}: leave that dimension "
                "out of dynamic_axes or dynamic_shapes, or compute it with operators"
            ) from None
        dtypes = tuple(None if meta is None else meta.dtype for meta in node.metas)
        calls.append(Call(node, args, kwargs, shapes, dtypes))
    return calls


def _at(places: Places, node: Node) -> str:
    where = places(node.name)
    return f" ({where})" if where else ""


def _differ(node: Node, places: Places) -> OnnxExporterError:
    return OnnxExporterError(
        f"the model calls other operators if a dynamic size changes, first at "
        f"{node.op.name()}{_at(places, node)}: a loop or a branch depends on that size, and an "
        "ONNX graph has one sequence of operators; leave that dimension out of dynamic_axes or "
        "dynamic_shapes"
    )


def _shape(metas: list[Meta | None]) -> tuple[Any, ...] | None:
    if metas[0] is None:
        return None
    shapes = [meta.shape for meta in metas if meta is not None]
    if len({len(shape) for shape in shapes}) > 1:
        raise SizeError("gives results of another rank if a dynamic size changes")
    return tuple(merged(sizes) for sizes in zip(*shapes, strict=True))


def _merged(values: list[Any]) -> Any:
    """One argument of several."""
    first = values[0]
    if isinstance(first, (list, tuple)):
        if len({len(value) for value in values}) > 1:
            raise SizeError("has lists of another length if a dynamic size changes")
        items = [_merged(list(group)) for group in zip(*values, strict=True)]
        return items if isinstance(first, list) else tuple(items)
    if type(first) is int and all(type(value) is int for value in values):
        return merged(values)
    if all(value == first or value != value for value in values):  # the same, or nan
        return first
    if isinstance(first, Ref):
        raise SizeError("takes other tensors if a dynamic size changes")
    raise SizeError(f"has the number {values[0]} for one dynamic size and {values[1]} for another")
