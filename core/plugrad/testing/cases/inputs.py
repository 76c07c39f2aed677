"""Shared by the samples of several families: tensors in every layout, and calls and cases on
them."""

from __future__ import annotations

from typing import Any

from plugrad.plugins.cases import FLOATS, INTEGERS, OpCase, OpError, OpSample, T

REAL_AND_COMPLEX = ("float64", "complex128")
DTYPES = ("float32", "bfloat16", "int64", "bool", "complex64")
REALS = (*FLOATS, *INTEGERS)
M = T((2, 3))
CUBE = T((2, 3, 4))
TURNED = T((2, 3, 4), strides="transposed")
SLICED = T((2, 3), strides="sliced")
EXPANDED = T((2, 3), strides="expanded")
SCALAR = T(())
EMPTY = T((0, 3))
# What PyTorch says where a matrix has no such dimension.
NO_DIM_5 = r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 5\)"


def calls(*samples: tuple[Any, ...]) -> list[OpSample]:
    """Samples with these positional arguments each."""
    return [OpSample(args) for args in samples]


def fails(exception: type[Exception], regex: str, *args: Any, differs: bool = False) -> OpError:
    """A call with these positional arguments that must fail; see `OpError`."""
    return OpError(OpSample(args), exception, regex, torch_differs=differs)


def call(*args: Any, **kwargs: Any) -> OpSample:
    """A sample with these arguments."""
    return OpSample(args, kwargs)


def wrong(exception: type[Exception], regex: str, *args: Any, **kwargs: Any) -> OpError:
    """`fails` with keyword arguments for the operator."""
    return OpError(OpSample(args, kwargs), exception, regex)


def case(op: str, samples: list[OpSample], *errors: OpError, **options: Any) -> OpCase:
    """An operator that only moves elements: any dtype will do, differentiable when complex."""
    settings: dict[str, Any] = {
        "dtypes": DTYPES,
        "grad_dtypes": REAL_AND_COMPLEX,
        "errors": errors,
    }
    return OpCase(op, samples, **{**settings, **options})
