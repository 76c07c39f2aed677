"""Limits, casts and numbers of the dtypes; the wider unsigned integers and the 8-bit floats."""

from __future__ import annotations

import copy
import pickle
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.dtype import ALL_DTYPES

UNSIGNED = ("uint16", "uint32", "uint64")
FLOAT8 = ("float8_e4m3fn", "float8_e5m2")
FLOATS = ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype")


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=repr)
def test_limits_are_torch_s(torch_oracle: ModuleType, dtype: plugrad.dtype) -> None:
    if dtype is plugrad.bool:
        return
    is_integer = not dtype.is_floating_point and not dtype.is_complex
    info, names = ("iinfo", ("bits", "max", "min", "dtype")) if is_integer else ("finfo", FLOATS)
    ours = getattr(plugrad, info)(dtype)
    theirs = getattr(torch_oracle, info)(getattr(torch_oracle, dtype.name))
    assert {name: getattr(ours, name) for name in names} == {
        name: getattr(theirs, name) for name in names
    }


def cases(lib: Any, name: str) -> Any:
    return [
        lambda: lib.tensor([1.5, 2.0, 300.0, 1e4, -1e9], dtype=lib.float64).to(getattr(lib, name)),
        lambda: lib.tensor([0, 1, -1, 70000]).to(getattr(lib, name)),
        lambda: lib.tensor([0, 1, 3], dtype=getattr(lib, name)).to(lib.float32),
        lambda: lib.tensor([-1], dtype=getattr(lib, name)),
        lambda: lib.tensor([2**64 - 1], dtype=getattr(lib, name)),
        lambda: lib.tensor([2**63, 2**64 - 5], dtype=getattr(lib, name)).tolist(),
        lambda: lib.full((2,), -1, dtype=getattr(lib, name)),
        lambda: lib.zeros(2, dtype=getattr(lib, name)).fill_(70000),
        lambda: lib.zeros(2, dtype=getattr(lib, name)).copy_(lib.tensor([3.0, 500.0])),
        lambda: lib.tensor(1, dtype=getattr(lib, name)) == 1,
        lambda: lib.tensor([1, 0], dtype=getattr(lib, name)).bool(),
        lambda: lib.tensor(3, dtype=getattr(lib, name)).item(),
        lambda: lib.tensor([3.0]).type(f"{lib.__name__}.{name.capitalize()}Tensor"),
        lambda: lib.zeros(1, dtype=getattr(lib, name)).type().rpartition(".")[2],
        lambda: lib.zeros(2, dtype=getattr(lib, name)).random_(),
    ]


@pytest.mark.parametrize("name", [*UNSIGNED, *FLOAT8])
def test_conversions_are_torch_s(torch_oracle: ModuleType, name: str) -> None:
    for number, (ours, theirs) in enumerate(
        zip(cases(plugrad, name), cases(torch_oracle, name), strict=True)
    ):
        shown = []
        for call in (ours, theirs):
            try:
                shown.append(repr(call()).replace("torch.", "plugrad."))
            except (ValueError, RuntimeError, OverflowError, NotImplementedError) as error:
                shown.append(f"{type(error).__name__}: {error}".replace("torch.", "plugrad."))
        assert shown[0] == shown[1], number


@pytest.mark.parametrize("name", [*UNSIGNED, *FLOAT8])
@pytest.mark.parametrize("twin", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_keep_the_dtype(name: str, twin: Any) -> None:
    tensor = plugrad.tensor([1, 2], dtype=getattr(plugrad, name))
    found = twin(tensor)
    assert found.dtype is tensor.dtype
    assert found.tolist() == [1, 2]


@pytest.mark.parametrize("name", UNSIGNED)
def test_operators_on_unsigned_integers_are_numpy_s(name: str) -> None:
    highest = int(np.iinfo(name).max)
    a, b = np.array([1, 5, highest], name), np.array([3, 2, highest - 1], name)
    x, y = plugrad.from_numpy(a), plugrad.from_numpy(b)
    for found, expected in [
        (x + y, a + b), (x - y, a - b), (x * y, a * b), (x // y, a // b), (x % y, a % b),
        (x & y, a & b), (x | y, a | b), (x ^ y, a ^ b), (~x, ~a), (x << 1, a << 1),
        (x >> 1, a >> 1),
        (x < y, a < b), (x >= y, a >= b), (x == highest, a == highest), (-x, np.negative(a)),
        (x.max(), a.max()), (x.argmin(), a.argmin()), (x.sort().values, np.sort(a)),
        (x.sum(dtype=x.dtype), a.sum(dtype=name)), (x.clamp(2, 4), a.clip(2, 4)),
        (plugrad.maximum(x, y), np.maximum(a, b)), (x[x > 1], a[a > 1]), (x.flip(0), a[::-1]),
        (x.cumsum(0, dtype=x.dtype), a.cumsum(dtype=name)), (x[plugrad.tensor([2, 0])], a[[2, 0]]),
    ]:  # fmt: skip
        assert found.dtype.name == expected.dtype.name
        assert found.tolist() == expected.tolist()


def test_gradients_flow_through_casts_to_8_bits() -> None:
    x = plugrad.tensor([1.06, 500.0], requires_grad=True)
    y = x.to(plugrad.float8_e4m3fn).to(plugrad.float32)
    assert y.tolist() == [1.0, 448.0]
    y.backward(plugrad.tensor([2.0, 3.0]))
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 3.0]


@pytest.mark.parametrize("name", FLOAT8)
def test_8_bit_floats_are_no_default(name: str) -> None:
    with pytest.raises(TypeError, match=f"plugrad.{name} is for storage and cannot be the default"):
        plugrad.set_default_dtype(getattr(plugrad, name))
    with pytest.raises(NotImplementedError, match="not implemented for 'Float8"):
        plugrad.rand(2, dtype=getattr(plugrad, name))
