"""NumPy arrays and scalars beside tensors; the oracle is the operator on two tensors."""

from __future__ import annotations

import operator
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import plugrad

ARITHMETIC = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
BITS = ["and_", "or_", "xor", "lshift", "rshift"]
SCALARS = [np.float32(2), np.float64(2), np.int64(2), np.bool_(True)]


def same(found: Any, expected: Any) -> None:
    assert isinstance(found, plugrad.Tensor)
    assert found.dtype is expected.dtype
    assert found.requires_grad == expected.requires_grad
    assert plugrad.equal(found, expected)


@pytest.mark.parametrize("name", ARITHMETIC + COMPARISONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("grad", [False, True])
def test_an_array_counts_as_a_tensor(name: str, dtype: Any, grad: bool) -> None:
    function = getattr(operator, name)
    array = np.array([[2, 1], [1, 2]], dtype)
    tensor = plugrad.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=grad)
    other = plugrad.tensor(array)
    if name == "matmul":
        kind = plugrad.promote_types(tensor.dtype, other.dtype)
        same(tensor @ array, tensor.to(kind) @ other.to(kind))
        same(array @ tensor, other.to(kind) @ tensor.to(kind))
        return
    same(function(tensor, array), function(tensor, other))
    same(function(array, tensor), function(other, tensor))


@pytest.mark.parametrize("name", BITS)
def test_bits_of_an_array_too(name: str) -> None:
    function = getattr(operator, name)
    array, tensor = np.array([2, 1]), plugrad.tensor([3, 5])
    same(function(tensor, array), function(tensor, plugrad.tensor(array)))
    same(function(array, tensor), function(plugrad.tensor(array), tensor))


@pytest.mark.parametrize("name", ARITHMETIC[:-1] + COMPARISONS)
@pytest.mark.parametrize("scalar", SCALARS, ids=lambda scalar: type(scalar).__name__)
def test_a_scalar_of_numpys_counts_as_a_number(name: str, scalar: Any) -> None:
    function = getattr(operator, name)
    number = scalar.item()
    tensor = plugrad.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    if number is True:
        number = 1  # PyTorch refuses to subtract a bool of Python's only
    same(function(tensor, scalar), function(tensor, number))
    same(function(scalar, tensor), function(number, tensor))


def test_gradients_flow_to_the_tensor() -> None:
    x = plugrad.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    (np.ones((2, 2), np.float32) @ x * np.float32(3)).sum().backward()
    assert x.grad.tolist() == [[6.0, 6.0], [6.0, 6.0]]


def test_what_is_written_to_the_array_later_does_not_change_a_gradient() -> None:
    array = np.array([2.0, 3.0])
    x = plugrad.ones(2, requires_grad=True)
    for product in (x * array, array * x):
        array[:] = 7
        (grad,) = plugrad.autograd.grad(product.sum(), x)
        assert grad.tolist() == [2.0, 3.0]
        array[:] = [2.0, 3.0]


@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv", "ipow", "imod", "ifloordiv"])
def test_an_array_changes_a_tensor_in_place(name: str) -> None:
    function = getattr(operator, name)
    array = np.array([2.0, 3.0])
    leaf = plugrad.tensor([5.0, 7.0], requires_grad=True)
    x, y = leaf * 1, leaf * 1
    before = x
    x = function(x, array)
    assert x is before
    assert x._version == 1
    same(x, function(y, plugrad.tensor(array)))


@pytest.mark.parametrize("name", ["iand", "ior", "ixor", "ilshift", "irshift"])
def test_bits_change_in_place(name: str) -> None:
    function = getattr(operator, name)
    array, x = np.array([2, 1]), plugrad.tensor([3, 5])
    before = x
    x = function(x, array)
    assert x is before
    same(x, function(plugrad.tensor([3, 5]), plugrad.tensor(array)))


def test_a_tensor_changes_an_array_in_place() -> None:
    array = np.array([2.0, 3.0])
    before = array
    array += plugrad.tensor([1.0, 2.0])
    assert array is before
    assert array.tolist() == [3.0, 5.0]
    with pytest.raises(RuntimeError, match=r"would be lost\. Use"):
        array += plugrad.ones(2, requires_grad=True)
    assert array.tolist() == [3.0, 5.0]


@pytest.mark.parametrize("name", ["sin", "exp", "sqrt", "negative", "absolute", "log1p", "rint"])
def test_universal_functions_are_plugrads(name: str) -> None:
    x = plugrad.tensor([0.5, 2.0], requires_grad=True)
    result = getattr(np, name)(x)
    assert result.requires_grad
    np.testing.assert_allclose(result.detach().numpy(), getattr(np, name)(x.detach().numpy()))


