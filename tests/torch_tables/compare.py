"""Whether results of plugrad are PyTorch's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

import plugrad
from tests.torch_tables.translate import dtype_name

# By dtype: relative, and absolute with the greatest element as unit.
TOLERANCES = {
    "float64": 1e-9,
    "complex128": 1e-9,
    "float32": 2e-4,
    "complex64": 2e-4,
    "bfloat16": 2e-2,
    "float16": 4e-3,
}


def flat(value: Any, tensor: type) -> list[Any]:
    """The tensors and numbers in nested lists, tuples and dicts; without None."""

    def walk(item: Any) -> Iterator[Any]:
        if isinstance(item, tensor):
            yield item
        elif isinstance(item, (list, tuple)):
            for part in item:
                yield from walk(part)
        elif isinstance(item, dict):
            yield from walk(list(item.values()))
        elif item is not None:
            yield item

    return list(walk(value))


def host(tensor: Any) -> Any:
    """A NumPy array of a tensor's elements; narrow floats as float64."""
    plain = tensor.detach().resolve_conj().resolve_neg()
    if plain.dtype.is_floating_point and plain.dtype.itemsize < 4:
        plain = plain.double()
    return plain.numpy(force=True)


def difference(ours: Any, theirs: Any, slack: float = 1.0) -> str:
    """How two results differ, in a few words; "" if they do not.

    Args:
        slack: by how much the tolerance of the dtype is multiplied.
    """
    found, wanted = flat(ours, plugrad.Tensor), flat(theirs, torch.Tensor)
    if len(found) != len(wanted):
        return f"{len(found)} results, expected {len(wanted)}"
    for place, (one, other) in enumerate(zip(found, wanted, strict=True)):
        words = _one_difference(one, other, slack)
        if words:
            return f"result {place}: {words}"
    return ""


def _one_difference(ours: Any, theirs: Any, slack: float) -> str:
    if not isinstance(theirs, torch.Tensor):
        same = ours == theirs or (ours != ours and theirs != theirs)
        return (
            "" if same or not isinstance(ours, (int, float, complex)) else f"{ours}, not {theirs}"
        )
    if not isinstance(ours, plugrad.Tensor):
        return f"a {type(ours).__name__}, not a tensor"
    if tuple(ours.shape) != tuple(theirs.shape):
        return f"shape {tuple(ours.shape)}, expected {tuple(theirs.shape)}"
    dtype = dtype_name(theirs.dtype)
    if dtype_name(ours.dtype) != dtype:
        return f"dtype {dtype_name(ours.dtype)}, expected {dtype}"
    found, wanted = host(ours), host(theirs)
    if dtype not in TOLERANCES:
        close = found == wanted
    else:
        tolerance = TOLERANCES[dtype] * slack
        finite = np.abs(wanted[np.isfinite(wanted)])
        unit = max(1.0, float(finite.max(initial=0)))
        close = np.isclose(found, wanted, rtol=tolerance, atol=tolerance * unit, equal_nan=True)
    if np.all(close):
        return ""
    wrong = ~np.asarray(close)
    return (
        f"{wrong.sum()} of {wrong.size} elements differ: {found[wrong].flat[0]}, "
        f"expected {wanted[wrong].flat[0]}"
    )
