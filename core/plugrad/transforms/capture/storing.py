"""Graphs in files: JSON and the constants' bytes, in a zip as `numpy.savez` writes it. No code."""

from __future__ import annotations

import json
from collections import OrderedDict
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from plugrad.device import Device
from plugrad.dispatch.backends.active import active_backends, canonical_device, find_backend
from plugrad.dtype import DType, dtype_by_name
from plugrad.ops.namespace import find_overload
from plugrad.tensor.base import TensorBase, needs_grad, sizes_of, wrap
from plugrad.tensor.interop.arrays import host_array
from plugrad.transforms.capture.guards import Guards
from plugrad.transforms.capture.node import Constant, Input, Meta, Node, Ref
from plugrad.transforms.capture.trees import Tree
from plugrad.transforms.capture.undo import silently

if TYPE_CHECKING:
    from plugrad.transforms.capture.graph import Graph

VERSION: Final = 1
CONTAINERS: Final[dict[str, Any]] = {
    "dict": dict,
    "list": list,
    "tuple": tuple,
    "OrderedDict": OrderedDict,
}


def save(graph: Graph, path: str | PathLike[str]) -> None:
    """See `Graph.save`."""
    arrays: dict[str, Any] = {}
    guards = graph.guards
    text = {
        "version": VERSION,
        "name": graph.name,
        "tree": _tree(guards.tree),
        "leaves": [_value(leaf) for leaf in guards.leaves],
        "inputs": [
            [each.name, each.position, _meta(each.meta), each.requires_grad, each.same_as]
            for each in guards.inputs
        ],
        "mode": guards.mode,
        "autocast": {device: dtype.name for device, dtype in guards.autocast.items()},
        "requires_grad": guards.requires_grad,
        "has_grad": guards.has_grad,
        "held": [_constant(constant, arrays) for constant in graph.held.values()],
        "nodes": [_node(node) for node in graph.nodes],
        "output_tree": _tree(graph.output_tree),
        "outputs": [_value(output) for output in graph.outputs],
        "gradients": graph.gradients,
        "makes_leaves": graph.makes_leaves,
    }
    _check_apart(graph)
    arrays["graph"] = np.frombuffer(json.dumps(text).encode(), np.uint8)
    with open(path, "wb") as file:
        np.savez(file, **arrays)


def load(path: str | PathLike[str]) -> dict[str, Any]:
    """The fields of a graph that was saved; see `Graph.load`."""
    with np.load(path, allow_pickle=False) as file:
        if "graph" not in file:
            raise ValueError(f"load(): {path} is not a graph saved by plugrad")
        text = json.loads(file["graph"].tobytes())
        if text["version"] != VERSION:
            raise ValueError(
                f"load(): {path} has version {text['version']} of the format, expected {VERSION}"
            )
        held = {each["name"]: _held(each, file) for each in text["held"]}
    guards = Guards(
        tree=_tree_of(text["tree"]),
        leaves=tuple([_value_of(leaf) for leaf in text["leaves"]]),
        inputs=tuple(
            [
                Input(name, position, _meta_of(meta), requires_grad, same)
                for name, position, meta, requires_grad, same in text["inputs"]
            ]
        ),
        mode=text["mode"],
        autocast={device: dtype_by_name(name) for device, name in text["autocast"].items()},
        requires_grad=text["requires_grad"],
        has_grad=text["has_grad"],
    )
    return {
        "function": None,
        "name": text["name"],
        "guards": guards,
        "held": held,
        "nodes": tuple([_node_of(node) for node in text["nodes"]]),
        "output_tree": _tree_of(text["output_tree"]),
        "outputs": tuple([_value_of(output) for output in text["outputs"]]),
        "gradients": text["gradients"],
        "makes_leaves": text["makes_leaves"],
    }


def _check_apart(graph: Graph) -> None:
    """Raise if two constants share memory, which two arrays of a file do not."""
    seen: list[tuple[str, Any]] = []
    for name, value in graph.constants.items():
        if isinstance(value, TensorBase) and not graph.held[name].fresh:
            with silently():
                array = host_array(value)
            for other, known in seen:
                if np.may_share_memory(array, known):
                    raise ValueError(f"save(): the constants {other} and {name} share memory")
            seen.append((name, array))


