"""Errors that backends raise alike, in PyTorch's words."""

from __future__ import annotations

import numpy as np
import pytest

import plugrad
from plugrad.plugins import kernel_errors as errors


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (np.dtype(np.float16), "Half"),
        (plugrad.bfloat16.numpy, "BFloat16"),
        (np.dtype(np.bool_), "Bool"),
        (plugrad.complex128, "ComplexDouble"),
    ],
)
def test_a_missing_dtype_has_pytorchs_name(dtype: object, name: str) -> None:
    assert (
        str(errors.not_implemented("sign_cpu", dtype))
        == f"\"sign_cpu\" not implemented for '{name}'"
    )


def test_indices_outside() -> None:
    assert errors.out_of_bounds(5, 1, 3) == "index 5 is out of bounds for dimension 1 with size 3"
    assert errors.out_of_bounds("{}", 1, 3).format(-4) == errors.out_of_bounds(-4, 1, 3)
    assert errors.out_of_range(9, 6).endswith("access index 9 on a tensor of 6 elements.")


def test_shapes_that_do_not_broadcast() -> None:
    assert str(errors.unlike_indices([(2,), (3, 1)])).endswith("with shapes [2], [3, 1]")
    assert str(errors.unlike_values((2,), (3,))).endswith("to indexing result of shape [3]")
    assert str(errors.unlike_values((2,), "the rest")).endswith("cannot be broadcast to the rest")


def test_classes_of_one_hot_vectors() -> None:
    assert errors.one_hot_classes(0, 4, -1) == 5
    assert errors.one_hot_classes(0, 4, 7) == 7
    for least, largest, classes, what in ((-1, 4, -1, "non-neg"), (0, 4, 4, "smaller than")):
        with pytest.raises(RuntimeError, match=f"Class values must be {what}"):
            errors.one_hot_classes(least, largest, classes)
