"""Collation: a list of samples becomes one batch, by a table of functions for kinds of samples."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

import plugrad
from plugrad import Tensor
from plugrad.plugins.arguments import explains
from plugrad_nn.utils.data._utils.containers import like_mapping, like_sequence
from plugrad_nn.utils.data._utils.worker_info import get_worker_info, shared_array

CollateMap = dict[type | tuple[type, ...], Callable[..., Any]]

# Kinds of NumPy's dtypes that are not numbers: bytes, text and objects.
_NO_NUMBERS: Final = "SUO"
# By their text, as PyTorch has it: packages look dtypes up in it.
np_str_obj_array_pattern: Final = re.compile("[SaUO]")

default_collate_err_msg_format: Final = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


@explains
def default_convert(data: Any) -> Any:
    """Converts NumPy's arrays and numbers to tensors, also inside mappings and sequences; the rest
    stays unchanged. A loader with `batch_size=None` does this to each sample.

    Args:
        data: any structure of mappings and sequences.

    >>> import numpy as np
    >>> from plugrad.utils.data import default_convert
    >>> default_convert({"x": np.array([1, 2]), "name": "a"})
    {'x': tensor([1, 2]), 'name': 'a'}
    """
    if isinstance(data, np.ndarray) and type(data).__module__ == "numpy":
        return data if data.dtype.kind in _NO_NUMBERS else plugrad.as_tensor(data)
    if isinstance(data, np.generic) and not isinstance(data, np.str_):
        return plugrad.as_tensor(data)
    if isinstance(data, Tensor | str | bytes):
        return data
    if isinstance(data, Mapping):
        return like_mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple):
        converted = [default_convert(value) for value in data]
        return type(data)(*converted) if _is_named(data) else converted
    if isinstance(data, Sequence):
        return like_sequence(data, [default_convert(value) for value in data])
    return data


def collate(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Combine a list of samples, which all have the first one's type, into one batch.

    Args:
        batch: the samples.
        collate_fn_map: functions by the class of sample that they collate, or by a tuple of
            classes. The class itself comes first, then the first base class. They are called as
            `function(batch, collate_fn_map=...)`. Mappings and sequences that match none of them
            are traversed.

    Raises:
        TypeError: the samples have an unsupported type.
        RuntimeError: the samples are sequences of different lengths.
    """
    first = batch[0]
    if collate_fn_map is not None:
        function = _function_for(first, collate_fn_map)
        if function is not None:
            return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        columns = {key: [sample[key] for sample in batch] for key in first}
        return like_mapping(
            first, {key: collate(c, collate_fn_map=collate_fn_map) for key, c in columns.items()}
        )
    if _is_named(first):
        fields = zip(*batch, strict=False)
        return type(first)(*(collate(c, collate_fn_map=collate_fn_map) for c in fields))
    if isinstance(first, Sequence):
        size = len(first)
        if any(len(sample) != size for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        made = [collate(c, collate_fn_map=collate_fn_map) for c in zip(*batch, strict=True)]
        return made if isinstance(first, tuple) else like_sequence(first, made)
    raise TypeError(default_collate_err_msg_format.format(type(first)))


def _function_for(sample: Any, functions: CollateMap) -> Callable[..., Any] | None:
    exact = functions.get(type(sample))
    if exact is not None:
        return exact
    return next((found for kind, found in functions.items() if isinstance(sample, kind)), None)


def _is_named(sample: Any) -> bool:
    return isinstance(sample, tuple) and hasattr(sample, "_fields")


def collate_tensor_fn(
    batch: Sequence[Tensor], *, collate_fn_map: CollateMap | None = None
) -> Tensor:
    """Stacks tensors; in a worker process right into shared memory."""
    if get_worker_info() is not None:
        stacked = _stacked_in_shared_memory(batch)
        if stacked is not None:
            return stacked
    return plugrad.stack(tuple(batch), dim=0)


def _stacked_in_shared_memory(batch: Sequence[Tensor]) -> Tensor | None:
    """None if the tensors are not plain ones on the host, or do not fit each other."""
    first = batch[0]
    shape, dtype = first.shape, first.dtype
    for tensor in batch:
        if (
            type(tensor) is not Tensor
            or tensor.dtype is not dtype
            or tensor.shape != shape
            or tensor.device.type != "cpu"
            or tensor.requires_grad
            or tensor.is_conj()
            or tensor.is_neg()
        ):
            return None
    out = shared_array((len(batch), *shape), dtype.numpy)
    if out is None:
        return None
    for place, tensor in enumerate(batch):
        out[place] = tensor.numpy()
    return plugrad.from_numpy(out)


def collate_numpy_array_fn(
    batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None
) -> Any:
    """Stacks arrays of numbers, as tensors."""
    if batch[0].dtype.kind in _NO_NUMBERS:
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    return collate([plugrad.as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(
    batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None
) -> Tensor:
    """A tensor of NumPy's numbers, in their dtype."""
    return plugrad.as_tensor(batch)


def collate_float_fn(batch: Sequence[float], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """A float64 tensor of Python's numbers."""
    return plugrad.tensor(batch, dtype=plugrad.float64)


def collate_int_fn(batch: Sequence[int], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """An int64 tensor of Python's integers, or a bool one."""
    return plugrad.tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Text, unchanged."""
    return batch


# The table of `default_collate`; programs add their own classes to it.
default_collate_fn_map: Final[CollateMap] = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


@explains
def default_collate(batch: Iterable[Any]) -> Any:
    """Stacks tensors, arrays and numbers, also inside mappings and sequences; text stays unchanged.
    `default_collate_fn_map` lists the function for each class of samples.

    Args:
        batch: samples of one structure.

    >>> from plugrad.utils.data import default_collate
    >>> default_collate([{"x": 1, "y": ("a", 0.5)}, {"x": 2, "y": ("b", 0.25)}])
    {'x': tensor([1, 2]), 'y': [('a', 'b'), tensor([0.5000, 0.2500], dtype=plugrad.float64)]}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
