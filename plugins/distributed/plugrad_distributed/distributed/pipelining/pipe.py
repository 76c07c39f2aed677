"""`pipeline`: captures a model once, and cuts its operators into stages."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from enum import Enum
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad.nn import Module, Parameter
from plugrad.transforms.capture import Graph, Meta, Node, Ref
from plugrad.transforms.capture.trees import unflatten
from plugrad_distributed.distributed.pipelining.stage import PipelineStage

__all__ = ["Pipe", "SplitPoint", "pipe_split", "pipeline"]


class SplitPoint(Enum):
    """Where to cut a model: before or after a submodule.

    >>> import plugrad
    >>> from plugrad.distributed.pipelining import SplitPoint, pipeline
    >>> model = plugrad.nn.Sequential(*[plugrad.nn.Linear(2, 2) for _ in range(3)])
    >>> pipe = pipeline(model, (plugrad.ones(1, 2),), split_spec={"1": SplitPoint.END})
    >>> [name for name, _ in pipe.get_stage_module(1).named_parameters()]
    ['2.weight', '2.bias']
    """

    BEGINNING = 1
    END = 2


class _Cutting(threading.local):
    """The tensor that marks a cut by a write, during a capture."""

    marker: Tensor | None = None


_cutting = _Cutting()


def pipe_split() -> None:
    """Cut the model here, in its `forward`. Does nothing unless `pipeline` captures it.

    >>> import plugrad
    >>> from plugrad.distributed.pipelining import pipe_split, pipeline
    >>> class Model(plugrad.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.first, self.second = plugrad.nn.Linear(2, 3), plugrad.nn.Linear(3, 1)
    ...     def forward(self, x):
    ...         x = self.first(x).relu()
    ...         pipe_split()
    ...         return self.second(x)
    >>> pipeline(Model(), (plugrad.ones(1, 2),)).num_stages
    2
    """
    if _cutting.marker is not None:
        plugrad.neg(_cutting.marker)


def pipeline(
    module: Module,
    mb_args: tuple[Any, ...],
    mb_kwargs: dict[str, Any] | None = None,
    split_spec: Mapping[str, SplitPoint] | None = None,
    split_policy: Any = None,
) -> Pipe:
    """Cut a model into stages, at submodules or where its `forward` calls `pipe_split`.

    The model runs once and its operators are recorded. Stages repeat these: in the same training
    mode, for microbatches of the same shapes, with the same values of arguments that are not
    tensors. Parameters are the model's own.

    Args:
        mb_args, mb_kwargs: examples of the first stage's arguments for one microbatch. Tensors
            among them, but not inside containers, are inputs.
        split_spec: whether to cut before or after a submodule, by its name.
        split_policy: not supported.

    Raises:
        AttributeError: there is no such submodule.
        CaptureError: the model reads values of tensors.
        ValueError: a stage would have no operators, two stages use one parameter, or one writes to
            memory of another.

    >>> import plugrad
    >>> from plugrad.distributed.pipelining import SplitPoint, pipeline
    >>> model = plugrad.nn.Sequential(plugrad.nn.Linear(4, 8), plugrad.nn.Linear(8, 2))
    >>> pipe = pipeline(model, (plugrad.ones(3, 4),), split_spec={"1": SplitPoint.BEGINNING})
    >>> pipe.num_stages, [name for name, _ in pipe.get_stage_module(1).named_parameters()]
    (2, ['1.weight', '1.bias'])
    >>> x = plugrad.randn(3, 4)
    >>> bool((pipe(x) == model(x)).all())
    True
    """
    if split_policy is not None:
        raise NotImplementedError("pipeline(): split_policy is not supported: give a split_spec")
    marker = plugrad.zeros(())
    arguments = _Arguments(mb_args, mb_kwargs or {})

    def run(*tensors: Tensor) -> Any:
        args, kwargs = arguments.filled(tensors)
        return module(*args, **kwargs)

    _cutting.marker = marker
    try:
        with _cuts(module, split_spec or {}):
            graph = plugrad.capture(run, *arguments.tensors())
    finally:
        _cutting.marker = None
    return Pipe(_stages(module, graph, marker, arguments))


@contextmanager
def _cuts(module: Module, spec: Mapping[str, SplitPoint]) -> Iterator[None]:
    with ExitStack() as stack:
        for name, point in spec.items():
            try:
                part = module.get_submodule(name)
            except AttributeError as error:
                raise AttributeError(
                    f"pipeline(): split_spec names {name!r}, which is no submodule of "
                    f"{type(module).__name__}"
                ) from error
            if point is SplitPoint.BEGINNING:
                handle = part.register_forward_pre_hook(lambda *_: pipe_split())
            elif point is SplitPoint.END:
                handle = part.register_forward_hook(lambda *_: pipe_split())
            else:
                raise ValueError(
                    f"pipeline(): split_spec[{name!r}] must be SplitPoint.BEGINNING or "
                    f"SplitPoint.END, got {point!r}"
                )
            stack.callback(handle.remove)
        yield


class _Arguments:
    """Arguments of a call; the tensors among them are inputs."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._args, self._kwargs = tuple(args), dict(kwargs)

    def tensors(self) -> list[Tensor]:
        return self.tensors_of(self._args, self._kwargs)

    def tensors_of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Tensor]:
        """The tensors of another call like this one.

        Raises:
            TypeError: it has other arguments than tensors, or another number of them.
        """
        if len(args) != len(self._args) or kwargs.keys() != self._kwargs.keys():
            raise TypeError(
                f"the pipeline was made for {len(self._args)} positional arguments and "
                f"{list(self._kwargs)}, got {len(args)} and {list(kwargs)}"
            )
        given = [*args, *(kwargs[name] for name in self._kwargs)]
        return [each for each in given if isinstance(each, Tensor)]

    def filled(self, tensors: Sequence[Tensor]) -> tuple[list[Any], dict[str, Any]]:
        """These arguments with other tensors."""
        following = iter(tensors)

        def new(value: Any) -> Any:
            return next(following) if isinstance(value, Tensor) else value

        args = [new(value) for value in self._args]
        return args, {name: new(value) for name, value in self._kwargs.items()}


