"""Values on the host: tensors of any backend as NumPy arrays, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

import plugrad


def is_tensor(value: object) -> bool:
    """Whether `value` is a tensor."""
    return isinstance(value, plugrad.Tensor)


def to_host(tensor: Any) -> np.ndarray[Any, Any]:
    """The values of a tensor as a NumPy array that may share its memory."""
    values = tensor.detach()
    if values.device.type != "cpu":
        values = values.to("cpu")
    return np.asarray(values.numpy(force=True))


def from_host(values: np.ndarray[Any, Any], like: Any) -> Any:
    """A new tensor with these values and the dtype and device of `like`."""
    tensor = plugrad.from_numpy(np.array(values, dtype=like.dtype.numpy, order="C"))
    return tensor if like.device.type == "cpu" else tensor.to(like.device)
