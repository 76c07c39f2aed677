"""Which pipes a pipe reads from."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from plugrad.plugins.arguments import explains
from plugrad_nn.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]

DataPipe = IterDataPipe[Any] | MapDataPipe[Any]
# By the id of a pipe, the pipe and the graph of those that it reads from.
DataPipeGraph = dict[int, tuple[Any, Any]]


@explains
def traverse_dps(datapipe: DataPipe) -> DataPipeGraph:
    """The graph of the pipes that a pipe reads from.

    By its id it has the pipe and, in the same form, the pipes that it keeps as attributes or in
    collections.

    Args:
        datapipe: the last pipe.

    >>> from plugrad.utils.data.datapipes.iter import IterableWrapper
    >>> from plugrad.utils.data.graph import traverse_dps
    >>> ((pipe, sources),) = traverse_dps(IterableWrapper("ab").batch(2)).values()
    >>> pipe, [source for source, _ in sources.values()]
    (BatcherIterDataPipe, [IterableWrapperIterDataPipe])
    """
    return _graph(datapipe, frozenset())


def traverse(datapipe: DataPipe, only_datapipe: bool | None = None) -> DataPipeGraph:
    """`traverse_dps` by the name that PyTorch had once."""
    return traverse_dps(datapipe)


def _graph(pipe: Any, above: frozenset[int]) -> DataPipeGraph:
    if id(pipe) in above:
        return {}
    sources: DataPipeGraph = {}
    for value in vars(pipe).values():
        for source in _pipes_in(value):
            sources |= _graph(source, above | {id(pipe)})
    return {id(pipe): (pipe, sources)}


def _pipes_in(value: Any) -> Iterator[Any]:
    if isinstance(value, (IterDataPipe, MapDataPipe)):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _pipes_in(each)
    elif isinstance(value, Collection) and type(value) in (list, tuple, set, frozenset):
        for each in value:
            yield from _pipes_in(each)
