"""Tensors to and from NumPy, DLPack, Python numbers, pickle and copy."""

from __future__ import annotations

import copy
import operator
import pickle
from typing import Any

import numpy as np
import pytest

import plugrad

GRAD_ERROR = r"Can't call numpy\(\) on Tensor that requires grad. Use tensor.detach\(\).numpy\(\)"

INTEGERS = ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2")
DTYPES = (*INTEGERS, *FLOATS, "complex64", "complex128", "bool")


class TestNumpy:
    def test_shares_memory_both_ways(self) -> None:
        source = np.zeros(3)
        x = plugrad.from_numpy(source)
        x[0] = 1
        assert source[0] == 1
        x.numpy()[1] = 2
        assert x.tolist() == [1.0, 2.0, 0.0]

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_dtype_survives_the_round_trip(self, dtype: str) -> None:
        x = plugrad.ones(2, dtype=getattr(plugrad, dtype))
        assert x.numpy().dtype.name == dtype
        assert plugrad.from_numpy(x.numpy()).dtype is x.dtype

    def test_a_tensor_that_requires_grad_must_be_detached(self) -> None:
        x = plugrad.ones(2, requires_grad=True)
        for convert in (x.numpy, lambda: np.asarray(x), lambda: np.array(x * 2)):
            with pytest.raises(RuntimeError, match=GRAD_ERROR):
                convert()
        assert x.numpy(force=True).tolist() == [1.0, 1.0]
        with plugrad.no_grad():
            assert np.asarray(x).tolist() == [1.0, 1.0]

    def test_asarray_converts_and_copies_on_demand(self) -> None:
        x = plugrad.tensor([1.0, 2.0])
        assert np.asarray(x, dtype=np.int32).dtype == np.int32
        assert np.shares_memory(np.asarray(x), x.numpy())
        assert not np.shares_memory(np.array(x), x.numpy())
        with pytest.raises(ValueError, match="Unable to avoid copy"):
            np.asarray(x, dtype=np.int32, copy=False)

    def test_a_numpy_function_of_a_tensor_gives_a_tensor(self) -> None:
        x = plugrad.tensor([0.0, 1.0])
        assert repr(np.sin(x)) == "tensor([0.0000, 0.8415])"
        assert repr(np.add(np.ones(2), x)) == "tensor([1., 2.], dtype=plugrad.float64)"

    @pytest.mark.parametrize(
        ("source", "kind", "message"),
        [
            ([1, 2], TypeError, r"expected np.ndarray \(got list\)"),
            (np.float32(1), TypeError, r"expected np.ndarray \(got numpy.float32\)"),
            (np.array(["a"]), TypeError, "can't convert np.ndarray of type numpy.str_. The only"),
            (np.array([None]), TypeError, "can't convert np.ndarray of type numpy.object_"),
            (np.zeros(1, np.longdouble), TypeError, "can't convert np.ndarray of type numpy.long"),
            (np.arange(3)[::-1], ValueError, "At least one stride in the given numpy array is neg"),
            (np.array([1], dtype=">i4"), ValueError, "byte order different from the native byte"),
        ],
    )
    def test_arrays_that_cannot_be_shared(self, source: Any, kind: Any, message: str) -> None:
        with pytest.raises(kind, match=message):
            plugrad.from_numpy(source)

    def test_a_read_only_array_is_shared_with_a_warning(self) -> None:
        source = np.broadcast_to(np.ones(1), (3,))
        with pytest.warns(UserWarning, match="not writable"):
            assert plugrad.from_numpy(source).tolist() == [1.0, 1.0, 1.0]


