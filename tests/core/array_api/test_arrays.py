"""The standard's requirements on arrays, dtypes and the namespace itself."""

from __future__ import annotations

import sys
from array import array
from subprocess import run
from typing import Any

import array_api_compat
import array_api_strict as strict
import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import plugrad
from plugrad import array_api as xp
from tests.core.array_api.against_strict import DTYPES, SIGNED, UNSIGNED


def test_tensors_name_the_namespace() -> None:
    x = plugrad.ones(2)
    assert x.__array_namespace__() is xp
    assert x.__array_namespace__(api_version="2025.12") is xp
    assert xp.__array_api_version__ == "2025.12"
    with pytest.raises(ValueError, match=r"follows the array API standard 2025.12, not '2020.01'"):
        x.__array_namespace__(api_version="2020.01")


def test_array_api_compat_finds_it() -> None:
    x = plugrad.ones(2, 3)
    assert array_api_compat.is_array_api_obj(x)
    assert array_api_compat.array_namespace(x, x) is xp
    assert array_api_compat.device(x) is x.device
    assert array_api_compat.size(x) == 6
    assert array_api_compat.to_device(x, "cpu") is x


def test_the_namespace_is_loaded_at_first_use() -> None:
    code = "import plugrad, sys; print('plugrad.array_api' in sys.modules); plugrad.array_api.abs"
    done = run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_everything_that_the_standard_names_is_there() -> None:
    names = {name for name in strict.__all__ if "strict" not in name.lower()}
    assert names - {"Device", "__version__"} <= set(xp.__all__)
    for name in xp.__all__:
        assert getattr(xp, name) is not None or name == "newaxis"
    for method in dir(strict.ones(1)):
        if method.startswith("__") and method not in ("__buffer__", "__imatmul__", "__slots__"):
            assert hasattr(plugrad.Tensor, method), method


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "kind", [*["bool", "integral", "numeric"], "signed integer", "unsigned integer",
             "real floating", "complex floating", ("bool", "integral")],
)  # fmt: skip
def test_kinds_of_dtypes(dtype: str, kind: Any) -> None:
    expected = strict.isdtype(getattr(strict, dtype), kind)
    assert xp.isdtype(getattr(xp, dtype), kind) == expected


def test_a_kind_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="unknown kind 'real'; expected one of bool, signed"):
        xp.isdtype(xp.float32, "real")


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bool"])
def test_limits(dtype: str) -> None:
    info = "iinfo" if dtype in SIGNED + UNSIGNED else "finfo"
    names = ("bits", "max", "min", *(("eps", "smallest_normal") if info == "finfo" else ()))
    theirs = getattr(strict, info)(getattr(strict, dtype))
    for given in (getattr(xp, dtype), xp.ones(1, dtype=getattr(xp, dtype))):
        ours = getattr(xp, info)(given)
        assert [getattr(ours, n) for n in names] == [getattr(theirs, n) for n in names]
        assert ours.dtype.name == str(theirs.dtype).rpartition(".")[2]


def test_the_namespace_tells_of_itself() -> None:
    info = xp.__array_namespace_info__()
    assert info.default_device() in info.devices()
    assert info.default_dtypes()["real floating"] is plugrad.float32
    assert set(info.dtypes()) == set(DTYPES)
    assert set(info.dtypes(kind="signed integer")) == set(SIGNED)
    assert set(info.dtypes(kind=("bool", "unsigned integer"))) == {"bool", *UNSIGNED}
    assert info.capabilities()["data-dependent shapes"] is True
    with pytest.raises(ValueError, match="unknown kind 'x'"):
        info.dtypes(kind="x")


def test_astype_copies_unless_told_otherwise() -> None:
    x = plugrad.ones(2, requires_grad=True)
    copied = xp.astype(x, xp.float32)
    assert copied is not x
    copied.sum().backward()
    assert x.grad is not None
    assert xp.astype(x, xp.float32, copy=False) is x
    assert xp.astype(x, xp.int8).dtype is xp.int8
    assert type(xp.astype(x, xp.int8)) is plugrad.Tensor


def test_astype_of_an_array_is_an_array() -> None:
    made = xp.astype(xp.asarray([[1.5, -1.5]]), xp.int64)
    # A tensor's `size` is a method.
    assert made.size == 2
    assert made.tolist() == [[1, -1]]


