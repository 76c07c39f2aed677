"""Filter: the samples that a function is true of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from plugrad_nn.utils.data.datapipes._columns import called, check_columns, check_function
from plugrad_nn.utils.data.datapipes._decorator import functional_datapipe
from plugrad_nn.utils.data.datapipes.datapipe import IterDataPipe

T_co = TypeVar("T_co", covariant=True)


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe[T_co]):
    """The samples that a function is true of: `pipe.filter(filter_fn)`.

    Args:
        datapipe: the source.
        filter_fn: of a sample, or of the input columns; returns a bool.
        input_col: the key or index of its argument, or a list of them; None for the sample.

    Raises:
        ValueError: `filter_fn` takes another number of arguments or, while it is read, returns
            something else.

    >>> from plugrad.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper(["a", "", "b"]).filter(bool))
    ['a', 'b']
    """

    def __init__(
        self, datapipe: IterDataPipe[T_co], filter_fn: Callable[..., Any], input_col: Any = None
    ) -> None:
        check_function(filter_fn)
        self.datapipe = datapipe
        self.filter_fn = filter_fn
        self.input_col = input_col
        check_columns(filter_fn, input_col)

    def __iter__(self) -> Iterator[T_co]:
        for sample in self.datapipe:
            is_kept = called(self.filter_fn, sample, self.input_col)
            if not isinstance(is_kept, bool):
                raise ValueError(
                    "Boolean output is required for `filter_fn` of FilterIterDataPipe, got",
                    type(is_kept),
                )
            if is_kept:
                yield sample
