"""Join: training while some ranks have more inputs than others."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple

import plugrad
from plugrad_distributed.distributed.collectives import all_reduce
from plugrad_distributed.distributed.starting import get_rank
from plugrad_distributed.groups.work import Work

__all__ = ["Join", "JoinHook", "Joinable"]

WARN_AFTER = 1000


class JoinHook:
    """What a rank does for an object once its own inputs are used up."""

    def main_hook(self) -> None:
        """Take part in the collectives of one iteration of the ranks that go on."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called once the inputs of all ranks are used up.

        Args:
            is_last_joiner: whether this rank was among the last.
        """


class _JoinConfig(NamedTuple):
    """What a `Join` tells an object that takes part."""

    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    @staticmethod
    def construct_disabled_join_config() -> _JoinConfig:
        """That of an object outside any `Join`."""
        return _JoinConfig(False, False, False)


class Joinable(ABC):
    """An object whose collectives ranks without inputs can take part in.

    Its class calls `Join.notify_join_context(self)` before the collectives of an iteration.
    """

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig.construct_disabled_join_config()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook of this object; keywords are those that `Join` got."""

    @property
    @abstractmethod
    def join_device(self) -> plugrad.device:
        """The device for the tensors by which `Join` communicates."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The group in which it communicates."""


class Join:
    """Context manager around a training loop in which ranks may have different numbers of inputs.

    A rank that leaves the loop takes part in the collectives of the others until all are done: the
    hooks of the joinables do that.

    Args:
        joinables: models and optimizers that communicate in each iteration; the first one in an
            iteration comes first.
        enable: False switches it off, where inputs are known to be even.
        throw_on_early_termination: raise on all ranks as soon as the inputs of one are used up.
        kwargs: for the hooks of all joinables.

    Raises:
        ValueError: there are no joinables, or their groups differ.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.algorithms.join import Join
    >>> def program():
    ...     model = plugrad.nn.parallel.DistributedDataParallel(plugrad.nn.Linear(1, 1))
    ...     with Join([model]):
    ...         for _ in range(1 + dist.get_rank()):
    ...             model(plugrad.ones(1, 1)).sum().backward()
    ...     return "done"
    >>> dist.run_ranks(program, 2)
    ['done', 'done']
    """

    def __init__(
        self,
        joinables: Sequence[Joinable],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if len(joinables) == 0:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables = list(joinables)
        self._join_hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._enable = enable
        self._throw_on_early_termination = throw_on_early_termination
        first = self._joinables[0]
        self._process_group = first.join_process_group
        self._device = first.join_device
        for joinable in self._joinables:
            if joinable.join_process_group is not self._process_group:
                raise ValueError("Using join context manager with multiple process groups")
        self._rank = get_rank(self._process_group)
        for joinable in self._joinables:
            joinable._join_config = _JoinConfig(
                enable, throw_on_early_termination, joinable is first
            )

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        type: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for joinable in self._joinables:
            joinable._join_config = _JoinConfig.construct_disabled_join_config()
        if self._enable and type is None:
            self._shadow_others()

    def _shadow_others(self) -> None:
        iterations = 0
        while self._others():
            if self._throw_on_early_termination:
                self._notify_procs_to_terminate()
            if iterations == WARN_AFTER:
                warnings.warn(
                    f"rank {self._rank} has at least {WARN_AFTER} fewer inputs than others: "
                    "training is slow so",
                    stacklevel=2,
                )
            for hook in self._join_hooks:
                hook.main_hook()
            iterations += 1
        for hook in self._join_hooks:
            hook.post_hook(iterations == 0)

    def _others(self) -> int:
        """How many ranks still have inputs."""
        count = plugrad.zeros(1, device=self._device)
        all_reduce(count, group=self._process_group)
        return int(count)

    def _notify_procs_to_terminate(self) -> None:
        all_reduce(plugrad.ones(1, device=self._device), group=self._process_group)
        raise RuntimeError(f"Rank {self._rank} exhausted all inputs.")

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Work | None:
        """Say that this rank has inputs; called by a joinable before the collectives of an
        iteration.

        Returns:
            The work of an `all_reduce` whose result is the number of ranks that have inputs, if the
            joinable is the first one of an enabled `Join`; else None.

        Raises:
            RuntimeError: the inputs of a rank are used up, and `throw_on_early_termination` is set.
        """
        config = getattr(joinable, "_join_config", None)
        if config is None:
            raise AssertionError(
                f"Check that the {type(joinable)} constructor calls the ``Joinable`` constructor"
            )
        if not (config.is_first_joinable and config.enable):
            return None
        device, group = joinable.join_device, joinable.join_process_group
        work = all_reduce(plugrad.ones(1, device=device), group=group, async_op=True)
        if config.throw_on_early_termination:
            ended = plugrad.zeros(1, device=device)
            all_reduce(ended, group=group)
            if ended.item():
                raise RuntimeError(
                    "Detected at least one rank that exhausted inputs. Throwing across all ranks."
                )
        return work
