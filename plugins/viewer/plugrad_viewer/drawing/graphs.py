"""Converts the argument of `draw` to nodes and modules: tensors with a history, a model, a captured
graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plugrad
from plugrad.plugins.watching import Book, edges_of, history_of, read
from plugrad_viewer.recording.assembly import Assembly
from plugrad_viewer.recording.format import Module, Node
from plugrad_viewer.recording.graph import entry, name_of_dtype
from plugrad_viewer.recording.names import Names, hook_modules
from plugrad_viewer.recording.recorder import Recorder

# While a model runs, everything is recorded.
NO_LIMIT = 1 << 62


def named(params: Any) -> dict[str, Any]:
    """Tensors by name, from a module or a mapping.

    Raises:
        TypeError: it is neither.
    """
    if params is None:
        return {}
    if isinstance(params, Mapping):
        return dict(params)
    if hasattr(params, "named_parameters"):
        return {**dict(params.named_parameters()), **dict(params.named_buffers())}
    raise TypeError(
        "draw(): params must be a module or a mapping from names to tensors, "
        f"got {type(params).__name__}"
    )


def nodes_behind(ends: Sequence[Any], params: Any) -> tuple[list[Node], list[Module]]:
    """The autograd graph that leads to tensors or nodes, and the modules that its parameters show.

    Raises:
        ValueError: a tensor has no history.
    """
    names = Names()
    for name, tensor in named(params).items():
        names.name(tensor, name)
    roots: list[Any] = []
    for end in ends:
        if isinstance(end, plugrad.autograd.graph.Node):
            roots.append(end)
            continue
        history = history_of(end)
        if history is None:
            raise ValueError(
                "draw(): expected a tensor with a history, got one without grad_fn: "
                "nothing that requires grad led to it"
            )
        roots.append(history[0])
    book = Book(NO_LIMIT, names.tensors, names.find, lambda frame: True)
    for node in _earliest_first(roots):
        book.see(node)
    found = sorted(event[3:] for event in read(book) if event[2] == "node")
    nodes = [entry(name, *about) for _, name, _, *about in found]
    modules: list[Module] = []
    if hasattr(params, "named_modules"):
        modules = modules_of(params)
        _guess_modules(nodes, modules)
    return nodes, modules


def _earliest_first(roots: Sequence[Any]) -> list[Any]:
    """All nodes reachable from the roots, in the order of forward."""
    found: dict[int, Any] = {}
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if id(node) not in found:
            found[id(node)] = node
            waiting += [target for target, _ in edges_of(node) if target is not None]
    return sorted(found.values(), key=lambda node: int(node._sequence_nr()))


def modules_of(model: Any) -> list[Module]:
    """A model and its modules; a parent comes before its children."""
    modules: list[Module] = []
    numbers: dict[str, int] = {}
    for name, module in model.named_modules():
        parent = numbers[name.rpartition(".")[0]] if name else -1
        numbers[name] = len(modules)
        modules.append({"name": name, "kind": type(module).__name__, "parent": parent})
    return modules


def _guess_modules(nodes: list[Node], modules: list[Module]) -> None:
    """Assign nodes to modules by the parameters they use, because nodes do not record modules.

    Nodes in between belong to the innermost module around both the previous and the next one.
    """
    numbers = {module["name"]: number for number, module in enumerate(modules)}
    for node in nodes:
        labels = [node["label"], *[nodes[target]["label"] for target, _ in node["edges"]]]
        for label in labels:
            if label and node["module"] < 0:
                node["module"] = numbers.get(label.rpartition(".")[0], -1)
    functions = [node for node in nodes if node["kind"] == "function"]
    before: list[list[int]] = []
    known: list[int] = []
    for node in functions:
        known = _around(node["module"], modules) or known
        before.append(known)
    known = []
    for node, earlier in zip(reversed(functions), reversed(before), strict=True):
        if node["module"] >= 0:
            known = _around(node["module"], modules)
        else:
            both = [
                module for module, other in zip(earlier, known, strict=False) if module == other
            ]
            node["module"] = both[-1] if both else -1


def _around(module: int, modules: list[Module]) -> list[int]:
    """A module and its ancestors, the outermost first."""
    chain: list[int] = []
    while module >= 0:
        chain.append(module)
        module = modules[module]["parent"]
    return chain[::-1]


def nodes_of_model(
    model: Any, inputs: Sequence[Any], options: Mapping[str, Any]
) -> tuple[list[Node], list[Module]]:
    """The autograd graph of a model's call.

    Raises:
        ValueError: it makes none.
    """
    recorder = Recorder(NO_LIMIT)
    handles = hook_modules(recorder.enter_module, recorder.leave_module, lambda optimizer: None)
    try:
        with plugrad.enable_grad(), recorder.listening():
            result = model(*inputs, **options)  # held: it holds the graph
    finally:
        for handle in handles:
            handle.remove()
        recorder.stop()
    del result
    nodes = Assembly(recorder.book, 0).nodes
    if not nodes:
        raise ValueError(
            f"draw(): a call of {type(model).__name__} made no graph: none of its parameters and "
            "inputs requires grad"
        )
    return nodes, recorder.names.modules


def nodes_of_capture(graph: Any, params: Any) -> tuple[list[Node], list[Module]]:
    """The operators of a captured graph, its inputs and constants.

    A graph has the modules that were called while it was captured, and their parameters' names;
    `params` adds to these.
    """
    known = named(params)
    by_id = {id(tensor): name for name, tensor in known.items()}
    nodes: list[Node] = []
    made: dict[str, int] = {}  # the node that made a value, or wrote to it last
    modules: list[Module] = []
    numbers: dict[tuple[str, bool], int] = {}
    for each in graph.inputs:
        made[each.name] = _append(nodes, "input", each.name, str(each.meta), each.meta.shape)
    for name, value in graph.constants.items():
        if isinstance(value, plugrad.Tensor):
            label = by_id.get(id(value)) or graph.held[name].label or name
            what = f"{name_of_dtype(value.dtype)} constant {name}"
            made[name] = _append(nodes, "leaf", label, what, tuple(value.shape))
    for node in graph.nodes:
        meta = node.meta[0] if type(node.meta) in (list, tuple) and node.meta else node.meta
        shape = getattr(meta, "shape", ())
        name = str(node.op).removeprefix("plugrad.").removesuffix(".default")
        number = _append(nodes, "function", "", name, shape)
        sources = dict.fromkeys(made[each] for each in node.reads() if each in made)
        nodes[number]["edges"] = [[source, 0] for source in sources]
        nodes[number]["module"] = _module_of(node, modules, numbers)
        made.update(dict.fromkeys((*node.defines(), *node.writes), number))
    if not modules and hasattr(params, "named_modules"):
        modules = modules_of(params)
        _guess_modules(nodes, modules)
    return nodes, modules


def _module_of(node: Any, modules: list[Module], numbers: dict[tuple[str, bool], int]) -> int:
    """The number of the innermost module that a captured node ran in; new modules are added.

    What runs backward has modules of its own, of the same names.
    """
    number = -1
    for name, kind in node.scope:
        key = name, node.backward
        if key not in numbers:
            numbers[key] = len(modules)
            words = f"{kind}, backward" if node.backward else kind
            modules.append({"name": name, "kind": words, "parent": number})
        number = numbers[key]
    return number


def _append(nodes: list[Node], kind: str, label: str, name: str, shape: Sequence[int]) -> int:
    nodes.append(
        {
            "name": name,
            "call": -1,
            "module": -1,
            "kind": kind,
            "label": label,
            "shape": list(shape),
            "edges": [],
            "saved": [],
            "sequence": -1,
            "x": 0.0,
            "y": 0.0,
        }
    )
    return len(nodes) - 1