def test_copies_of_asarray_and_reshape() -> None:
    x = plugrad.arange(6.0)
    assert xp.asarray(x) is x
    assert xp.asarray(x, copy=True) is not x
    assert xp.reshape(x, (2, 3), copy=False)._base is x
    assert xp.reshape(x, (2, 3), copy=True)._base is None
    with pytest.raises(ValueError, match="this needs a copy"):
        xp.reshape(xp.reshape(x, (2, 3)).T, (6,), copy=False)
    for number in (1, 2.0, [1]):
        with pytest.raises(ValueError, match=r"without a copy|can't alias"):
            xp.asarray(number, copy=False)


@pytest.mark.parametrize("code", [*"bhiqBHIQfd"])
def test_buffers_have_a_dtype_and_a_shape(code: str) -> None:
    numbers = array(code, [1, 2, 3])
    shared = xp.asarray(numbers)
    assert shared.dtype.name == np.dtype(code).name
    assert shared.tolist() == [1, 2, 3]
    numbers[0] = type(numbers[0])(5)
    assert shared.tolist() == [5, 2, 3]
    assert xp.asarray(numbers, copy=True, dtype=xp.float64).dtype is xp.float64
    table = memoryview(np.arange(6, dtype=code).reshape(2, 3))
    assert xp.asarray(table).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_what_may_only_be_read_is_copied() -> None:
    made = xp.asarray(b"abc")
    made += 1
    assert made.tolist() == list(b"bcd")


@hypothesis.given(
    a=st.integers(0, 2**64 - 1), b=st.integers(0, 2**64 - 1), num=st.integers(1, 5),
    end=st.booleans(),
)  # fmt: skip
@hypothesis.settings(max_examples=30, deadline=None, derandomize=True, database=None)
def test_linspace_begins_and_ends_exactly(a: int, b: int, num: int, end: bool) -> None:
    made = xp.linspace(a, b, num, dtype=xp.uint64, endpoint=end)
    assert made.shape == (num,)
    assert int(made[0]) == a
    if end and num > 1:
        assert int(made[-1]) == b


def test_dlpack_goes_both_ways() -> None:
    x = xp.asarray([1.0, 2.0])
    shared = np.from_dlpack(x)
    shared[0] = 5.0
    assert x.tolist() == [5.0, 2.0]
    assert xp.from_dlpack(np.arange(3)).tolist() == [0, 1, 2]
    copied = np.from_dlpack(x, copy=True)
    copied[0] = 7.0
    assert x.tolist() == [5.0, 2.0]


def test_to_device() -> None:
    x = plugrad.ones(2)
    assert x.to_device("meta").device.type == "meta"
    assert x.to_device(x.device) is x
    with pytest.raises(ValueError, match="stream must be None"):
        x.to_device("cpu", stream=1)


@pytest.mark.parametrize("call", [
    lambda: xp.squeeze(xp.ones((2, 1)), axis=0), lambda: xp.concat([xp.ones(1), xp.ones((1, 1))]),
    lambda: xp.take(xp.ones((2, 2)), xp.asarray([0])), lambda: xp.cumulative_sum(xp.ones((2, 2))),
    lambda: xp.matrix_transpose(xp.ones(3)), lambda: xp.meshgrid(xp.ones(1), indexing="x"),
    lambda: xp.vecdot(xp.ones(2), xp.ones(3)), lambda: xp.nonzero(xp.asarray(1)),
    lambda: xp.expand_dims(xp.ones(2), axis=(0, 0)), lambda: xp.searchsorted(
        xp.ones(2), xp.ones(2), side="middle"), lambda: xp.take_along_axis(
        xp.ones((2, 2)), xp.asarray([0])), lambda: xp.broadcast_shapes((2,), (3,)),
])  # fmt: skip
def test_values_that_are_refused(call: Any) -> None:
    with pytest.raises(ValueError, match=r"\w+"):
        call()


def test_axes_out_of_range() -> None:
    for call in (xp.expand_dims, xp.squeeze):
        with pytest.raises(IndexError, match="axis 3 is out of range"):
            call(xp.ones((1, 1)), axis=3)


@pytest.mark.parametrize("name", ["exp", "sqrt", "tanh", "std", "max", "prod"])
def test_results_may_be_written_to_before_backward(name: str) -> None:
    x = plugrad.tensor([1.0, 2.0], requires_grad=True)
    found = getattr(xp, name)(x)
    expected = plugrad.autograd.grad(getattr(xp, name)(x).sum(), x)[0] * 3
    found *= 3
    assert plugrad.allclose(plugrad.autograd.grad(found.sum(), x)[0], expected)
