"""profile_step: the operators of a captured step, each with its time and its memory."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import plugrad
from plugrad import Tensor
from plugrad.transforms.capture import Graph, Meta, Node, Ref
from plugrad_distributed.planning.profiles import NodeCost, ParameterCost, Phase, Profile

__all__ = ["profile_step"]

MODES: dict[str, Callable[[], Any]] = {
    "grad": plugrad.enable_grad,
    "no_grad": plugrad.no_grad,
    "inference": plugrad.inference_mode,
}


def profile_step(
    fn: Callable[..., Any],
    *args: Any,
    optimizer: Any = None,
    smaller: tuple[Any, ...] | None = None,
    repeats: int = 10,
) -> Profile:
    """Profile of a training step: the function is captured and its operators are run one by one.

    Times are medians. The time of the whole step, including Python's part, is measured alternately
    with that and spread evenly over the operators. The step really runs: parameters change.

    Args:
        fn: a step: it clears gradients, computes a loss and calls `backward`. The optimizer may
            step in it, if it can be captured.
        args: of the function; one batch of one rank.
        optimizer: one that cannot be captured, as Adam, and that `fn` does not call: its step is
            measured as one node.
        smaller: arguments with a smaller batch, as one of a pipeline's microbatches. They show
            which part of a node's time does not depend on the batch.
        repeats: how often everything is measured.

    Raises:
        ValueError: the step sets no gradients, or records its backward pass; `smaller` is not
            smaller, or makes another graph.
        CaptureError: the function cannot be captured.

    >>> import plugrad
    >>> from plugrad.distributed.simulate import profile_step
    >>> model = plugrad.nn.Linear(2, 3)
    >>> def step(x):
    ...     model.zero_grad()
    ...     model(x).sum().backward()
    >>> profile = profile_step(step, plugrad.ones(4, 2))
    >>> len(profile.parameters), profile.parameter_bytes
    (2, 36)
    """
    if repeats < 1:
        raise ValueError(f"profile_step(): repeats must be positive, got {repeats!r}")
    fn(*args)  # states of optimizers exist afterwards
    if optimizer is not None:
        optimizer.step()
    graph = plugrad.capture(fn, *args)
    phases = _phases(graph)
    parts = None if smaller is None else _parts(fn, args, smaller, graph)
    rounds: list[list[float]] = []
    smaller_rounds: list[list[float]] = []
    steps: list[float] = []
    updates: list[float] = []
    trivial: list[float] = []
    for _ in range(repeats + 1):
        steps.append(_timed(fn, *args))
        if optimizer is not None:
            updates.append(_timed(optimizer.step))
        rounds.append(_run(graph, args))
        if parts is not None and smaller is not None:
            smaller_rounds.append(_run(parts.graph, smaller))
        trivial.append(_trivial())
    # The first round warms up.
    seconds = [statistics.median(each) for each in zip(*rounds[1:], strict=True)]
    whole, call = statistics.median(steps[1:]), statistics.median(trivial[1:])
    held = [0.0] * len(seconds)
    if parts is not None:
        shorter = [statistics.median(each) for each in zip(*smaller_rounds[1:], strict=True)]
        held = [
            _held(long, short, parts.ratio, call)
            for long, short in zip(seconds, shorter, strict=True)
        ]
    profile = _described(graph, phases, seconds, held)
    profile = _spread(profile, whole, call)
    if optimizer is not None:
        profile = _with_optimizer(profile, optimizer, statistics.median(updates[1:]), call)
    return profile


class _Parts(NamedTuple):
    """The graph of a smaller batch, and how often it fits in the larger one."""

    graph: Graph
    ratio: float


def _parts(
    fn: Callable[..., Any], args: tuple[Any, ...], smaller: tuple[Any, ...], graph: Graph
) -> _Parts:
    """Capture a step with a smaller batch.

    Raises:
        ValueError: it is not smaller, or makes another graph.
    """
    tensors = [
        (large, small)
        for large, small in zip(args, smaller, strict=False)
        if isinstance(large, Tensor) and isinstance(small, Tensor) and large.ndim and small.ndim
    ]
    if len(smaller) != len(args) or not tensors or not all(len(a) > len(b) > 0 for a, b in tensors):
        raise ValueError(
            "profile_step(): smaller must be the arguments of the step with fewer rows in each "
            f"tensor, got shapes {[tuple(small.shape) for _, small in tensors]} for "
            f"{[tuple(large.shape) for large, _ in tensors]}"
        )
    found = plugrad.capture(fn, *smaller)
    if [node.op for node in found.nodes] != [node.op for node in graph.nodes]:
        raise ValueError("profile_step(): smaller must run the same operators as the whole batch")
    large, small = tensors[0]
    return _Parts(found, len(large) / len(small))


def _held(long: float, short: float, ratio: float, call: float) -> float:
    """The part of a node's time that does not depend on the batch, except for the call: the line
    through both times, at zero rows."""
    return min((ratio * short - long) / (ratio - 1), long) - min(call, long)


def _timed(function: Callable[..., Any], *args: Any) -> float:
    start = time.perf_counter()
    function(*args)
    return time.perf_counter() - start


def _trivial() -> float:
    """The time to call an operator that computes almost nothing."""
    x = plugrad.ones(1)
    with plugrad.no_grad():
        return min(_timed(plugrad.add, x, x) for _ in range(5))


def _phases(graph: Graph) -> list[Phase]:
    """Forward, then backward up to the last gradient, then the optimizer."""
    if any(constant.grad_of for constant in graph.held.values()):
        raise ValueError(
            "profile_step(): the step must begin without gradients: call zero_grad() at its "
            "beginning, with set_to_none=True, which is the default"
        )
    makers = {name: n for n, node in enumerate(graph.nodes) for name in node.defines()}
    wanted = [name for name in graph.gradients.values() if name in makers]
    if not wanted:
        raise ValueError(
            "profile_step(): the step must set gradients of parameters by backward(), and leave "
            "them there: clear them at the beginning, not at the end"
        )
    last = max(makers[name] for name in wanted if name is not None)
    ancestors = {name for name in wanted if name is not None}
    first = len(graph.nodes)
    for number in range(last, -1, -1):
        node = graph.nodes[number]
        if not ancestors.isdisjoint(node.defines()):
            ancestors.update(node.reads())
            if node.mode != "grad":
                first = number
    if first > last:
        raise ValueError(
            "profile_step(): the backward pass must not be recorded: create_graph=True is not "
            "for steps that are planned"
        )
    if first and graph.nodes[first - 1].op.op.name == "ones_like":
        first -= 1  # the gradient of the loss
    return [
        "forward" if n < first else "backward" if n <= last else "optimizer"
        for n in range(len(graph.nodes))
    ]


def _run(graph: Graph, args: tuple[Any, ...]) -> list[float]:
    """Run the nodes and free values that are not needed any more. Returns the seconds of each."""
    values = dict(_beginning(graph, args))
    last = {
        name: n for n, node in enumerate(graph.nodes) for name in (*node.reads(), *node.defines())
    }
    kept = graph.needed()
    dropped: list[list[str]] = [[] for _ in graph.nodes]
    for name, number in last.items():
        if name not in kept:
            dropped[number].append(name)
    seconds = []
    for node, names in zip(graph.nodes, dropped, strict=True):
        given = [_resolved(value, values) for value in node.args]
        named = {key: _resolved(value, values) for key, value in node.kwargs.items()}
        with MODES[node.mode]():
            start = time.perf_counter()
            result = node.op(*given, **named)
            seconds.append(time.perf_counter() - start)
        results = [result] if node.single else (result or [])
        pairs = zip(node.results, results, strict=False)
        values.update({name: each for name, each in pairs if name is not None})
        del result, results, pairs, given, named
        for name in names:
            values.pop(name, None)
    return seconds


def _beginning(graph: Graph, args: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    leaves = graph.guards.check(args, {})
    for each in graph.inputs:
        yield each.name, leaves[each.position]
    for constant in graph.held.values():
        yield constant.name, constant.value
    values = graph.constants
    for constant in graph.held.values():
        if constant.grad_of:
            yield constant.name, values[constant.grad_of].grad


def _resolved(value: Any, values: dict[str, Any]) -> Any:
    if isinstance(value, Ref):
        return values[value.name]
    if isinstance(value, list | tuple):
        return type(value)([_resolved(item, values) for item in value])
    return value


def _bytes(meta: Meta) -> int:
    count = 1
    for size in meta.shape:
        count *= size
    return count * meta.dtype.itemsize


def _tensor_bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _described(
    graph: Graph, phases: list[Phase], seconds: list[float], held: list[float]
) -> Profile:
    roots: dict[str, str] = {}
    nodes: list[NodeCost] = []
    taken = _taken_over(graph)
    # By node of the graph, the last one of the profile.
    places: list[int] = []
    for number, node in enumerate(graph.nodes):
        reads = tuple(dict.fromkeys(roots.get(name, name) for name in node.reads()))
        if number in taken:
            roots[node.defines()[0]] = reads[0]
        else:
            nodes.append(
                NodeCost(
                    str(node.op.op.name), phases[number], seconds[number], 0.0, reads,
                    tuple(_made(node, roots)),
                    sum(_bytes(meta) for meta in node.metas if meta is not None),
                    held[number],
                )
            )  # fmt: skip
        places.append(len(nodes) - 1)
    parameters = _parameters(graph, nodes, roots, places)
    kept = [output.name for output in graph.outputs if isinstance(output, Ref)]
    kept += [parameter.grad for parameter in parameters]
    own = {parameter.name for parameter in parameters}
    late = {name for n in nodes if n.phase == "optimizer" for name in n.reads}
    early = {name for n in nodes if n.phase != "optimizer" for name in n.reads}
    sizes = {
        name: _tensor_bytes(value)
        for name, value in _beginning_of(graph).items()
        if isinstance(value, Tensor) and name not in own
    }
    return Profile(
        tuple(nodes),
        tuple(parameters),
        sum(size for name, size in sizes.items() if name in late and name not in early),
        sum(size for name, size in sizes.items() if name in early)
        + sum(_bytes(each.meta) for each in graph.inputs),
        kept=tuple(dict.fromkeys(roots.get(name, name) for name in kept)),
    )


def _taken_over(graph: Graph) -> set[int]:
    """Copies of parameters' gradients that a graph makes but a step does not, because it takes over
    a gradient without other references."""
    reads = [name for node in graph.nodes for name in node.reads()]
    made = {name for node in graph.nodes for name in node.defines()}
    gradients = set(graph.gradients.values())
    return {
        number
        for number, node in enumerate(graph.nodes)
        if node.op.op.name == "clone"
        and not gradients.isdisjoint(node.results)
        and all(name in made and reads.count(name) == 1 for name in node.reads()[:1])
    }


def _beginning_of(graph: Graph) -> dict[str, Any]:
    return {c.name: c.value for c in graph.held.values() if not c.grad_of}


def _made(node: Node, roots: dict[str, str]) -> Iterator[tuple[str, int]]:
    """New memory of a node; its views are noted as what they are views of."""
    shares = node.shares or ((),) * len(node.results)
    new = set(node.defines())
    for name, shared, meta in zip(node.results, shares, node.metas, strict=True):
        if name is None or name not in new or meta is None:
            continue
        if shared:
            roots[name] = roots.get(shared[0], shared[0])
        else:
            yield name, _bytes(meta)


def _parameters(
    graph: Graph, nodes: list[NodeCost], roots: dict[str, str], places: list[int]
) -> list[ParameterCost]:
    """In the order in which gradients arrive."""
    makers = {name: places[n] for n, node in enumerate(graph.nodes) for name in node.defines()}
    used: dict[str, int] = {}
    for number, node in enumerate(nodes):
        for name in node.reads:
            used.setdefault(name, number)
    found = []
    for owner, grad in graph.gradients.items():
        value = graph.constants.get(owner)
        if isinstance(value, Tensor) and grad is not None and grad in makers:
            found.append(
                ParameterCost(
                    owner, tuple(value.shape), _tensor_bytes(value), used.get(owner, 0),
                    makers[grad], roots.get(grad, grad),
                )
            )  # fmt: skip
    return sorted(found, key=lambda parameter: parameter.arrival)


def _spread(profile: Profile, whole: float, call: float) -> Profile:
    """Nodes that come to what the step took as a whole."""
    rest = whole - profile.total_seconds
    each = max(rest, 0.0) / len(profile.nodes)
    scale = min(1.0, whole / profile.total_seconds)
    nodes = []
    for node in profile.nodes:
        seconds = node.seconds * scale + each
        fixed = min(seconds, call * scale + each)
        held = min(node.held * scale, seconds - fixed)
        nodes.append(replace(node, seconds=seconds, fixed=fixed, held=held))
    return replace(profile, nodes=tuple(nodes), step_seconds=whole)


def _with_optimizer(profile: Profile, optimizer: Any, seconds: float, call: float) -> Profile:
    """A node for the optimizer's step, and its state."""
    states = [value for state in optimizer.state.values() for value in state.values()]
    node = NodeCost(
        type(optimizer).__name__, "optimizer", seconds, min(call, seconds),
        tuple(parameter.name for parameter in profile.parameters),
    )  # fmt: skip
    return replace(
        profile,
        nodes=(*profile.nodes, node),
        optimizer_bytes=sum(_tensor_bytes(each) for each in states if isinstance(each, Tensor)),
        step_seconds=profile.step_seconds + seconds,
    )
