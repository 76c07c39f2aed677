"""Settings for all pipes that a pipe reads from: shares, order and seeds."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import plugrad
from plugrad.plugins.arguments import explains
from plugrad_nn.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES
from plugrad_nn.utils.data.graph import DataPipe, DataPipeGraph, traverse_dps
from plugrad_nn.utils.data.sampler import drawn_seed

__all__ = [
    "apply_random_seed",
    "apply_sharding",
    "apply_shuffle_seed",
    "apply_shuffle_settings",
    "get_all_graph_pipes",
]


@explains
def get_all_graph_pipes(graph: DataPipeGraph) -> list[Any]:
    """The pipes of a graph, each once; a pipe comes before its sources.

    Args:
        graph: the result of `traverse_dps`.

    >>> from plugrad.utils.data.datapipes.iter import IterableWrapper
    >>> from plugrad.utils.data.graph import traverse_dps
    >>> from plugrad.utils.data.graph_settings import get_all_graph_pipes
    >>> get_all_graph_pipes(traverse_dps(IterableWrapper("ab").batch(2)))
    [BatcherIterDataPipe, IterableWrapperIterDataPipe]
    """
    found: dict[int, Any] = {}

    def collect(graph: DataPipeGraph) -> None:
        for key, (pipe, sources) in graph.items():
            if key not in found:
                found[key] = pipe
                collect(sources)

    collect(graph)
    return list(found.values())


@explains
def apply_sharding(
    datapipe: DataPipe,
    num_of_instances: int,
    instance_id: int,
    sharding_group: SHARDING_PRIORITIES = SHARDING_PRIORITIES.DEFAULT,
) -> DataPipe:
    """Give each pipe that has `apply_sharding` its share; returns `datapipe`.

    Args:
        datapipe: the last pipe.
        num_of_instances: how many readers there are.
        instance_id: which of them this is.
        sharding_group: their kind.

    Raises:
        RuntimeError: one such pipe reads from another, so that samples would be lost.

    >>> from plugrad.utils.data.datapipes.iter import IterableWrapper
    >>> from plugrad.utils.data.graph_settings import apply_sharding
    >>> list(apply_sharding(IterableWrapper(range(5)).sharding_filter().map(str), 2, 1))
    ['1', '3']
    """

    def share(graph: DataPipeGraph, above: Any) -> None:
        for pipe, sources in graph.values():
            applied = above
            if callable(getattr(pipe, "apply_sharding", None)):
                if above is not None:
                    raise RuntimeError(
                        "Sharding twice on a single pipeline is likely unintended and will cause "
                        f"data loss. Sharding already applied to {above} while trying to apply to "
                        f"{pipe}"
                    )
                more = {}
                if len(inspect.signature(pipe.apply_sharding).parameters) >= 3:
                    more = {"sharding_group": sharding_group}
                pipe.apply_sharding(num_of_instances, instance_id, **more)
                applied = pipe
            share(sources, applied)

    share(traverse_dps(datapipe), None)
    return datapipe


@explains
def apply_shuffle_settings(datapipe: DataPipe, shuffle: bool | None = None) -> DataPipe:
    """Turn all shufflers on or off; a pipe with these settings.

    If there is none and there should be, a shuffler comes at the end, with a warning.

    Args:
        datapipe: the last pipe.
        shuffle: whether to shuffle; None changes nothing.

    >>> from plugrad.utils.data.datapipes.iter import IterableWrapper
    >>> from plugrad.utils.data.graph_settings import apply_shuffle_settings
    >>> list(apply_shuffle_settings(IterableWrapper("abc").shuffle(), shuffle=False))
    ['a', 'b', 'c']
    """
    if shuffle is None:
        return datapipe
    shufflers = [pipe for pipe in get_all_graph_pipes(traverse_dps(datapipe)) if _shuffles(pipe)]
    if not shufflers and shuffle:
        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at "
            "the end. Be aware that the default buffer size might not be sufficient for your task.",
            stacklevel=2,
        )
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for pipe in shufflers:
        pipe.set_shuffle(shuffle)
    return datapipe


def _shuffles(pipe: Any) -> bool:
    return all(callable(getattr(pipe, name, None)) for name in ("set_shuffle", "set_seed"))


@explains
def apply_random_seed(datapipe: DataPipe, rng: plugrad.Generator) -> DataPipe:
    """Give each pipe that has `set_seed` a seed, drawn from a generator; `datapipe` itself.

    Args:
        datapipe: the last pipe.
        rng: the generator.

    >>> import plugrad
    >>> from plugrad.utils.data.datapipes.iter import IterableWrapper
    >>> from plugrad.utils.data.graph_settings import apply_random_seed
    >>> pipe = IterableWrapper("abc").shuffle()
    >>> def order():
    ...     return list(apply_random_seed(pipe, plugrad.Generator().manual_seed(0)))
    >>> order() == order()
    True
    """
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if callable(getattr(pipe, "set_seed", None)):
            pipe.set_seed(drawn_seed(rng))
    return datapipe


def seed_pipes(datapipe: DataPipe, seed: int) -> None:
    """`apply_random_seed` by a generator with this seed."""
    apply_random_seed(datapipe, plugrad.Generator().manual_seed(seed))


def apply_shuffle_seed(datapipe: DataPipe, rng: Any) -> DataPipe:
    """`apply_random_seed` by the name that PyTorch had once."""
    warnings.warn(
        "`apply_shuffle_seed` is deprecated; use `apply_random_seed`",
        FutureWarning,
        stacklevel=2,
    )
    return apply_random_seed(datapipe, rng)
