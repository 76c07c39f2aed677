"""Makes the arguments that samples describe, calls operators by name, takes results apart."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

import plugrad
from plugrad.plugins.cases import INTEGERS, D, OpCase, OpSample, T


def _random(spec: T, dtype: str, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Values for `spec` as float64, int64, bool or complex128: still to be cast."""
    if spec.values is not None:
        return np.asarray(spec.values)
    count = math.prod(spec.shape)
    integral = dtype in INTEGERS
    low, high = spec.low, spec.high
    if integral:
        low = max(math.ceil(low), 0) if dtype == "uint8" else math.ceil(low)
        high = max(math.ceil(high), low + 1)
    if spec.unique:
        ordered = np.arange(low, low + count) if integral else np.linspace(low, high, count)
        return rng.permutation(ordered).reshape(spec.shape)
    if dtype == "bool":
        return np.asarray(rng.random(spec.shape) > 0.5)
    if integral:
        return np.asarray(rng.integers(int(low), int(high), spec.shape))
    real = np.asarray(rng.uniform(low, high, spec.shape))
    if dtype.startswith("complex"):
        return real + 1j * np.asarray(rng.uniform(low, high, spec.shape))
    return real


def lay_out(values: np.ndarray[Any, Any], strides: str) -> np.ndarray[Any, Any]:
    """The same values in memory as `strides` says."""
    if strides == "contiguous" or values.size == 0 or values.ndim == 0:
        return np.array(values, order="C")
    if strides == "transposed":
        if values.ndim < 2:
            return np.array(values, order="C")
        return np.swapaxes(np.array(np.swapaxes(values, -1, -2), order="C"), -1, -2)
    if strides == "expanded":
        first = np.array(values[:1], order="C")
        return np.lib.stride_tricks.as_strided(first, values.shape, (0, *first.strides[1:]))
    if strides == "sliced":
        room = np.zeros((*values.shape[:-1], values.shape[-1] * 2), dtype=values.dtype)
        room[..., ::2] = values
        return room[..., ::2]
    raise ValueError(f"strides must be contiguous, transposed, expanded or sliced, got {strides!r}")


class Arguments:
    """Makes the arguments of one sample; the same seed gives the same values.

    Subclasses make them for another library than plugrad, to compare with.

    Args:
        dtype: the dtype under test: what a `T` or a `D` that names none has.
        seed: of the random values; see `seed_of`.
        overlapping: whether "expanded" tensors may have elements that share memory. Those cannot
            be written to, nor changed one by one.

    Attributes:
        leaves: the tensors that require grad, in the order in which they were made.
    """

    def __init__(self, dtype: str, seed: int, *, overlapping: bool = True) -> None:
        self.dtype = dtype
        self.rng = np.random.default_rng(seed)
        self.overlapping = overlapping
        self.leaves: list[Any] = []

    def make(self, value: Any) -> Any:
        """`value` with a tensor or a dtype in place of every descriptor in it."""
        if isinstance(value, T):
            return self._tensor(value)
        if isinstance(value, D):
            return self.dtype_named(value.name or self.dtype)
        if isinstance(value, (list, tuple)):
            return type(value)([self.make(item) for item in value])
        if isinstance(value, dict):
            return {key: self.make(item) for key, item in value.items()}
        return value

    def dtype_named(self, name: str) -> Any:
        """The library's dtype of a name."""
        return getattr(plugrad, name)

    def tensor_of(self, values: np.ndarray[Any, Any], layout: str) -> Any:
        """A tensor of the library with these values, in the requested memory layout."""
        return plugrad.from_numpy(lay_out(values, layout))

    def _tensor(self, spec: T) -> Any:
        dtype = spec.dtype or self.dtype
        if spec.values is not None and spec.dtype is None and np.asarray(spec.values).dtype == bool:
            dtype = "bool"
        layout = spec.strides
        if layout == "expanded" and not self.overlapping:
            layout = "contiguous"
        raw = _random(spec, dtype, self.rng)
        with np.errstate(all="ignore"):
            values = raw.astype(getattr(plugrad, dtype).numpy)
        tensor = self.tensor_of(values, layout)
        if spec.requires_grad and dtype.startswith(("float", "complex", "bfloat")):
            tensor.requires_grad_()
            self.leaves.append(tensor)
        return tensor


def seed_of(case: OpCase, sample: OpSample) -> int:
    """A seed that depends only on what the sample is."""
    return zlib.crc32(repr((case.op, sample)).encode())


def resolve(path: str, library: Any = plugrad) -> Callable[..., Any]:
    """The function behind the name in an `OpCase`.

    Raises:
        AttributeError: there is no such function.

    >>> import plugrad
    >>> from plugrad.testing.cases import resolve
    >>> resolve("Tensor.mT")(plugrad.zeros(2, 3)).shape
    plugrad.Size([3, 2])
    """
    if path.startswith("Tensor."):
        name = path.removeprefix("Tensor.")

        def method(receiver: Any, *args: Any, **kwargs: Any) -> Any:
            attribute = getattr(receiver, name)
            return attribute(*args, **kwargs) if callable(attribute) else attribute

        return method
    found = library
    for part in path.split("."):
        namespace, separator, name = part.rpartition("::")
        found = getattr(getattr(found.ops, namespace) if separator else found, name)
    return found  # type: ignore[no-any-return]  # any public callable


def flatten(result: Any) -> list[Any]:
    """The tensors and plain values of a result, in order."""
    if isinstance(result, (tuple, list)) and not hasattr(result, "numel"):
        return [leaf for item in result for leaf in flatten(item)]
    return [result]