def _constant(constant: Constant, arrays: dict[str, Any]) -> dict[str, Any]:
    value = constant.value
    found: dict[str, Any] = {
        "name": constant.name,
        "fresh": constant.fresh,
        "grad_of": constant.grad_of,
        "label": constant.label,
    }
    if isinstance(value, TensorBase):
        with silently():
            array = host_array(value)
        arrays[f"constant_{constant.name}"] = np.frombuffer(array.tobytes(), np.uint8)
        found["tensor"] = [list(sizes_of(value)), value.dtype.name, str(value.device)]
        found["requires_grad"] = needs_grad(value)
        return found
    for active in active_backends():
        for index in range(active.backend.device_count()):
            if active.generator(index) is value:
                return found | {"generator": str(active.device(index))}
    raise TypeError(
        f"save(): the constant {constant.name} is {type(value).__name__}, which no file of a graph "
        "can hold; expected tensors and the default generators of devices"
    )


def _held(found: dict[str, Any], file: Any) -> Constant:
    name = found["name"]
    if "generator" in found:
        device = canonical_device(found["generator"])
        value: Any = find_backend(device.type).generator(device.index or 0)
    else:
        shape, dtype_name, place = found["tensor"]
        dtype, device = dtype_by_name(dtype_name), canonical_device(place)
        array = np.frombuffer(file[f"constant_{name}"].tobytes(), dtype.numpy).reshape(shape)
        backend = find_backend(device.type).backend
        value = wrap(backend.from_host(array.copy(), device.index or 0), dtype, device)
        if found["requires_grad"]:
            value.requires_grad_()
    return Constant(name, value, found["fresh"], found["grad_of"], found.get("label", ""))


def _node(node: Node) -> list[Any]:
    return [
        node.op.op.qualified_name,
        _value(node.values),
        node.name,
        node.results,
        node.single,
        [None if meta is None else _meta(meta) for meta in node.metas],
        node.mode,
        node.writes,
        node.shares,
        node.random,
        node.scope,
        node.backward,
    ]


def _node_of(found: list[Any]) -> Node:
    op, values, name, results, single, metas, mode, writes, shares, random, *more = found
    return Node(
        op=find_overload(op),
        values=_value_of(values),
        name=name,
        results=tuple(results),
        single=single,
        metas=tuple([None if meta is None else _meta_of(meta) for meta in metas]),
        mode=mode,
        writes=tuple(writes),
        shares=tuple([tuple(each) for each in shares]),
        random=random,
        scope=tuple([(module, kind) for module, kind in more[0]]) if more else (),
        backward=more[1] if more else False,
    )


def _meta(meta: Meta) -> list[Any]:
    return [list(meta.shape), meta.dtype.name, str(meta.device)]


def _meta_of(found: list[Any]) -> Meta:
    shape, dtype, device = found
    return Meta(tuple(shape), dtype_by_name(dtype), canonical_device(device))


def _tree(tree: Tree) -> Any:
    if tree.kind is None:
        return None
    if tree.kind not in CONTAINERS.values():
        raise TypeError(f"save(): no file of a graph can hold a {tree.kind.__name__}")
    keys = [_value(key) for key in tree.keys]
    return [tree.kind.__name__, keys, [_tree(child) for child in tree.children]]


def _tree_of(found: Any) -> Tree:
    if found is None:
        return Tree(None)
    kind, keys, children = found
    return Tree(
        CONTAINERS[kind],
        tuple([_value_of(key) for key in keys]),
        tuple([_tree_of(child) for child in children]),
    )


def _value(value: Any) -> Any:
    """An argument in JSON: as it is, or under the name of its type."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return {"float": value.hex()}
    if type(value) is complex:
        return {"complex": [value.real.hex(), value.imag.hex()]}
    if isinstance(value, Ref):
        return {"ref": value.name}
    if isinstance(value, DType):
        return {"dtype": value.name}
    if isinstance(value, Device):
        return {"device": str(value)}
    if type(value) in (list, tuple):
        return {type(value).__name__: [_value(item) for item in value]}
    raise TypeError(f"save(): no file of a graph can hold {value!r}, a {type(value).__name__}")


def _value_of(found: Any) -> Any:
    if not isinstance(found, dict):
        return found
    ((kind, value),) = found.items()
    if kind == "float":
        return float.fromhex(value)
    if kind == "complex":
        return complex(*map(float.fromhex, value))
    if kind == "ref":
        return Ref(value)
    if kind == "dtype":
        return dtype_by_name(value)
    if kind == "device":
        return canonical_device(value)
    items = [_value_of(item) for item in value]
    return items if kind == "list" else tuple(items)