@pytest.mark.parametrize("name", ["maximum", "arctan2", "hypot", "fmod", "logaddexp", "equal"])
def test_those_of_two_arguments_take_tensors_arrays_and_numbers(name: str) -> None:
    function = getattr(np, name)
    values = np.array([0.5, 2.0])
    x = plugrad.tensor(values, requires_grad=True)
    for other in (np.array([1.0, -3.0]), np.float64(1.5), 1.5):
        for found, expected in (
            (function(x, other), function(values, other)),
            (function(other, x), function(other, values)),
        ):
            assert found.requires_grad == (name != "equal")
            np.testing.assert_allclose(found.detach().numpy(), expected)


def test_what_only_numpy_has_is_refused_where_a_gradient_would_be_lost() -> None:
    x = plugrad.tensor([1.0, 8.0])
    assert np.cbrt(x).tolist() == [1.0, 2.0]
    assert np.add.reduce(x).item() == 9.0
    assert [part.tolist() for part in np.divmod(x, 3.0)] == [[0.0, 2.0], [1.0, 2.0]]
    x.requires_grad_()
    with pytest.raises(RuntimeError, match=r"numpy.cbrt\(\) is NumPy's alone"):
        np.cbrt(x)
    with pytest.raises(RuntimeError, match=r"numpy.add.reduce\(\) is NumPy's alone"):
        np.add.reduce(x)


def test_numpy_does_not_write_into_tensors() -> None:
    x = plugrad.zeros(2)
    with pytest.raises(TypeError, match="NumPy cannot write into a Tensor"):
        np.add(np.ones(2), 1, out=x)
    with pytest.raises(TypeError, match="NumPy cannot write into a Tensor"):
        np.add.at(x, [0], 1)
    assert x.tolist() == [0.0, 0.0]


def test_arrays_that_no_tensor_can_share_are_copied() -> None:
    x = plugrad.ones(3)
    assert (x + np.arange(3.0)[::-1]).tolist() == [3.0, 2.0, 1.0]
    assert (np.arange(3.0).astype(">f8") + x).tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(TypeError, match="of type numpy"):
        x + np.array([None] * 3)


def test_other_classes_with_universal_functions_are_asked_first() -> None:
    class Mine:
        def __array_ufunc__(self, *args: Any, **options: Any) -> str:
            return "mine"

    assert np.add(plugrad.ones(2), Mine()) == "mine"


class Subclass(np.ndarray):
    pass


SUBCLASSES = {
    "matrix": lambda: np.arange(4.0).reshape(2, 2).view(np.matrix),
    "masked": lambda: np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]),
    "recarray": lambda: np.arange(3.0).view(np.recarray),
    "own": lambda: np.arange(3.0).view(Subclass),
}


@pytest.mark.parametrize("name", sorted(SUBCLASSES))
@pytest.mark.parametrize("function", ["from_numpy", "as_tensor", "asarray", "tensor"])
def test_a_tensor_of_a_subclass_is_one_of_its_memory(name: str, function: str) -> None:
    array = SUBCLASSES[name]()
    tensor = getattr(plugrad, function)(array)
    assert type(tensor.numpy()) is np.ndarray
    assert tensor.tolist() == np.array(array).tolist()
    assert tensor[0].ndim == tensor.ndim - 1
    assert "None" not in repr(tensor)
    shared = np.shares_memory(np.asarray(array), tensor.numpy())
    assert shared == (function != "tensor")


def test_a_memory_map_is_written_to(tmp_path: Any) -> None:
    mapped = np.memmap(tmp_path / "numbers", dtype=np.float32, mode="w+", shape=(3,))
    plugrad.from_numpy(mapped).fill_(2)
    mapped.flush()
    assert np.fromfile(tmp_path / "numbers", np.float32).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    "given",
    [
        lambda x: x.numpy(),
        lambda x: x.numpy(force=True),
        np.asarray,
        lambda x: x.__array__(),
        lambda x: np.asarray(x, dtype=np.float32),
        np.from_dlpack,
    ],
)
def test_an_array_of_a_tensor_is_not_the_tensors_own(given: Any) -> None:
    x = plugrad.arange(4.0)
    array = given(x)
    assert np.shares_memory(array, x.numpy())
    array.shape = (2, 2)
    if array.flags.writeable:
        array[0, 0] = 5.0
    array.dtype = np.int32
    assert x.shape == (4,)
    assert x.dtype is plugrad.float32
    assert x.sum() == (11.0 if array.flags.writeable else 6.0)


@pytest.mark.parametrize("function", ["from_numpy", "as_tensor", "asarray"])
def test_an_array_keeps_its_geometry_to_itself(function: str) -> None:
    array = np.arange(4.0)
    x = getattr(plugrad, function)(array)
    array.shape = (2, 2)
    assert x.shape == (4,)
    assert (x + 1).tolist() == [1.0, 2.0, 3.0, 4.0]


def test_the_first_use_of_an_array_beside_a_tensor_imports_what_it_needs() -> None:
    code = "import numpy, plugrad; print((numpy.ones((2, 2)) @ plugrad.ones(2, 2)).sum().item())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.split() == [b"8.0"]