class _Stage(Module):
    """A part of the operators, as a module. It has the parameters and buffers that they use, under
    their names in the model."""

    def __init__(
        self,
        nodes: Sequence[Node],
        given: Sequence[str],
        made: Sequence[str],
        metas: Mapping[str, Meta],
    ) -> None:
        super().__init__()
        self._nodes = list(nodes)
        self._given = list(given)
        self._made = list(made)
        self._metas = dict(metas)
        # By name in the graph: the places of parameters and buffers, and other constants.
        self._places: dict[str, str] = {}
        self._constants: dict[str, tuple[Any, bool]] = {}
        # Of the first and the last stage.
        self._arguments: _Arguments | None = None
        self._outputs: tuple[Any, tuple[Any, ...]] | None = None

    def _hold(self, name: str, place: str, value: Tensor) -> None:
        """Add a parameter or a buffer of the model."""
        self._places[name] = place
        *path, last = place.split(".")
        module: Module = self
        for part in path:
            if part not in module._modules:
                module.add_module(part, Module())
            found = module._modules[part]
            assert found is not None
            module = found
        if isinstance(value, Parameter):
            module.register_parameter(last, value)
        else:
            module.register_buffer(last, value)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        given = list(args)
        if self._arguments is not None:
            given = self._arguments.tensors_of(args, kwargs)
        self._check(given)
        values: dict[str, Any] = dict(zip(self._given, given, strict=True))
        for name, place in self._places.items():
            path, _, last = place.rpartition(".")
            values[name] = getattr(self.get_submodule(path), last)
        for name, (value, fresh) in self._constants.items():
            values[name] = value.clone() if fresh else value
        for node in self._nodes:
            _run(node, values)
        if self._outputs is not None:
            tree, leaves = self._outputs
            return unflatten(tree, [_resolved(leaf, values) for leaf in leaves])
        made = tuple(values[name] for name in self._made)
        return made[0] if len(made) == 1 else made

    def _check(self, given: Sequence[Any]) -> None:
        if len(given) != len(self._given):
            raise TypeError(f"the stage takes {len(self._given)} tensors, got {len(given)}")
        for name, tensor in zip(self._given, given, strict=True):
            meta = self._metas[name]
            if tuple(tensor.shape) != tuple(meta.shape) or tensor.dtype != meta.dtype:
                raise ValueError(
                    f"the pipeline was made for microbatches with {meta.dtype} "
                    f"{list(meta.shape)}, got {tensor.dtype} {list(tensor.shape)}: call "
                    "pipeline() with an example of this shape"
                )