class TestPythonNumbers:
    @pytest.mark.parametrize("data", [3, 2.5, True, 1 + 2j])
    @pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
    def test_item_is_a_python_number(self, data: Any, shape: tuple[int, ...]) -> None:
        value = plugrad.tensor(data).reshape(shape).item()
        assert type(value) is type(data)
        assert value == data

    def test_item_of_bfloat16_is_a_float(self) -> None:
        assert type(plugrad.tensor(2.5, dtype=plugrad.bfloat16).item()) is float
        assert plugrad.tensor([2.5], dtype=plugrad.bfloat16).tolist() == [2.5]

    @pytest.mark.parametrize("count", [0, 3])
    def test_item_needs_one_element(self, count: int) -> None:
        with pytest.raises(RuntimeError) as raised:
            plugrad.ones(count).item()
        assert str(raised.value) == f"a Tensor with {count} elements cannot be converted to Scalar"

    def test_tolist_nests_as_the_dimensions_do(self) -> None:
        assert plugrad.tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
        assert plugrad.tensor(5).tolist() == 5
        assert plugrad.zeros(2, 0).tolist() == [[], []]

    def test_conversions(self) -> None:
        assert float(plugrad.tensor([[3]])) == 3.0
        assert int(plugrad.tensor(-3.7)) == -3
        assert complex(plugrad.tensor(2.0)) == 2 + 0j
        assert float(plugrad.tensor(1 + 0j)) == 1.0
        assert bool(plugrad.tensor([[0.0]])) is False
        assert bool(plugrad.tensor(0.5)) is True

    @pytest.mark.parametrize("convert", [float, int, complex])
    def test_conversions_need_one_element(self, convert: Any) -> None:
        with pytest.raises(ValueError, match="only one element tensors can be converted to Python"):
            convert(plugrad.ones(2))

    def test_an_imaginary_part_does_not_get_lost(self) -> None:
        with pytest.raises(RuntimeError, match="cannot be converted to type double without overfl"):
            float(plugrad.tensor(1 + 1j))
        with pytest.raises(RuntimeError, match="cannot be converted to type int64_t without overf"):
            int(plugrad.tensor(1 + 1j))

    def test_converting_what_requires_grad_warns(self) -> None:
        with pytest.warns(UserWarning, match="Converting a tensor with requires_grad=True to a sc"):
            float(plugrad.ones((), requires_grad=True))

    def test_bool_of_several_or_no_elements_is_ambiguous(self) -> None:
        with pytest.raises(RuntimeError) as raised:
            bool(plugrad.ones(2))
        assert str(raised.value) == "Boolean value of Tensor with more than one value is ambiguous"
        with pytest.raises(RuntimeError) as raised:
            bool(plugrad.ones(0))
        assert str(raised.value) == "Boolean value of Tensor with no values is ambiguous"

    def test_one_integer_is_an_index(self) -> None:
        assert range(3)[plugrad.tensor([[1]])] == 1
        assert operator.index(plugrad.tensor(True)) == 1

    @pytest.mark.parametrize("data", [1.0, [1, 1], []])
    def test_what_is_no_index(self, data: Any) -> None:
        with pytest.raises(TypeError) as raised:
            operator.index(plugrad.tensor(data))
        assert str(raised.value) == (
            "only integer tensors of a single element can be converted to an index"
        )

    def test_format_of_a_0_dim_tensor_is_that_of_its_number(self) -> None:
        assert f"{plugrad.tensor(2.345):.2f}" == "2.35"
        assert f"{plugrad.tensor(3):>5}" == "    3"
        assert f"{plugrad.ones(2)}" == "tensor([1., 1.])"
        with pytest.raises(TypeError, match=r"unsupported format string passed to Tensor.__form"):
            f"{plugrad.ones(2):.2f}"


class TestContainer:
    def test_len_and_iteration_are_over_the_first_dimension(self) -> None:
        x = plugrad.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        assert len(x) == 2
        rows = list(x)
        assert [row.tolist() for row in rows] == [[1.0, 2.0], [3.0, 4.0]]
        assert rows[0].grad_fn is not None

    def test_a_0_dim_tensor_has_no_length(self) -> None:
        with pytest.raises(TypeError, match=r"^len\(\) of a 0-d tensor$"):
            len(plugrad.tensor(1))
        with pytest.raises(TypeError, match=r"^iteration over a 0-d tensor$"):
            iter(plugrad.tensor(1))

    def test_contains_compares_elements(self) -> None:
        x = plugrad.tensor([1.0, 2.0])
        assert 2 in x
        assert 3 not in x
        assert plugrad.tensor(1) in x
        with pytest.raises(RuntimeError, match="only supports Tensor or scalar, but you passed in"):
            assert "a" in x

    def test_hash_is_by_identity(self) -> None:
        x, y = plugrad.ones(2), plugrad.ones(2)
        assert {x: 1, y: 2}[y] == 2


