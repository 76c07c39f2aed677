"""ZeroRedundancyOptimizer: each rank updates a part of the parameters, and keeps only that part's
state."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.data_parallel.module_states import broadcast_coalesced
from plugrad_distributed.data_parallel.overlapping import OverlappingSteps
from plugrad_distributed.distributed.algorithms.join import Join, Joinable, JoinHook
from plugrad_distributed.distributed.collectives import broadcast
from plugrad_distributed.distributed.objects import gather_object
from plugrad_distributed.distributed.queries import get_group
from plugrad_nn.optim.optimizer import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]

ParamGroup = dict[str, Any]


class _ZeROJoinHook(JoinHook):
    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self.optimizer = optimizer

    def main_hook(self) -> None:
        """The step of this rank's part; the others wait for its parameters. The module's hook runs
        the steps during backward."""
        if self.optimizer.overlapping is None:
            self.optimizer.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Any optimizer, with its state divided among the ranks of a group.

    Each parameter belongs to one rank, and all ranks have about the same number of elements. A step
    updates a rank's own parameters and sends them to the others. Gradients must be the same on all
    ranks.

    Args:
        params: tensors or groups, the same on all ranks.
        optimizer_class: the class of the optimizer, such as `plugrad.optim.Adam`.
        process_group: the ranks; all by default.
        parameters_as_bucket_view: keep the parameters of a rank concatenated in one tensor, which
            is sent without a copy. Do not replace their `data` then.
        overlap_with_ddp: the steps run during backward, by a hook of
            `plugrad.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook`, and `step()` does
            nothing. `parameters_as_bucket_view` is then ignored: it is always so.
        defaults: arguments of the optimizer.

    Raises:
        TypeError: `params` are not tensors or groups.
        ValueError: there are none, or `overlap_with_ddp` with an optimizer that needs a closure.

    Attributes:
        optim: the optimizer of this rank's part.
        overlapping: the steps during backward, or None.

    Source: Rajbhandari et al., "ZeRO: Memory optimizations toward training trillion parameter
    models", 2020, stage 1.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.optim import ZeroRedundancyOptimizer
    >>> def program():
    ...     weights = [plugrad.nn.Parameter(plugrad.ones(2)) for _ in range(2)]
    ...     optimizer = ZeroRedundancyOptimizer(weights, plugrad.optim.Adam, lr=0.5)
    ...     sum(w.sum() for w in weights).backward()
    ...     optimizer.step()
    ...     return [round(w[0].item(), 4) for w in weights], len(optimizer.optim.state)
    >>> dist.run_ranks(program, 2)
    [([0.5, 0.5], 1), ([0.5, 0.5], 1)]
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if not (isinstance(optimizer_class, type) and issubclass(optimizer_class, Optimizer)):
            raise TypeError(
                "ZeroRedundancyOptimizer: optimizer_class must be a class of optimizers, got "
                f"{optimizer_class!r}"
            )
        if overlap_with_ddp and _needs_closure(optimizer_class):
            raise ValueError(
                "ZeroRedundancyOptimizer: overlap_with_ddp=True needs an optimizer whose step() "
                f"works without a closure, got {optimizer_class.__name__}"
            )
        given = _checked(params)
        group = get_group(process_group, "ZeroRedundancyOptimizer")
        if group is None:
            raise ValueError("ZeroRedundancyOptimizer: this rank is not part of process_group")
        self.initialized = False
        self.process_group = group
        self.world_size = group.size()
        self.rank = group.rank()
        self.global_rank = group.ranks[self.rank]
        self.parameters_as_bucket_view = parameters_as_bucket_view and not overlap_with_ddp
        self.overlapping = OverlappingSteps(self) if overlap_with_ddp else None
        self._optim_constructor = optimizer_class
        self._optim_defaults = defaults
        self._all_state_dicts: list[dict[str, Any]] = []
        self._owner: dict[Tensor, int] = {}
        self._sizes = [0] * self.world_size
        Optimizer.__init__(self, given, dict(defaults))
        Joinable.__init__(self)
        self._make_local_optimizer()
        self._make_buckets()
        self.initialized = True

    def _make_local_optimizer(self) -> None:
        own = self._shard(self.rank, self.param_groups)
        self.optim = self._optim_constructor(own, **self._optim_defaults)
        # The state is this rank's; groups show all options of the optimizer.
        self.state = self.optim.state
        _copy_options(self.optim.param_groups, self.param_groups, missing_only=True)
        self.defaults = self.optim.defaults

    # Which rank owns which parameters

    def add_param_group(self, param_group: ParamGroup) -> None:
        """Add parameters with their own options, on all ranks.

        Raises:
            RuntimeError: the optimizer was made with `overlap_with_ddp=True`.
        """
        if self.initialized and self.overlapping is not None:
            raise RuntimeError(
                "ZeroRedundancyOptimizer with `overlap_with_ddp=True` takes all parameter groups "
                "when it is made"
            )
        Optimizer.add_param_group(self, param_group)
        # The largest first, each to the rank with the fewest elements; earlier groups stay where
        # they are.
        for parameter in sorted(
            self.param_groups[-1]["params"], key=lambda p: p.numel(), reverse=True
        ):
            rank = self._sizes.index(min(self._sizes))
            self._owner[parameter] = rank
            self._sizes[rank] += parameter.numel()
        if self.initialized:
            (own,) = self._shard(self.rank, self.param_groups[-1:])
            self.optim.add_param_group(own)
            _copy_options(self.optim.param_groups, self.param_groups, missing_only=True)
            self._make_buckets()

    def _shard(self, rank: int, groups: Sequence[ParamGroup]) -> list[ParamGroup]:
        """The groups with only the parameters of one rank."""
        return [
            {**group, "params": [p for p in group["params"] if self._owner[p] == rank]}
            for group in _without_names(groups)
        ]

    def _of_ranks(self) -> list[list[Tensor]]:
        """The parameters that are updated, by rank."""
        found: list[list[Tensor]] = [[] for _ in range(self.world_size)]
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.requires_grad:
                    found[self._owner[parameter]].append(parameter)
        return found

    def _make_buckets(self) -> None:
        """Concatenate the parameters of each rank, by dtype and device."""
        self._buckets: list[list[Tensor]] = [[] for _ in range(self.world_size)]
        self._in_buckets: list[Tensor] = []
        if not self.parameters_as_bucket_view or self.world_size == 1:
            return
        for rank, parameters in enumerate(self._of_ranks()):
            by_kind: dict[Any, list[Tensor]] = {}
            for parameter in parameters:
                by_kind.setdefault((parameter.dtype, parameter.device), []).append(parameter)
            for alike in by_kind.values():
                with plugrad.no_grad():
                    flat = plugrad.cat([p.detach().reshape(-1) for p in alike])
                    parts = flat.split([p.numel() for p in alike])
                    for parameter, part in zip(alike, parts, strict=True):
                        parameter.data = part.view(parameter.shape)
                self._buckets[rank].append(flat)
                self._in_buckets += alike

    # Steps

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Update this rank's parameters, and send them to the others. With `overlap_with_ddp=True`
        this only warns and returns None.

        Args:
            closure: evaluates the model again and returns the loss, which `step` returns.
            kwargs: arguments of the optimizer's `step`.
        """
        if self.overlapping is not None:
            warnings.warn(
                "`step()` should not be included in the training loop when `overlap_with_ddp=True`",
                stacklevel=2,
            )
            return None
        Join.notify_join_context(self)
        self._check_trainable()
        _copy_options(self.param_groups, self.optim.param_groups)
        if any(group["params"] for group in self.optim.param_groups):
            found = self.optim.step(closure, **kwargs) if closure else self.optim.step(**kwargs)
        else:
            found = self._evaluated(closure)
        _copy_options(self.optim.param_groups, self.param_groups)
        self._send_parameters()
        return found

    def _step_with(self, gradients: Mapping[Tensor, Tensor]) -> None:
        """Update some of this rank's parameters by gradients that they do not have yet."""
        own = [parameter for group in self.optim.param_groups for parameter in group["params"]]
        former = [parameter.grad for parameter in own]
        _copy_options(self.param_groups, self.optim.param_groups)
        try:
            for parameter in own:
                # Without a gradient, a parameter and its state stay as they are.
                parameter.grad = gradients.get(parameter)
            self.optim.step()
        finally:
            for parameter, gradient in zip(own, former, strict=True):
                parameter.grad = gradient
        _copy_options(self.optim.param_groups, self.param_groups)

    def _reassign(self, owners: Mapping[Tensor, int]) -> None:
        """Divide the parameters anew, before the first step."""
        self._owner.update(owners)
        self._make_local_optimizer()

    @staticmethod
    def _evaluated(closure: Callable[[], Any] | None) -> Any:
        """The result of a step without parameters. The closure still runs, because it may
        communicate."""
        if closure is None:
            return None
        with plugrad.enable_grad():
            return closure()

    def _check_trainable(self) -> None:
        """Parameters that were frozen or unfrozen since then belong to other buckets."""
        if self._in_buckets:
            now = {id(p) for parameters in self._of_ranks() for p in parameters}
            if now != {id(p) for p in self._in_buckets}:
                self._make_buckets()

    def _send_parameters(self) -> None:
        if self.world_size == 1:
            return
        if self._in_buckets:
            works = [
                broadcast(flat, group=self.process_group, group_src=rank, async_op=True)
                for rank, buckets in enumerate(self._buckets)
                for flat in buckets
            ]
            for work in works:
                if work is not None:
                    work.wait()
            return
        for rank, parameters in enumerate(self._of_ranks()):
            broadcast_coalesced(parameters, self.process_group, rank)

    # State

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Send the state of all ranks to the rank `to`, a number in the group. All ranks call this;
        afterwards `state_dict` returns the state on that rank."""
        self._check_divided("consolidate_state_dict()")
        if not 0 <= to < self.world_size:
            raise ValueError(
                f"consolidate_state_dict(): to must be in the interval [0, {self.world_size - 1}], "
                f"got {to}"
            )
        _copy_options(self.param_groups, self.optim.param_groups)
        own = _on_host(self.optim.state_dict())
        if self.world_size == 1:
            self._all_state_dicts = [own]
            return
        found: list[Any] | None = [None] * self.world_size if self.rank == to else None
        gather_object(own, found, group=self.process_group, group_dst=to)
        self._all_state_dicts = found or []

    def state_dict(self) -> dict[str, Any]:
        """The state of all ranks as a single optimizer's, as of the last `consolidate_state_dict`.

        Raises:
            RuntimeError: it was not consolidated on this rank.
        """
        if not self._all_state_dicts:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to "
                "save the global state."
            )
        found = Optimizer.state_dict(self)
        numbers = self._numbers()
        state: dict[int, Any] = {}
        for rank, local in enumerate(self._all_state_dicts):
            shards = self._shard(rank, self.param_groups)
            for packed, group in zip(local["param_groups"], shards, strict=True):
                for number, parameter in zip(packed["params"], group["params"], strict=True):
                    if number in local["state"]:
                        state[numbers[parameter]] = local["state"][number]
        found["state"] = dict(sorted(state.items()))
        return found

    def _check_divided(self, call: str) -> None:
        if self.overlapping is not None and not self.overlapping.initialized:
            raise RuntimeError(
                f"ZeroRedundancyOptimizer.{call}: with `overlap_with_ddp=True` parameters belong "
                "to ranks only after the third backward pass"
            )

    def _numbers(self) -> dict[Tensor, int]:
        """The number of each parameter in a state dict."""
        every = [parameter for group in self.param_groups for parameter in group["params"]]
        return {parameter: number for number, parameter in enumerate(every)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load options, and this rank's part of the state. All ranks pass the whole state dict,
        which may come from the optimizer on one process or on another number of ranks.

        Raises:
            ValueError: its groups differ.
            RuntimeError: with `overlap_with_ddp=True`, before the third backward pass.
        """
        self._check_divided("load_state_dict()")
        numbers = self._numbers()
        groups = state_dict["param_groups"]
        if [len(group["params"]) for group in groups] != [
            len(group["params"]) for group in self.param_groups
        ]:
            raise ValueError(
                "ZeroRedundancyOptimizer.load_state_dict(): the state dict's groups must have "
                f"{[len(group['params']) for group in self.param_groups]} parameters, got "
                f"{[len(group['params']) for group in groups]}"
            )
        shards = self._shard(self.rank, self.param_groups)
        saved = [number for group in groups for number in group["params"]]
        local = [
            {
                **{key: value for key, value in group.items() if key != "param_names"},
                "params": [saved[numbers[parameter]] for parameter in shard["params"]],
            }
            for group, shard in zip(groups, shards, strict=True)
        ]
        wanted = {number for group in local for number in group["params"]}
        state = {key: value for key, value in state_dict["state"].items() if key in wanted}
        self.optim.load_state_dict({"state": state, "param_groups": local})
        self.state = self.optim.state
        _copy_options(self.optim.param_groups, self.param_groups)

    # Uneven inputs

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook for `Join`: makes a step in each iteration of the others."""
        return _ZeROJoinHook(self)

    @property
    def join_device(self) -> plugrad.device:
        """The device of the first parameter."""
        device: plugrad.device = self.param_groups[0]["params"][0].device
        return device

    @property
    def join_process_group(self) -> Any:
        """The group."""
        return self.process_group


def _needs_closure(optimizer_class: type[Optimizer]) -> bool:
    closure = inspect.signature(optimizer_class.step).parameters.get("closure")
    return closure is not None and closure.default is inspect.Parameter.empty


def _checked(params: Any) -> list[Any]:
    """The parameters or groups as a list."""
    if isinstance(params, Tensor) or not isinstance(params, Iterable):
        raise TypeError(
            "`params` argument should be an iterable of Tensors or dicts, but got "
            f"{type(params).__name__}"
        )
    found = list(params)
    if not found:
        raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
    kinds = [all(isinstance(each, kind) for each in found) for kind in (Tensor, dict, tuple)]
    if not any(kinds):
        raise TypeError("`params` argument should be an iterable of Tensors or dicts")
    return found


def _without_names(groups: Sequence[ParamGroup]) -> list[ParamGroup]:
    return [{k: v for k, v in group.items() if k != "param_names"} for group in groups]


def _copy_options(
    source: Sequence[ParamGroup], target: Sequence[ParamGroup], *, missing_only: bool = False
) -> None:
    """Copy the options of groups to others; parameters and names stay."""
    for given, group in zip(source, target, strict=True):
        for key, value in given.items():
            if key in ("params", "param_names") or (missing_only and key in group):
                continue
            group[key] = value


def _on_host(value: Any) -> Any:
    """A copy with its tensors on the CPU."""
    if isinstance(value, Tensor):
        return value.detach().cpu().clone()
    if isinstance(value, dict):
        return {key: _on_host(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_on_host(each) for each in value)
    return value
