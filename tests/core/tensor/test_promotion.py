"""Type promotion: PyTorch's table, and its categories of operands."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.tensor.calls.promotion import (
    check_scalar_fits,
    promote_pair,
    promote_with_scalar,
    to_dtype,
)

INTEGERS = ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2")
NAMES = (*INTEGERS, *FLOATS, "complex64", "complex128", "bool")
SCALARS = (True, 3, 2.5, 1j)


def outcome(function: Callable[..., Any], *args: Any) -> str:
    """The name of the dtype that a function gives, or the message of its RuntimeError."""
    try:
        found = name_of(function(*args))
    except RuntimeError as error:
        return str(error)
    return {"complex32": "complex64"}.get(found, found)


def name_of(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


def test_promote_types_is_torch_s_table(torch_oracle: ModuleType) -> None:
    for a, b in product(NAMES, NAMES):
        found, expected = (
            outcome(lib.promote_types, getattr(lib, a), getattr(lib, b))
            for lib in (plugrad, torch_oracle)
        )
        assert found == expected, (a, b)


@pytest.mark.parametrize("dims", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_result_type_of_two_tensors(torch_oracle: ModuleType, dims: tuple[int, int]) -> None:
    for a, b in product(NAMES, NAMES):
        theirs = [
            torch_oracle.ones((1,) * n, dtype=getattr(torch_oracle, x))
            for x, n in zip((a, b), dims, strict=True)
        ]
        ours = [
            plugrad.ones((1,) * n, dtype=getattr(plugrad, x))
            for x, n in zip((a, b), dims, strict=True)
        ]
        expected = outcome(torch_oracle.result_type, *theirs)
        assert outcome(plugrad.result_type, *ours) == expected, (a, b)
        assert outcome(promote_pair, *ours) == expected, (a, b)


@pytest.mark.parametrize("scalar", SCALARS)
@pytest.mark.parametrize("default", ["float32", "float64"])
def test_result_type_with_a_number(torch_oracle: ModuleType, scalar: Any, default: str) -> None:
    try:
        torch_oracle.set_default_dtype(getattr(torch_oracle, default))
        plugrad.set_default_dtype(getattr(plugrad, default))
        for name, shape in product(NAMES, [(), (2,)]):
            theirs = torch_oracle.ones(shape, dtype=getattr(torch_oracle, name))
            ours = plugrad.ones(shape, dtype=getattr(plugrad, name))
            expected = outcome(torch_oracle.result_type, theirs, scalar)
            assert outcome(plugrad.result_type, ours, scalar) == expected
            assert outcome(plugrad.result_type, scalar, ours) == expected
            assert outcome(promote_with_scalar, ours, scalar) == expected
    finally:
        torch_oracle.set_default_dtype(torch_oracle.float32)
        plugrad.set_default_dtype(plugrad.float32)


def test_result_type_of_numbers(torch_oracle: ModuleType) -> None:
    for a, b in product(SCALARS, SCALARS):
        expected = name_of(torch_oracle.result_type(a, b))
        assert name_of(plugrad.result_type(a, b)) == expected


def test_result_type_puts_dimensions_above_0_dim_above_numbers() -> None:
    vector = plugrad.ones(2, dtype=plugrad.int8)
    zero_dim = plugrad.tensor(1.0, dtype=plugrad.float64)
    assert plugrad.result_type(vector, plugrad.tensor(1), 3) is plugrad.int8
    assert plugrad.result_type(vector, zero_dim, 1.0) is plugrad.float64
    assert plugrad.result_type(vector, zero_dim, 1j) is plugrad.complex128


def test_numpy_scalars_count_as_python_numbers() -> None:
    single = plugrad.ones(2)
    assert plugrad.result_type(single, np.float64(2)) is plugrad.float32
    assert plugrad.result_type(plugrad.ones(2, dtype=plugrad.int8), np.int64(2)) is plugrad.int8


@pytest.mark.parametrize("operand", [[1], "a", None, np.ones(2)])
def test_result_type_refuses_what_is_no_operand(operand: Any) -> None:
    with pytest.raises(TypeError, match="expected a Tensor or a number"):
        plugrad.result_type(1, operand)


def test_can_cast_is_torch_s(torch_oracle: ModuleType) -> None:
    for a, b in product(NAMES, NAMES):
        expected = torch_oracle.can_cast(getattr(torch_oracle, a), getattr(torch_oracle, b))
        assert plugrad.can_cast(getattr(plugrad, a), getattr(plugrad, b)) == expected, (a, b)


@pytest.mark.parametrize(
    ("target", "other", "names"),
    [
        ("int64", 1.5, ("Float", "Long")),
        ("bool", 1, ("Long", "Bool")),
        ("float32", 1j, ("ComplexFloat", "Float")),
    ],
)
def test_in_place_result_must_fit(target: str, other: Any, names: tuple[str, str]) -> None:
    x = plugrad.ones(2, dtype=getattr(plugrad, target))
    with pytest.raises(RuntimeError) as raised:
        x.add_(other)
    assert str(raised.value) == (
        f"result type {names[0]} can't be cast to the desired output type {names[1]}"
    )


def test_to_dtype_returns_the_tensor_itself_if_nothing_changes() -> None:
    x = plugrad.ones(2)
    assert to_dtype(x, plugrad.float32) is x
    assert to_dtype(x, plugrad.int64).dtype is plugrad.int64


@pytest.mark.parametrize("name", [name for name in NAMES if name != "complex128"])
def test_numbers_that_fill_refuses(torch_oracle: ModuleType, name: str) -> None:
    integers = (300, -300, -1, -255, -256, 2**15, 2**31, 2**40, -(2**62), True)
    floats = (1e10, 1e300, -0.5, 65504.0, 65520.0, float("inf"), float("nan"))
    for number in (*integers, *floats, 1j, 2 + 0j):
        expected = found = None
        try:
            torch_oracle.zeros(2, dtype=getattr(torch_oracle, name)).fill_(number)
        except RuntimeError as error:
            expected = str(error)
        try:
            check_scalar_fits(number, getattr(plugrad, name))
        except RuntimeError as error:
            found = str(error)
        assert found == expected, number
