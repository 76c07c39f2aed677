"""Descriptors of operator samples, and how plugrad and PyTorch get the same arguments from them."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes  # noqa: F401  # teaches np.dtype the name "bfloat16"
import numpy as np

import plugrad

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]  # the oracle is optional

INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
FLOATS = ("float32", "float16", "bfloat16")
COMPLEX = ("complex64", "complex128")
ALL_DTYPES = (*FLOATS, *INTEGERS, "bool", *COMPLEX)


@dataclass(frozen=True)
class T:
    """A tensor argument: values drawn uniformly from [low, high), or given.

    Attributes:
        dtype: None is the dtype under test; a name such as "int64" fixes it.
        requires_grad: counts only when the dtype is differentiable.
        strides: "contiguous", "transposed" (last two dims, Fortran order), "expanded" (first dim
            has stride 0) or "sliced" (every second element of a longer last dim).
        unique: no two elements are equal (for sort, max and the like).
        values: the elements, instead of random ones.
    """

    shape: tuple[int, ...] = ()
    low: float = -2.0
    high: float = 2.0
    dtype: str | None = None
    requires_grad: bool = True
    strides: str = "contiguous"
    unique: bool = False
    values: Any = None


@dataclass(frozen=True)
class D:
    """A dtype argument: D("float64") is plugrad.float64 or torch.float64; D() the tested one."""

    name: str | None = None


@dataclass(frozen=True)
class OpSample:
    """One call: its arguments, with `T` and `D` at any depth of lists, tuples and dicts."""

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    name: str = ""


@dataclass(frozen=True)
class OpError:
    """A call that must fail: the same exception type and words in plugrad and in PyTorch."""

    sample: OpSample
    exception: type[Exception]
    regex: str
    torch_differs: bool = False  # say why in a comment beside it


@dataclass(frozen=True)
class OpCase:
    """Everything the suite needs to know about one public function.

    Attributes:
        op: "mul", "nn.functional.relu", or a method or property: "Tensor.view", "Tensor.T".
        samples: a list, or a function that makes one.
        torch: the same path in PyTorch when it differs.
        dtypes: compared with PyTorch in value and result dtype, apart from float64.
        wider: dtypes for which plugrad works and PyTorch raises (not checked).
        gradient, second: check first and second derivatives.
        grad_dtypes: add "complex128" where the operator is defined for complex numbers.
        inplace: name of the in-place method to compare with the function, such as "mul_".
        view: the result shares memory with the first argument.
        errors: calls that must raise.
        rtol, atol: instead of the default of each dtype, for float64 comparisons with PyTorch.
        exact_dtype: False where the result's dtype may differ from PyTorch's.
        low_precision: tolerance factor for the 16-bit dtypes (long sums need more).
    """

    op: str
    samples: Sequence[OpSample] | Callable[[], Sequence[OpSample]]
    torch: str | None = None
    dtypes: tuple[str, ...] = ALL_DTYPES
    wider: tuple[str, ...] = ()
    gradient: bool = True
    second: bool = True
    grad_dtypes: tuple[str, ...] = ("float64",)
    inplace: str | None = None
    view: bool = False
    errors: Sequence[OpError] = ()
    rtol: float | None = None
    atol: float | None = None
    exact_dtype: bool = True
    low_precision: float = 1.0

    def all_samples(self) -> list[OpSample]:
        """The samples, made if they are given as a function."""
        return list(self.samples() if callable(self.samples) else self.samples)


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


def _lay_out(values: np.ndarray[Any, Any], strides: str) -> np.ndarray[Any, Any]:
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


class Builder:
    """Makes the arguments of one sample for plugrad or torch: same seed, same values."""

    def __init__(self, library: Any, dtype: str, seed: int, overlapping: bool = True) -> None:
        self.library = library
        self.dtype = dtype
        self.rng = np.random.default_rng(seed)
        self.overlapping = overlapping
        self.leaves: list[Any] = []

    def make(self, value: Any) -> Any:
        """`value` with every descriptor in it replaced."""
        if isinstance(value, T):
            return self._tensor(value)
        if isinstance(value, D):
            return getattr(self.library, value.name or self.dtype)
        if isinstance(value, (list, tuple)):
            return type(value)([self.make(item) for item in value])
        if isinstance(value, dict):
            return {key: self.make(item) for key, item in value.items()}
        return value

    def _tensor(self, spec: T) -> Any:
        dtype = spec.dtype or self.dtype
        if spec.values is not None and spec.dtype is None and np.asarray(spec.values).dtype == bool:
            dtype = "bool"
        layout = spec.strides
        if layout == "expanded" and not self.overlapping:
            layout = "contiguous"
        raw = _random(spec, dtype, self.rng)
        with np.errstate(all="ignore"):
            array = _lay_out(raw.astype(np.dtype(dtype)), layout)
        if self.library is torch and dtype == "bfloat16":
            tensor = torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        else:
            tensor = self.library.from_numpy(array)
        if spec.requires_grad and (dtype.startswith(("float", "complex", "bfloat"))):
            tensor.requires_grad_()
            self.leaves.append(tensor)
        return tensor


def seed_of(case: OpCase, sample: OpSample) -> int:
    """A seed that depends only on what the sample is."""
    return zlib.crc32(repr((case.op, sample)).encode())


def resolve(library: Any, path: str) -> Callable[..., Any]:
    """The function behind a path; "Tensor.x" is a method or a property of the first argument."""
    if path.startswith("Tensor."):
        name = path.removeprefix("Tensor.")

        def method(receiver: Any, *args: Any, **kwargs: Any) -> Any:
            attribute = getattr(receiver, name)
            return attribute(*args, **kwargs) if callable(attribute) else attribute

        return method
    found = library
    for part in path.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]  # any public callable


def flatten(result: Any) -> list[Any]:
    """The tensors and plain values of a result, in order."""
    if isinstance(result, (tuple, list)) and not hasattr(result, "numel"):
        return [leaf for item in result for leaf in flatten(item)]
    return [result]


def is_tensor(value: Any) -> bool:
    """Whether `value` is a tensor of either library."""
    return isinstance(value, plugrad.Tensor) or (
        torch is not None and isinstance(value, torch.Tensor)
    )


def dtype_name(tensor: Any) -> str:
    """ "float32" for plugrad.float32 and torch.float32."""
    return str(tensor.dtype).rpartition(".")[2]


def to_numpy(tensor: Any) -> np.ndarray[Any, Any]:
    """The values, widened to float64 or complex128 where they are floating."""
    tensor = tensor.detach()
    if torch is not None and isinstance(tensor, torch.Tensor):
        tensor = tensor.resolve_conj().resolve_neg()
        if tensor.dtype == torch.bfloat16:
            tensor = tensor.float()
    array = np.asarray(tensor.numpy())
    name = dtype_name(tensor)
    if name.startswith("complex"):
        return array.astype(np.complex128)
    return array.astype(np.float64) if "float" in name else array
