"""Descriptors of operator samples: the arguments of a call, described without making tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ALL_DTYPES", "COMPLEX", "FLOATS", "INTEGERS", "D", "OpCase", "OpError", "OpSample", "T"]

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

    >>> from plugrad.testing.cases import T
    >>> inputs = T((2, 3), low=0.0)
    >>> inputs.shape, inputs.low, inputs.high
    ((2, 3), 0.0, 2.0)
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
    """A dtype argument: D("float64") is plugrad.float64, D() the dtype under test.

    >>> from plugrad.testing.cases import D, OpSample, T
    >>> OpSample((T((2,)),), {"dtype": D("float64")}).kwargs
    {'dtype': D(name='float64')}
    """

    name: str | None = None


@dataclass(frozen=True)
class OpSample:
    """One call: its arguments, with `T` and `D` at any depth of lists, tuples and dicts.

    >>> from plugrad.testing.cases import OpSample, T
    >>> OpSample((T((2, 3)), 1), {"keepdim": True}, name="kept").args[1]
    1
    """

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    name: str = ""


@dataclass(frozen=True)
class OpError:
    """A call that must fail with this exception and a message that matches `regex`.

    Attributes:
        torch_differs: PyTorch, with which plugrad's own tests compare, has another message.

    >>> from plugrad.testing.cases import OpError, OpSample, T
    >>> OpError(OpSample((T((2,)), 5)), IndexError, "out of range").exception
    <class 'IndexError'>
    """

    sample: OpSample
    exception: type[Exception]
    regex: str
    torch_differs: bool = False


@dataclass(frozen=True)
class OpCase:
    """The description of one public function, from which all its tests are generated.

    >>> from plugrad.testing.cases import OpCase, OpSample, T
    >>> case = OpCase(
    ...     "geometry::area",
    ...     [OpSample((T((2, 3)), T((3,))), name="broadcast")],
    ...     dtypes=("float32",),
    ... )

    Attributes:
        op: a function of plugrad, "mul" or "nn.functional.relu"; a method or property,
            "Tensor.view" or "Tensor.T"; an operator of another namespace, "geometry::area".
        samples: a list, or a function that makes one.
        torch: the same path in PyTorch when it differs.
        dtypes: that it is defined for, apart from float64, and tested in.
        wider: dtypes for which plugrad works and PyTorch raises (not checked).
        gradient, second: check first and second derivatives.
        grad_dtypes: add "complex128" where the operator is defined for complex numbers.
        inplace: name of the in-place method to compare with the function, such as "mul_".
        view: the result shares memory with the first argument.
        errors: calls that must raise.
        rtol, atol: instead of the default of each dtype, for float64 comparisons with PyTorch.
        exact_dtype: False where the result's dtype may differ from PyTorch's.
        low_precision: tolerance factor for the 16-bit dtypes (long sums need more).
        undefined_where_failed: where `info` in the result is not 0, what the other tensors have for
            that matrix is up to the backend, and is not compared.
        full_rank: where a matrix is singular, the result or its derivative is not defined, so that
            matrices of equal rows are not samples.
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
    undefined_where_failed: bool = False
    full_rank: bool = False

    def all_samples(self) -> list[OpSample]:
        """The samples, made if they are given as a function."""
        return list(self.samples() if callable(self.samples) else self.samples)
