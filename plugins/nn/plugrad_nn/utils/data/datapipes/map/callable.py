"""Mapper: a function applied to each sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plugrad_nn.utils.data.datapipes._columns import check_function
from plugrad_nn.utils.data.datapipes._decorator import functional_datapipe
from plugrad_nn.utils.data.datapipes.datapipe import MapDataPipe


def default_fn(data: Any) -> Any:
    """The sample itself."""
    return data


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe[Any]):
    """A function of each sample: `pipe.map(fn)`.

    Args:
        datapipe: the source.
        fn: of a sample.

    >>> from plugrad.utils.data.datapipes.map import SequenceWrapper
    >>> SequenceWrapper([1, 2]).map(str)[1]
    '2'
    """

    def __init__(self, datapipe: MapDataPipe[Any], fn: Callable[[Any], Any] = default_fn) -> None:
        check_function(fn)
        self.datapipe: Any = datapipe
        self.fn = fn

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)