def _run(node: Node, values: dict[str, Any]) -> None:
    args = [_resolved(value, values) for value in node.args]
    kwargs = {key: _resolved(value, values) for key, value in node.kwargs.items()}
    # The caller decides where gradients are recorded; the model where they are not.
    with ExitStack() as stack:
        if node.mode != "grad":
            stack.enter_context(plugrad.no_grad())
        result = node.op(*args, **kwargs)
    results = [result] if node.single else (result or [])
    pairs = zip(node.results, results, strict=False)
    values.update({name: each for name, each in pairs if name is not None})


def _resolved(value: Any, values: dict[str, Any]) -> Any:
    if isinstance(value, Ref):
        return values[value.name]
    if isinstance(value, list | tuple):
        return type(value)([_resolved(item, values) for item in value])
    return value


def _stages(module: Module, graph: Graph, marker: Tensor, arguments: _Arguments) -> list[_Stage]:
    marks = {name for name, held in graph.held.items() if held.value is marker}
    parts: list[list[Node]] = [[]]
    for node in graph.nodes:
        if marks.isdisjoint(node.reads()):
            parts[-1].append(node)
        else:
            parts.append([])
    for number, nodes in enumerate(parts):
        if not nodes:
            raise ValueError(
                f"pipeline(): stage {number} of {len(parts)} would have no operators: cut elsewhere"
            )
    metas = {each.name: each.meta for each in graph.inputs}
    metas |= {
        name: meta
        for node in graph.nodes
        for name, meta in zip(node.results, node.metas, strict=True)
        if name is not None and meta is not None
    }
    leaves = tuple(graph.outputs)
    needed = [{name for node in nodes for name in node.reads()} for nodes in parts]
    needed.append({leaf.name for leaf in leaves if isinstance(leaf, Ref)})
    there = [each.name for each in graph.inputs]
    _check_writes(parts, set(graph.held))
    stages: list[_Stage] = []
    for number, nodes in enumerate(parts):
        given = list(there) if number == 0 else list(stages[-1]._made)
        new = [name for node in nodes for name in node.defines()]
        later = set().union(*needed[number + 1 :])
        made = [name for name in dict.fromkeys([*given, *new]) if name in later]
        stages.append(_Stage(nodes, given, made, metas))
    stages[0]._arguments = arguments
    stages[-1]._outputs = graph.output_tree, leaves
    _place_constants(module, graph, stages, needed)
    return stages


def _check_writes(parts: Sequence[Sequence[Node]], constants: set[str]) -> None:
    """A stage must not write to a tensor that it receives: neither the sender nor a separately
    received view of that tensor would see the write."""
    owners: dict[str, str] = {}
    made: dict[str, int] = {}
    for number, nodes in enumerate(parts):
        for node in nodes:
            shares = node.shares or ((),) * len(node.results)
            for name, shared in zip(node.results, shares, strict=True):
                if name is not None and shared:
                    owners.setdefault(name, owners.get(shared[0], shared[0]))
                elif name is not None:
                    made.setdefault(name, number)
            for name in node.writes:
                owner = owners.get(name, name)
                if number and owner not in constants and made.get(owner) != number:
                    raise ValueError(
                        f"pipeline(): stage {number} writes to memory of a stage before, by "
                        f"{node.op}: cut elsewhere"
                    )


