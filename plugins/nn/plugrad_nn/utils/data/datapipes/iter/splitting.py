"""Forker and Demultiplexer: each makes several pipes from one, which is read once."""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

from plugrad_nn.utils.data.datapipes._columns import check_function
from plugrad_nn.utils.data.datapipes._decorator import functional_datapipe
from plugrad_nn.utils.data.datapipes._hook_iterator import invalidated_child
from plugrad_nn.utils.data.datapipes.datapipe import IterDataPipe

_COPIES: Final[dict[str | None, Callable[[Any], Any]]] = {
    None: lambda sample: sample,
    "shallow": copy.copy,
    "deep": copy.deepcopy,
}


class _ChildDataPipe(IterDataPipe[Any]):
    """One of the pipes that read the same source.

    A pass over the source has a number, the main pipe's; a child that reads for a second time in
    one pass begins the next, and so invalidates the iterators of all children.
    """

    _is_child_datapipe = True

    def __init__(self, main_datapipe: _Shared, instance_id: int) -> None:
        self.main_datapipe = main_datapipe
        self.instance_id = instance_id

    def __iter__(self) -> Iterator[Any]:
        return self.main_datapipe.read(self.instance_id)

    def __len__(self) -> int:
        return len(self.main_datapipe)

    def _begin_iterator(self) -> int:
        main = self.main_datapipe
        if main._valid_iterator_id is None:
            main._begin_iterator()
        elif self._valid_iterator_id == main._valid_iterator_id:
            if not main.is_every_instance_exhausted():
                warnings.warn(
                    "Some child DataPipes are not exhausted when __iter__ is called. We are "
                    "resetting the buffer and each child DataPipe will read from the start again.",
                    UserWarning,
                    stacklevel=3,
                )
            main._begin_iterator()
        number = main._valid_iterator_id
        if number is None:
            raise AssertionError("the main pipe has a number by now")
        self._valid_iterator_id = number
        return number

    def _check_iterator(self, number: int) -> None:
        if number != self._valid_iterator_id or number != self.main_datapipe._valid_iterator_id:
            raise invalidated_child(self.main_datapipe)


class _Shared(IterDataPipe[Any]):
    """The main pipe: it reads the source, and stores samples that some children have not read
    yet."""

    def __init__(self, datapipe: IterDataPipe[Any], num_instances: int, buffer_size: int) -> None:
        self.main_datapipe = datapipe
        self.num_instances = num_instances
        self.buffer_size = buffer_size
        self.reset()

    def reset(self) -> None:
        """Begin another pass, of all children."""
        self._source: Iterator[Any] | None = None
        self._is_at_end = False
        self._done = [False] * self.num_instances
        self._waiting: list[deque[Any]] = [deque() for _ in range(self.num_instances)]

    def _state(self) -> dict[str, Any]:
        # A copy starts from the beginning, because an iterator cannot be copied.
        fresh: dict[str, Any] = {
            "_source": None,
            "_is_at_end": False,
            "_done": [False] * self.num_instances,
        }
        waiting: dict[str, Any] = {"_waiting": [deque() for _ in range(self.num_instances)]}
        return {**super()._state(), **fresh, **waiting}

    def is_every_instance_exhausted(self) -> bool:
        """Whether all children have read to the end."""
        return all(self._done)

    def read(self, instance_id: int) -> Iterator[Any]:
        """The samples of one child."""
        while True:
            while not self._waiting[instance_id] and not self._is_at_end:
                self._advance(instance_id)
            if not self._waiting[instance_id]:
                self._done[instance_id] = True
                return
            yield self._waiting[instance_id].popleft()

    def _advance(self, instance_id: int) -> None:
        """Read one more sample of the source, for those that it is for."""
        if self._source is None:
            self._source = iter(self.main_datapipe)
        try:
            sample = next(self._source)
        except StopIteration:
            self._is_at_end = True
            return
        self._put(sample, instance_id)

    @abstractmethod
    def _put(self, sample: Any, reader: int) -> None:
        """Let a sample wait; BufferError if too many do, besides one for the reader."""


