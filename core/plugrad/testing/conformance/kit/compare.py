"""Comparing a result on the backend with the CPU's: what it is, and what is in it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import plugrad
from plugrad.testing.cases import OpCase, flatten
from plugrad.testing.conformance.kit.subject import Subject

# rtol and atol; 16-bit numbers may be rounded after each step, or only at the end.
TOLERANCE: Final = {
    "float64": (1e-7, 1e-9),
    "complex128": (1e-7, 1e-9),
    "float32": (4e-5, 4e-5),
    "complex64": (4e-5, 4e-5),
    "float16": (1e-2, 1e-2),
    "bfloat16": (6e-2, 6e-2),
}


def on_host(tensor: Any) -> np.ndarray[Any, Any]:
    """The values, as wide as can be."""
    array = np.asarray(tensor.numpy(force=True))
    if tensor.dtype.is_complex:
        return array.astype(np.complex128)
    return array.astype(np.float64) if tensor.dtype.is_floating_point else array


def assert_matches(
    subject: Subject,
    actual: Any,
    expected: Any,
    case: OpCase | None = None,
    *,
    where: str = "",
    slack: float = 1.0,
) -> None:
    """The backend's result is the CPU's: structure, shapes, dtypes, device, and values.

    Args:
        case: the case with the tolerances.
        slack: a factor on them, for results of many operators.
    """
    succeeded = None
    if case is not None and case.undefined_where_failed:
        succeeded = on_host(expected.info) == 0
    found, wanted = flatten(actual), flatten(expected)
    assert len(found) == len(wanted), f"{where}{len(found)} results instead of {len(wanted)}"
    for index, (ours, theirs) in enumerate(zip(found, wanted, strict=True)):
        place = where if len(wanted) == 1 else f"{where}result {index}: "
        is_info = succeeded is not None and theirs is expected.info
        _assert_one(subject, ours, theirs, case, place, slack, None if is_info else succeeded)


def assert_sound(subject: Subject, tensor: Any, where: str = "") -> None:
    """A tensor lives where it says, and its array is what the tensor says it is."""
    assert tensor.device.type == subject.name, f"{where}it is on {tensor.device}"
    array = tensor.array
    assert isinstance(array, subject.backend.array_type), (
        f"{where}its array is a {type(array).__name__}, "
        f"not of the backend's array type {subject.backend.array_type.__name__}"
    )
    shape = tuple(int(size) for size in array.shape)
    assert shape == tuple(tensor.shape), (
        f"{where}its array has the shape {shape}, the tensor {tuple(tensor.shape)}"
    )
    dtype = subject.backend.dtype_of(array)
    assert dtype is tensor.dtype, f"{where}its array is of {dtype}, the tensor of {tensor.dtype}"


def _assert_one(
    subject: Subject,
    actual: Any,
    expected: Any,
    case: OpCase | None,
    where: str,
    slack: float,
    compared: np.ndarray[Any, Any] | None,
) -> None:
    if not isinstance(expected, plugrad.Tensor):
        assert type(actual) is type(expected), f"{where}{actual!r} instead of {expected!r}"
        if isinstance(expected, (float, complex)):
            np.testing.assert_allclose(actual, expected, rtol=1e-5, err_msg=where)
        elif not isinstance(expected, plugrad.device):
            assert actual == expected, f"{where}{actual!r} instead of {expected!r}"
        return
    assert isinstance(actual, plugrad.Tensor), f"{where}{type(actual).__name__} is no Tensor"
    assert_sound(subject, actual, where)
    assert tuple(actual.shape) == tuple(expected.shape), (
        f"{where}shape {tuple(actual.shape)} instead of {tuple(expected.shape)}"
    )
    assert actual.dtype is expected.dtype, f"{where}{actual.dtype} instead of {expected.dtype}"
    name = expected.dtype.name
    rtol, atol = TOLERANCE.get(name, (0.0, 0.0))
    if case is not None and name in ("float64", "complex128"):
        rtol, atol = case.rtol or rtol, case.atol or atol
    if case is not None and name in ("float16", "bfloat16"):
        slack *= case.low_precision
    every = np.array(True) if compared is None else compared
    np.testing.assert_allclose(
        on_host(actual)[every],
        on_host(expected)[every],
        rtol=rtol * slack,
        atol=atol * slack,
        err_msg=where.rstrip(": "),
    )