def _place_constants(
    module: Module, graph: Graph, stages: Sequence[_Stage], needed: Sequence[set[str]]
) -> None:
    places = {id(tensor): name for name, tensor in module.named_parameters()}
    places |= {id(tensor): name for name, tensor in module.named_buffers()}
    outputs = needed[-1]
    for name, held in graph.held.items():
        users = [
            number
            for number, stage in enumerate(stages)
            if name in needed[number] or (number == len(stages) - 1 and name in outputs)
        ]
        written = any(name in node.writes for node in graph.nodes)
        place = places.get(id(held.value))
        if len(users) > 1 and (written or isinstance(held.value, Parameter)):
            raise ValueError(
                f"pipeline(): {place or name!r} is used by the stages {users}, and would be "
                "trained or written to by each of them: cut so that one stage has it"
            )
        for number in users:
            if place is not None:
                stages[number]._hold(name, place, held.value)
            else:
                stages[number]._constants[name] = held.value, held.fresh


class Pipe(Module):
    """A model in stages. Calling it runs all stages in order.

    Attributes:
        num_stages: the number of stages.

    >>> import plugrad
    >>> from plugrad.distributed.pipelining import SplitPoint, pipeline
    >>> model = plugrad.nn.Sequential(plugrad.nn.Linear(4, 8), plugrad.nn.Linear(8, 2))
    >>> pipe = pipeline(model, (plugrad.ones(3, 4),), split_spec={"1": SplitPoint.BEGINNING})
    >>> pipe.num_stages, pipe(plugrad.ones(3, 4)).shape
    (2, plugrad.Size([3, 2]))
    """

    def __init__(self, stages: Sequence[_Stage]) -> None:
        super().__init__()
        self.num_stages = len(stages)
        for number, stage in enumerate(stages):
            self.add_module(f"submod_{number}", stage)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        found = self.get_stage_module(0)(*args, **kwargs)
        for number in range(1, self.num_stages):
            given = found if isinstance(found, tuple) else (found,)
            found = self.get_stage_module(number)(*given)
        return found

    def get_stage_module(self, stage_idx: int) -> Module:
        """The module of a stage.

        Raises:
            ValueError: there is no such stage.

        >>> import plugrad
        >>> from plugrad.distributed.pipelining import SplitPoint, pipeline
        >>> model = plugrad.nn.Sequential(plugrad.nn.Linear(4, 8), plugrad.nn.Linear(8, 2))
        >>> pipe = pipeline(model, (plugrad.ones(3, 4),), split_spec={"1": SplitPoint.BEGINNING})
        >>> pipe.get_stage_module(0)(plugrad.ones(3, 4)).shape
        plugrad.Size([3, 8])
        >>> pipe.get_stage_module(2)
        Traceback (most recent call last):
            ...
        ValueError: Invalid stage index 2!
        """
        if not 0 <= stage_idx < self.num_stages:
            raise ValueError(f"Invalid stage index {stage_idx}!")
        return self.get_submodule(f"submod_{stage_idx}")

    def build_stage(self, stage_index: int, device: Any, group: Any = None) -> PipelineStage:
        """The `PipelineStage` for a schedule.

        Args:
            stage_index: the index of this rank's stage.
            device: where the stage's tensors are.
            group: the ranks; all by default.

        >>> import plugrad, plugrad.distributed as dist
        >>> from plugrad.distributed.pipelining import ScheduleGPipe, SplitPoint, pipeline
        >>> model = plugrad.nn.Sequential(plugrad.nn.Linear(4, 8), plugrad.nn.Linear(8, 2))
        >>> pipe = pipeline(model, (plugrad.ones(2, 4),), split_spec={"1": SplitPoint.BEGINNING})
        >>> def run():
        ...     stage = pipe.build_stage(dist.get_rank(), "cpu")
        ...     schedule = ScheduleGPipe(stage, n_microbatches=3)
        ...     return schedule.eval(*([plugrad.ones(6, 4)] if stage.is_first else []))
        >>> dist.run_ranks(run, 2)[1].shape
        plugrad.Size([6, 2])
        """
        module = self.get_stage_module(stage_index)
        return PipelineStage(module, stage_index, self.num_stages, device, group=group)
