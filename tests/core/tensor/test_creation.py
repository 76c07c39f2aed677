"""tensor(), as_tensor(), asarray(), scalar_tensor(): inference and errors are PyTorch's."""

from __future__ import annotations

import warnings
from array import array
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import plugrad


class Indexable:
    def __index__(self) -> int:
        return 3


class Floating:
    def __float__(self) -> float:
        return 3.5


def outcome(make: Any, lib: Any) -> str:
    """The tensor as text, or the error, with PyTorch's name replaced by ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            text = repr(make(lib))
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
    return text.replace("torch.", "plugrad.")


def nested(depth: int) -> Any:
    data: Any = 1
    for _ in range(depth):
        data = [data]
    return data


def looped() -> list[Any]:
    data: list[Any] = [1]
    data.append(data)
    return data


DATA: dict[str, Any] = {
    "int": 3,
    "float": 2.5,
    "bool": True,
    "complex": 1 + 2j,
    "bool and int": [True, 1],
    "bool and float": [True, 1.0],
    "int, float and complex": [1, 1.0, 1j],
    "nested": [[1, 2], [3, 4.5]],
    "tuples and lists": [(1, 2), [3, 4]],
    "range": range(5),
    "ranges in a list": [range(2), [3, 4]],
    "deque": deque([1, 2]),
    "typed array": array("d", [1, 2]),
    "bytearray": bytearray(b"abc"),
    "memoryview": memoryview(b"abc"),
    "empty": [],
    "empty rows": [[], []],
    "empty first row": [[], [1]],
    "empty first row, complex": [[], [1j]],
    "empty, three deep": [[[]]],
    "numpy float64": np.float64(1),
    "numpy int8": np.int8(1),
    "numpy bool": np.bool_(True),
    "numpy scalars": [np.float32(1), 2],
    "numpy scalars promote": [np.uint8(1), np.int8(2)],
    "numpy half and int": [np.float16(1), np.int16(1)],
    "numpy array": np.arange(6).reshape(2, 3).T,
    "numpy 0-dim": np.array(3.5),
    "list of arrays": [np.array([1, 2]), np.array([2.0, 3])],
    "list of matrices": [np.array([[1, 2]]), np.array([[3, 4]])],
    "arrays of different length": [np.array([1, 2]), np.array([2.0, 3, 4])],
    "ragged": [[1, 2, 3], [1, 2]],
    "ragged, deeper": [[[1, 2], [1, 2]], [[1, 2], [1]]],
    "number then list": [1, [1]],
    "float then list": [1.0, [1]],
    "list then number": [[1], 1],
    "list then deeper list": [[1], [[1]]],
    "str": "a",
    "str in a list": ["abc", "def"],
    "str after a number": [1, "a"],
    "bytes": b"abc",
    "bytes in a list": [b"abc"],
    "None": None,
    "None in a list": [1, None],
    "None after a row": [[1], None],
    "dict": {1: 2},
    "set": {1, 2},
    "object with __index__": Indexable(),
    "objects with __float__": [Floating()],
    "Decimal": Decimal("1.5"),
    "Fraction": Fraction(1, 2),
    "generator": (x for x in [1]),
    "holds itself": looped(),
    "64 deep": nested(64),
    "129 deep": nested(129),
    "too big for int64": 2**63,
    "too small for int64": [-(2**63) - 1],
    "big and float": [2**70, 1.0],
    "overflows float32": 1e40,
    "overflows complex64": 1e300 * 1j,
    "strings array": np.array(["a"]),
    "big endian": np.array([1], dtype=">i4"),
    "negative strides": np.arange(3)[::-1],
    "split strides": np.zeros(2, dtype=[("a", "i4"), ("b", "i8")])["b"],
}
NAMES_OUR_DTYPES = {"strings array"}


@pytest.mark.parametrize("case", DATA)
def test_tensor_infers_as_torch(torch_oracle: ModuleType, case: str) -> None:
    found = outcome(lambda lib: lib.tensor(DATA[case]), plugrad)
    expected = outcome(lambda lib: lib.tensor(DATA[case]), torch_oracle)
    if case in NAMES_OUR_DTYPES:
        found, expected = found.partition(". The only")[0], expected.partition(". The only")[0]
    assert found == expected


CONVERSIONS: tuple[Any, ...] = (
    *(1.5, -1.5, [1.5, -1.5], -0.5, True, [True, False], 3, -1, 200, 256, -255, -256),
    *([300], 2**15, 2**31, 2**40, [2**40], 2**63, 2**65, 2**1100),
    *(float("nan"), float("inf"), -float("inf"), 1e30, 1e10, 1e40, 70000, [70000.0], 65519.0),
    *(1j, [1j], 1 + 0j, [2, 0, 0.5], [1, 2.5, True], None, [None], "a", ["a"]),
    *([Indexable()], [Floating()], Decimal("1.5"), [np.float32(1.5)], [np.int8(3), 2.5]),
    *([np.array([1.5])], np.array([1.5, -2.5]), np.array([1, 0]), np.array([1.5 + 2j]), []),
)
TARGETS = ("uint8", "int16", "int64", "float16", "bfloat16", "float32", "float64", "complex64")


def converted(data: Any, target: str, lib: Any) -> Any:
    return lib.tensor(data, dtype=getattr(lib, target))


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("target", [*TARGETS, "bool"])
def test_tensor_converts_to_a_dtype_as_torch(torch_oracle: ModuleType, target: str) -> None:
    for data in CONVERSIONS:
        make = partial(converted, data, target)
        found, expected = outcome(make, plugrad), outcome(make, torch_oracle)
        # Only the suffix may break differently, as our name is longer.
        assert "".join(found.split()) == "".join(expected.split()), data


@pytest.mark.parametrize("case", ["mixed", "row", "vectors", "float as index", "matrices"])
def test_lists_of_tensors(torch_oracle: ModuleType, case: str) -> None:
    def make(lib: Any) -> Any:
        if case == "mixed":
            return lib.tensor([lib.tensor(1.5, dtype=lib.float64), 2.0, lib.tensor([3])])
        if case == "row":
            return lib.tensor([[lib.tensor(1)], [2.0]])
        if case == "vectors":
            return lib.tensor([lib.tensor([1, 2]), lib.tensor([2, 3])])
        if case == "float as index":
            return lib.tensor([lib.tensor(1.5)], dtype=lib.int64)
        return lib.tensor([lib.ones(2), lib.ones(2)])

    assert outcome(make, plugrad) == outcome(make, torch_oracle)


def test_default_dtype_is_that_of_python_floats() -> None:
    plugrad.set_default_dtype(plugrad.float64)
    try:
        assert plugrad.tensor(1.0).dtype is plugrad.float64
        assert plugrad.tensor([]).dtype is plugrad.float64
        assert plugrad.tensor([1j]).dtype is plugrad.complex128
        assert plugrad.tensor([np.float32(1)]).dtype is plugrad.float32
    finally:
        plugrad.set_default_dtype(plugrad.float32)


def test_python_types_name_dtypes() -> None:
    assert plugrad.tensor(1, dtype=float).dtype is plugrad.float64
    assert plugrad.tensor(1, dtype=bool).dtype is plugrad.bool
    with pytest.raises(TypeError, match=r"argument 'dtype' must be plugrad.dtype, not str"):
        plugrad.tensor(1, dtype="float32")


def test_tensor_copies_an_array() -> None:
    source = np.zeros(2)
    made = plugrad.tensor(source)
    source[0] = 1
    assert made.tolist() == [0.0, 0.0]


def test_tensor_of_a_tensor_copies_and_advises() -> None:
    source = plugrad.tensor([1.0, 2.0], requires_grad=True)
    with pytest.warns(UserWarning, match=r"sourceTensor.detach\(\).clone\(\)"):
        made = plugrad.tensor(source)
    assert made.is_leaf
    assert not made.requires_grad
    made[0] = 5
    assert source.tolist() == [1.0, 2.0]


def test_requires_grad_needs_a_dtype_with_a_gradient() -> None:
    assert plugrad.tensor([1.0], requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="floating point and complex dtype can require"):
        plugrad.tensor([1], requires_grad=True)


def test_an_object_with_dlpack_is_copied() -> None:
    class Exporter:
        def __init__(self, array: Any) -> None:
            self.array = array

        def __dlpack__(self, **options: Any) -> Any:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    source = np.arange(3)
    made = plugrad.tensor(Exporter(source))
    source[0] = 9
    assert made.tolist() == [0, 1, 2]
    assert plugrad.asarray(Exporter(source)).tolist() == [9, 1, 2]


def test_large_nested_lists_keep_their_order() -> None:
    data = np.arange(60_000.0).reshape(20, 30, 100)
    assert np.array_equal(plugrad.tensor(data.tolist()).numpy(), data.astype(np.float32))


class TestScalarTensor:
    def test_takes_the_default_dtype_even_for_an_int(self) -> None:
        assert repr(plugrad.scalar_tensor(3)) == "tensor(3.)"
        assert repr(plugrad.scalar_tensor(3.5, dtype=plugrad.int64)) == "tensor(3)"

    def test_refuses_what_does_not_fit(self) -> None:
        with pytest.raises(RuntimeError, match="type float without overflow"):
            plugrad.scalar_tensor(1j)
        with pytest.raises(TypeError, match=r"argument 's' \(position 1\) must be Number, not lis"):
            plugrad.scalar_tensor([1])


class TestAsTensor:
    def test_returns_a_tensor_itself(self) -> None:
        x = plugrad.ones(2, requires_grad=True)
        assert plugrad.as_tensor(x) is x
        assert plugrad.as_tensor(x, dtype=plugrad.float32) is x

    def test_a_change_of_dtype_stays_in_the_graph(self) -> None:
        x = plugrad.ones(2, requires_grad=True)
        assert plugrad.as_tensor(x, dtype=plugrad.float64).grad_fn is not None

    def test_shares_the_memory_of_an_array(self) -> None:
        source = np.zeros(2)
        made = plugrad.as_tensor(source)
        source[0] = 1
        assert made.tolist() == [1.0, 0.0]

    def test_a_change_of_dtype_copies_an_array(self) -> None:
        source = np.zeros(2)
        made = plugrad.as_tensor(source, dtype=plugrad.float32)
        source[0] = 1
        assert made.tolist() == [0.0, 0.0]


class TestAsArray:
    def test_copy_decides_about_sharing(self) -> None:
        x = plugrad.ones(2)
        assert plugrad.asarray(x) is x
        copied = plugrad.asarray(x, copy=True)
        copied[0] = 5
        assert x.tolist() == [1.0, 1.0]
        with pytest.raises(ValueError, match="can't alias tensor with dtype 'Float' into dtype 'D"):
            plugrad.asarray(x, dtype=plugrad.float64, copy=False)
        with pytest.raises(ValueError, match="can't alias arbitrary sequence into a tensor"):
            plugrad.asarray([1, 2], copy=False)

    def test_requires_grad_false_detaches(self) -> None:
        x = plugrad.ones(2, requires_grad=True)
        assert plugrad.asarray(x).requires_grad
        assert not plugrad.asarray(x, requires_grad=False).requires_grad
        assert x.requires_grad
        assert plugrad.asarray([1.0], requires_grad=True).requires_grad

    def test_reads_a_buffer(self) -> None:
        buffer = bytearray([1, 2])
        made = plugrad.asarray(buffer, dtype=plugrad.uint8)
        buffer[0] = 7
        assert made.tolist() == [7, 2]
        with pytest.raises(ValueError, match=r"buffer length \(3 bytes\) after offset \(0 bytes\)"):
            plugrad.asarray(bytearray(3))


@pytest.mark.parametrize("kind", [int, np.int64, np.uint8, plugrad.tensor])
def test_the_constructor_takes_sizes_of_any_kind_of_integer(kind: Callable[[int], Any]) -> None:
    assert plugrad.Tensor(kind(2), kind(3)).shape == (2, 3)
    assert plugrad.Tensor(2, kind(3)).shape == (2, 3)
    if kind is not plugrad.tensor:
        assert plugrad.Tensor(kind(2)).shape == (2,)
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        plugrad.Tensor(True, kind(3))
