"""Mapper and Collator: a function applied to each sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from plugrad_nn.utils.data._utils.collate import default_collate
from plugrad_nn.utils.data.datapipes._columns import (
    called,
    check_columns,
    check_function,
    single_output,
    with_result,
)
from plugrad_nn.utils.data.datapipes._decorator import functional_datapipe
from plugrad_nn.utils.data.datapipes.datapipe import IterDataPipe


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe[Any]):
    """A function of each sample: `pipe.map(fn)`.

    Args:
        datapipe: the source.
        fn: of a sample, or of the input columns.
        input_col: the key or index of the argument of `fn`, or a list of them; None for the sample.
        output_col: the key or index for the result, in a copy of the sample; -1 appends it. None
            means the input column; of several, the first, and the others are removed.

    Raises:
        ValueError: `fn` takes another number of arguments, or the columns exclude each other.

    >>> from plugrad.utils.data.datapipes.iter import IterableWrapper
    >>> pipe = IterableWrapper([(1, 2), (3, 4)])
    >>> list(pipe.map(sum)), list(pipe.map(str, input_col=1))
    ([3, 7], [(1, '2'), (3, '4')])
    """

    def __init__(
        self,
        datapipe: IterDataPipe[Any],
        fn: Callable[..., Any],
        input_col: Any = None,
        output_col: Any = None,
    ) -> None:
        check_function(fn)
        self.datapipe = datapipe
        self.fn = fn
        self.input_col = input_col
        self.output_col = single_output(input_col, output_col)
        check_columns(fn, input_col)

    def __iter__(self) -> Iterator[Any]:
        for sample in self.datapipe:
            result = called(self.fn, sample, self.input_col)
            if self.input_col is None:
                yield result
            else:
                yield with_result(sample, result, self.input_col, self.output_col)

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Each batch put together to tensors: `pipe.batch(n).collate()`.

    Args:
        datapipe: the source, of batches.
        conversion: a function that makes tensors from a batch.
        collate_fn: the same; it has precedence over `conversion`.

    Raises:
        NotImplementedError: `conversion` is a dict, which is for the columns of data frames.

    >>> from plugrad.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper([1, 2, 3]).batch(2).collate())
    [tensor([1, 2]), tensor([3])]
    """

    def __init__(
        self,
        datapipe: IterDataPipe[Any],
        conversion: Callable[..., Any] | dict[Any, Any] | None = default_collate,
        collate_fn: Callable[..., Any] | None = None,
    ) -> None:
        function = conversion if collate_fn is None else collate_fn
        if not callable(function):
            raise NotImplementedError(
                "collate: expected a function as conversion, but got "
                f"{type(function).__name__}; plugrad has no pipes of data frames"
            )
        super().__init__(datapipe, fn=function)
