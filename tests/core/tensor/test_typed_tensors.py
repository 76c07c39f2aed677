"""`FloatTensor` and the like, `tensor.type()`, `tensor.new()`."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

import plugrad


@pytest.fixture(params=["plugrad", "torch"])
def lib(request: pytest.FixtureRequest) -> Any:
    if request.param == "torch":
        oracle: ModuleType = request.getfixturevalue("torch_oracle")
        return oracle
    return plugrad


NAMES = {
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "ByteTensor": "uint8",
    "CharTensor": "int8",
    "ShortTensor": "int16",
    "IntTensor": "int32",
    "LongTensor": "int64",
    "BoolTensor": "bool",
}


@pytest.mark.parametrize("name", NAMES)
def test_they_make_tensors_of_their_dtype(lib: Any, name: str) -> None:
    cls = getattr(lib, name)
    dtype = getattr(lib, NAMES[name])
    made = cls([0, 1])
    assert made.dtype is dtype
    assert cls.dtype is dtype
    assert made.tolist() == [0, 1]
    assert isinstance(made, cls)
    assert not isinstance(made, lib.LongTensor if name != "LongTensor" else lib.IntTensor)
    assert made.type() == f"{lib.__name__}.{name}"


def test_they_take_sizes(lib: Any) -> None:
    assert lib.LongTensor(2, 3).shape == (2, 3)
    assert lib.FloatTensor(lib.ones(4, 5).shape).shape == (4, 5)
    assert lib.FloatTensor().shape == (0,)


def test_they_take_a_tensor_of_their_dtype(lib: Any) -> None:
    source = lib.ones(2)
    assert lib.FloatTensor(source).data_ptr() == source.data_ptr()
    with pytest.raises(TypeError, match="expected"):
        lib.LongTensor(source)


def test_what_they_refuse(lib: Any) -> None:
    with pytest.raises(TypeError):
        lib.FloatTensor(1.5)
    with pytest.raises(TypeError):
        lib.FloatTensor(2, "a")


def test_type_converts(lib: Any) -> None:
    x = lib.ones(2)
    for wanted in (lib.DoubleTensor, lib.float64, f"{lib.__name__}.DoubleTensor"):
        assert x.type(wanted).dtype is lib.float64
    assert x.type(lib.FloatTensor).data_ptr() == x.data_ptr()
    assert (x < 0).type(lib.Tensor).dtype is lib.float32
    with pytest.raises(ValueError, match="invalid type: 'NoTensor'"):
        x.type("NoTensor")
    with pytest.raises(TypeError, match="dtype must be a type, str, or dtype object"):
        x.type(3)


def test_type_is_differentiable(lib: Any) -> None:
    x = lib.ones(2, requires_grad=True)
    x.type(lib.float64).sum().backward()
    assert x.grad.dtype is lib.float32


def test_new(lib: Any) -> None:
    x = lib.ones(2, dtype=lib.float64)
    assert x.new(3, 1).shape == (3, 1)
    assert x.new([1, 2]).dtype is lib.float64
    assert x.new([1, 2]).tolist() == [1, 2]
    assert x.new(lib.ones(4).size()).shape == (4,)
    assert x.new().shape == (0,)


def test_new_tensor(lib: Any) -> None:
    x = lib.ones(2, dtype=lib.float64)
    made = x.new_tensor([1, 2], requires_grad=True)
    assert made.dtype is lib.float64
    assert made.requires_grad
    assert x.new_tensor(3, dtype=lib.int64).dtype is lib.int64
    with pytest.warns(UserWarning, match="copy construct from a tensor"):
        copied = x.new_tensor(lib.ones(1))
    assert copied.dtype is lib.float64
