"""Join: training while some ranks have more inputs than others."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple

import plugrad
from plugrad_distributed.distributed.collectives import all_reduce
from plugrad_distributed.distributed.queries import get_rank
from plugrad_distributed.groups.work import Work

__all__ = ["Join", "JoinHook", "Joinable"]

WARN_AFTER = 1000


class JoinHook:
    """What a rank does for an object after it has run out of inputs.

    >>> from plugrad.distributed.algorithms.join import JoinHook
    >>> class Told(JoinHook):
    ...     def main_hook(self):
    ...         print("one more iteration")
    ...     def post_hook(self, is_last_joiner):
    ...         print("all ranks are done")
    >>> Told().post_hook(is_last_joiner=True)
    all ranks are done
    """

    def main_hook(self) -> None:
        """Take part in the collectives of one iteration of the remaining ranks."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called once when all ranks have run out of inputs.

        Args:
            is_last_joiner: whether this rank was among the last.
        """


class _JoinConfig(NamedTuple):
    """The settings that a `Join` passes to a participating object."""

    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    @staticmethod
    def construct_disabled_join_config() -> _JoinConfig:
        """The settings of an object outside any `Join`."""
        return _JoinConfig(False, False, False)


class Joinable(ABC):
    """An object that can join: ranks without inputs can join its collectives.

    Its class calls `Join.notify_join_context(self)` before the collectives of an iteration.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.algorithms.join import Join, Joinable, JoinHook
    >>> class Counter(Joinable):
    ...     # Counts the inputs of all ranks.
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.total = plugrad.zeros(1)
    ...     def count(self):
    ...         Join.notify_join_context(self)
    ...         self.add(plugrad.ones(1))
    ...     def add(self, own):
    ...         dist.all_reduce(own)
    ...         self.total += own
    ...     def join_hook(self, **kwargs):
    ...         return Shadow(self)
    ...     join_device = plugrad.device("cpu")
    ...     join_process_group = property(lambda self: dist.group.WORLD)
    >>> class Shadow(JoinHook):
    ...     def __init__(self, counter):
    ...         self.counter = counter
    ...     def main_hook(self):
    ...         self.counter.add(plugrad.zeros(1))
    >>> def total():
    ...     counter = Counter()
    ...     with Join([counter]):
    ...         for _ in range(1 + dist.get_rank()):
    ...             counter.count()
    ...     return counter.total.item()
    >>> dist.run_ranks(total, 3)
    [6.0, 6.0, 6.0]
    """

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig.construct_disabled_join_config()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook of this object, with the keywords of `Join`."""

    @property
    @abstractmethod
    def join_device(self) -> plugrad.device:
        """The device of the tensors that `Join` communicates."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The group in which this object communicates."""


class Join:
    """Context manager around a training loop in which ranks may have different numbers of inputs.

    A rank that leaves the loop joins the collectives of the others until all are done,
    through the hooks of the joinables.

    Args:
        joinables: models and optimizers that communicate in each iteration, in the order in which
            they do.
        enable: False disables it, for inputs that are known to be even.
        throw_on_early_termination: raise on all ranks as soon as one runs out of inputs.
        kwargs: keywords for the hooks of all joinables.

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
        """The number of ranks that still have inputs."""
        count = plugrad.zeros(1, device=self._device)
        all_reduce(count, group=self._process_group)
        return int(count)

    def _notify_procs_to_terminate(self) -> None:
        all_reduce(plugrad.ones(1, device=self._device), group=self._process_group)
        raise RuntimeError(f"Rank {self._rank} exhausted all inputs.")

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Work | None:
        """Announce that this rank has inputs. A joinable calls it before the collectives of an
        iteration.

        Returns:
            The work of an `all_reduce` that counts the ranks with inputs, if the joinable is the
            first one of an enabled `Join`; else None.

        Raises:
            RuntimeError: a rank has run out of inputs, and `throw_on_early_termination` is set.

        >>> import plugrad, plugrad.distributed as dist
        >>> from plugrad.distributed.algorithms.join import Join
        >>> def program():
        ...     model = plugrad.nn.parallel.DistributedDataParallel(plugrad.nn.Linear(1, 1))
        ...     # The model calls this in its forward; outside of a Join it does nothing.
        ...     return Join.notify_join_context(model)
        >>> dist.run_ranks(program, 2)
        [None, None]
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