class TestPickleAndCopy:
    @pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "complex128", "bool"])
    def test_pickle_keeps_values_and_dtype(self, dtype: str) -> None:
        x = plugrad.tensor([[0, 1], [1, 0]], dtype=getattr(plugrad, dtype)).t()
        loaded = pickle.loads(pickle.dumps(x))
        assert loaded.dtype is x.dtype
        assert loaded.device is x.device
        assert loaded.tolist() == x.tolist()

    def test_unpickling_gives_a_leaf(self) -> None:
        x = plugrad.ones(2, requires_grad=True)
        loaded = pickle.loads(pickle.dumps(x * 2))
        assert loaded.requires_grad
        assert loaded.is_leaf

    def test_attributes_go_along(self) -> None:
        x = plugrad.ones(2)
        x.label = "weights"
        assert pickle.loads(pickle.dumps(x)).label == "weights"
        assert copy.deepcopy(x).label == "weights"

    def test_deepcopy_has_its_own_memory_and_grad(self) -> None:
        x = plugrad.ones(2, requires_grad=True)
        (x * 3).sum().backward()
        copied = copy.deepcopy(x)
        assert copied.requires_grad
        assert copied.grad.tolist() == [3.0, 3.0]
        assert copied.grad is not x.grad
        with plugrad.no_grad():
            copied[0] = 5
        assert x.tolist() == [1.0, 1.0]

    def test_deepcopy_keeps_identities(self) -> None:
        x = plugrad.ones(2)
        first, second = copy.deepcopy([x, x])
        assert first is second

    def test_deepcopy_is_for_leaves(self) -> None:
        x = plugrad.ones(2, requires_grad=True) * 2
        with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
            copy.deepcopy(x)

    def test_a_subclass_with_its_own_constructor_is_kept(self) -> None:
        weight = plugrad.Tensor._make_subclass(Weight, plugrad.ones(2))
        assert type(copy.deepcopy(weight)) is Weight
        loaded = pickle.loads(pickle.dumps(weight))
        assert type(loaded) is Weight
        assert loaded.tolist() == [1.0, 1.0]


class Weight(plugrad.Tensor):  # type: ignore[misc]
    """Lives at module level so that pickle finds it."""


class TestDlpack:
    def test_export_shares_memory(self) -> None:
        x = plugrad.zeros(3)
        np.from_dlpack(x)[0] = 4
        assert x.tolist() == [4.0, 0.0, 0.0]
        assert tuple(x.__dlpack_device__()) == (1, 0)

    def test_import_shares_memory(self) -> None:
        source = np.zeros(2)
        x = plugrad.from_dlpack(source)
        source[1] = 3
        assert x.tolist() == [0.0, 3.0]

    def test_import_from_torch(self, torch_oracle: Any) -> None:
        source = torch_oracle.ones(2)
        x = plugrad.from_dlpack(source)
        x[0] = 7
        assert source.tolist() == [7.0, 1.0]
        assert torch_oracle.from_dlpack(x).tolist() == [7.0, 1.0]

    def test_import_of_a_bare_capsule(self) -> None:
        assert plugrad.from_dlpack(np.arange(3).__dlpack__()).tolist() == [0, 1, 2]

    def test_a_tensor_that_requires_grad_is_not_exported(self) -> None:
        with pytest.raises(BufferError, match="Can't export tensors that require gradient"):
            plugrad.ones(2, requires_grad=True).__dlpack__()

    def test_import_names_what_it_wants(self) -> None:
        with pytest.raises(TypeError, match="an object with __dlpack__, got list"):
            plugrad.from_dlpack([1])


class TestLayout:
    def test_strides_are_in_elements(self) -> None:
        x = plugrad.zeros(2, 3, 4)
        assert x.stride() == (12, 4, 1)
        assert x.transpose(0, 2).stride() == (1, 4, 12)
        assert x[1, 1:].storage_offset() == 16

    def test_contiguity_ignores_dimensions_of_size_1(self) -> None:
        x = plugrad.zeros(2, 3)
        assert x.is_contiguous()
        assert not x.t().is_contiguous()
        assert x[:, :1].unsqueeze(0).transpose(0, 2).is_contiguous() is False
        assert plugrad.zeros(1, 3).t().is_contiguous()
        assert plugrad.zeros(0, 3).t().is_contiguous()
