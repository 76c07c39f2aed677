"""default_collate: a list of samples becomes one batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import Any

import numpy as np

import plugrad
from plugrad import Tensor
from plugrad.plugins.arguments import explains


@explains
def default_collate(batch: Sequence[Any]) -> Any:
    """Stacks tensors, arrays and numbers; goes into mappings, tuples and lists; leaves text alone.

    >>> from plugrad_nn.utils.data import default_collate
    >>> default_collate([{"x": 1}, {"x": 2}])
    {'x': tensor([1, 2])}
    """
    if not isinstance(batch, Sized):
        raise TypeError(
            "default_collate(): argument 'batch' (position 1) must be a sequence of samples, not "
            f"{type(batch).__name__}"
        )
    if not len(batch):
        raise ValueError("default_collate: the batch has no samples")
    first = batch[0]
    if isinstance(first, Tensor):
        return plugrad.stack(batch, dim=0)
    if isinstance(first, np.ndarray | np.generic):
        return plugrad.stack([plugrad.tensor(np.asarray(sample)) for sample in batch], dim=0)
    if isinstance(first, float):
        return plugrad.tensor(batch, dtype=plugrad.float64)
    if isinstance(first, int):
        return plugrad.tensor(batch)
    if isinstance(first, str | bytes):
        return batch
    if isinstance(first, Mapping):
        return {key: default_collate([sample[key] for sample in batch]) for key in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(list(field)) for field in zip(*batch, strict=True)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        return [
            tuple(field) if isinstance(field[0], str | bytes) else default_collate(list(field))
            for field in zip(*batch, strict=True)
        ]
    raise TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
        f"found {type(first)}"
    )