class _ForkerIterDataPipe(_Shared):
    def __init__(
        self,
        datapipe: IterDataPipe[Any],
        num_instances: int,
        buffer_size: int = 1000,
        copy: str | None = None,
    ) -> None:
        if copy not in _COPIES:
            raise ValueError(
                f"Unknown copy method `{copy}` requested, choose one of None, `shallow` or `deep`."
            )
        self.copy_fn = copy
        super().__init__(datapipe, num_instances, buffer_size)

    def __len__(self) -> int:
        return len(self.main_datapipe)

    def _put(self, sample: Any, reader: int) -> None:
        most = max(len(waiting) for waiting in self._waiting)
        if 0 <= self.buffer_size <= most:
            raise BufferError(
                "ForkerIterDataPipe buffer overflow,"
                f"buffer size {self.buffer_size} is insufficient."
            )
        for waiting in self._waiting:
            waiting.append(_COPIES[self.copy_fn](sample))


class _DemultiplexerIterDataPipe(_Shared):
    def __init__(
        self,
        datapipe: IterDataPipe[Any],
        num_instances: int,
        classifier_fn: Callable[[Any], int | None],
        drop_none: bool = False,
        buffer_size: int = 1000,
    ) -> None:
        self.classifier_fn = classifier_fn
        self.drop_none = drop_none
        super().__init__(datapipe, num_instances, buffer_size)

    def _put(self, sample: Any, reader: int) -> None:
        place = self.classifier_fn(sample)
        if place is None and self.drop_none:
            return
        if place is None or not 0 <= place < self.num_instances:
            raise ValueError(
                "Output of the classification fn should be between 0 and "
                f"{self.num_instances - 1}. {place} is returned."
            )
        waiting = sum(map(len, self._waiting))
        if place != reader and 0 <= self.buffer_size <= waiting:
            raise BufferError(
                "DemultiplexerIterDataPipe buffer overflow, buffer size "
                f"{self.buffer_size} is insufficient."
            )
        self._waiting[place].append(sample)


def _children(main: _Shared) -> list[Any]:
    return [_ChildDataPipe(main, number) for number in range(main.num_instances)]


def _check_sizes(name: str, num_instances: int, buffer_size: int) -> None:
    if num_instances < 1:
        raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
    if buffer_size < 0:
        warnings.warn(
            f"Unlimited buffer size is set for `{name}`, please be aware of OOM at random places",
            UserWarning,
            stacklevel=4,
        )


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe[Any]):
    """A list of pipes that give the same samples: `pipe.fork(n)`. The source is read once.

    Args:
        datapipe: the source.
        num_instances: how many pipes; a single one is the source itself.
        buffer_size: how far one may be ahead of another; negative for any distance.
        copy: None for the same objects, ``"shallow"`` or ``"deep"``.

    Raises:
        ValueError: `num_instances` is less than one, or `copy` has another value.
        BufferError: while they are read, one is too far ahead.

    >>> from plugrad.utils.data.datapipes.iter import IterableWrapper
    >>> first, second = IterableWrapper("ab").fork(2)
    >>> list(first), list(second)
    (['a', 'b'], ['a', 'b'])
    """

    def __new__(
        cls,
        datapipe: IterDataPipe[Any],
        num_instances: int,
        buffer_size: int = 1000,
        copy: str | None = None,
    ) -> Any:
        _check_sizes("fork", num_instances, buffer_size)
        if num_instances == 1:
            return datapipe
        return _children(_ForkerIterDataPipe(datapipe, num_instances, buffer_size, copy))


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe[Any]):
    """A list of pipes, and each sample goes to one: `pipe.demux(n, classifier_fn)`.

    Args:
        datapipe: the source.
        num_instances: how many pipes.
        classifier_fn: a function that returns the number of a sample's pipe, or None.
        drop_none: leave out samples for which that is None, instead of raising an error.
        buffer_size: how many samples may wait, over all pipes; negative for any number.

    Raises:
        ValueError: `num_instances` is less than one or, while reading, `classifier_fn` returns a
            number without a pipe.
        BufferError: while they are read, too many samples wait.

    >>> from plugrad.utils.data.datapipes.iter import IterableWrapper
    >>> even, odd = IterableWrapper(range(4)).demux(2, (2).__rmod__)
    >>> list(even), list(odd)
    ([0, 2], [1, 3])
    """

    def __new__(
        cls,
        datapipe: IterDataPipe[Any],
        num_instances: int,
        classifier_fn: Callable[[Any], int | None],
        drop_none: bool = False,
        buffer_size: int = 1000,
    ) -> Any:
        _check_sizes("demux", num_instances, buffer_size)
        check_function(classifier_fn)
        main = _DemultiplexerIterDataPipe(
            datapipe, num_instances, classifier_fn, drop_none, buffer_size
        )
        return _children(main)
