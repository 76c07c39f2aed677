"""What tensors say about themselves."""

from __future__ import annotations

import itertools
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


FALSE = ["is_cuda", "is_meta", "is_mps", "is_xpu", "is_sparse", "is_sparse_csr", "is_mkldnn"]


@pytest.mark.parametrize("name", [*FALSE, "is_quantized", "is_nested"])
def test_what_is_not_so(lib: Any, name: str) -> None:
    assert getattr(lib.ones(2), name) is False


def test_functions_that_tell_of_a_tensor(lib: Any) -> None:
    x = lib.ones(2, 3)
    assert lib.is_floating_point(x)
    assert not lib.is_complex(x)
    assert lib.is_signed(x)
    assert not lib.is_signed(x.to(lib.uint8))
    assert lib.numel(x) == 6
    assert lib.is_nonzero(lib.ones(1))
    assert lib.is_same_size(x, lib.zeros(2, 3))
    assert not lib.is_same_size(x, lib.zeros(3, 2))


def test_layout_device_and_name(lib: Any) -> None:
    x = lib.ones(2)
    assert x.layout == lib.strided
    assert x.get_device() == -1
    assert x.name is None


def test_nothing_is_put_off(lib: Any) -> None:
    x = lib.ones(2)
    assert not x.is_conj()
    assert not x.is_neg()
    assert x.resolve_conj() is x
    assert x.resolve_neg() is x


def test_views_share_an_address(lib: Any) -> None:
    x = lib.zeros(4)
    assert x.data_ptr() == x.view(2, 2).data_ptr() == x.detach().data_ptr()
    assert x[1:].data_ptr() == x.data_ptr() + x.element_size()
    assert x.clone().data_ptr() != x.data_ptr()
    assert lib.zeros(0).data_ptr() == 0


def test_volatile_warns(lib: Any) -> None:
    with pytest.warns(UserWarning, match="volatile"):
        assert not lib.ones(1).volatile


@pytest.mark.parametrize("name", ["data", "requires_grad", "_grad_fn"])
def test_what_cannot_be_deleted(lib: Any, name: str) -> None:
    with pytest.raises(RuntimeError):
        delattr(lib.ones(2, requires_grad=True), name)


def test_grad_fn_may_be_cut_off(lib: Any) -> None:
    y = lib.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="_grad_fn can be only set to None"):
        y._grad_fn = 3
    y._grad_fn = None
    assert y.grad_fn is None
    assert not y.requires_grad


def test_memory_formats_have_names(lib: Any) -> None:
    x = lib.ones(2, 3).t()
    assert x.clone(memory_format=lib.contiguous_format).is_contiguous()
    assert not x.clone(memory_format=lib.preserve_format).is_contiguous()


def test_where_as_a_method(lib: Any) -> None:
    x = lib.tensor([1.0, -2.0])
    assert x.where(x > 0, lib.zeros(2)).tolist() == [1.0, 0.0]


def test_functions_that_are_methods(lib: Any) -> None:
    x = lib.ones(2, requires_grad=True)
    y = x * 2
    assert lib.detach_(y) is y
    assert not y.requires_grad
    assert lib.resolve_conj(x) is x
    assert (lib.is_conj(x), lib.is_neg(x), lib.get_device(x)) == (False, False, -1)
    assert lib.resize_as_(lib.zeros(4), lib.zeros(2, 2)).shape == (2, 2)
    assert lib.typename(x).endswith(".FloatTensor")
    assert lib.typename(1) == "int"


def test_programs_may_ask_for_cuda_where_there_is_none(lib: Any) -> None:
    assert lib.cuda.is_available() == (lib.cuda.device_count() > 0)
    lib.cuda.manual_seed_all(0)


def test_without_a_plugin_there_is_no_cuda() -> None:
    from plugrad._torch_names import no_cuda as cuda

    assert (cuda.is_available(), cuda.is_initialized(), cuda.device_count()) == (False, False, 0)
    cuda.manual_seed_all(0)
    with pytest.raises(AssertionError, match="no plugin that provides it is installed"):
        cuda.current_device()


def test_a_typed_tensor_can_tell_the_default_dtype(lib: Any) -> None:
    before = lib.get_default_dtype()
    try:
        lib.set_default_tensor_type(lib.DoubleTensor)
        assert lib.zeros(1).dtype is lib.float64
    finally:
        lib.set_default_dtype(before)


def test_strides_of_new_dimensions_are_pytorchs(torch_oracle: ModuleType) -> None:
    def strides(library: Any) -> list[tuple[int, ...]]:
        found = []
        for sizes in [(), (1,), (3,), (2, 3), (3, 1), (1, 1), (2, 1, 3), (1, 2, 3)]:
            for order in itertools.permutations(range(len(sizes))):
                x = library.zeros(sizes).permute(order)
                found += [x.unsqueeze(dim).stride() for dim in range(-x.ndim - 1, x.ndim + 1)]
                found += [x[None].stride(), x.unsqueeze(0).unsqueeze(-1).squeeze(0).stride()]
                found += [x.expand((1, 2, *x.shape)).stride()]
        return found

    assert strides(plugrad) == strides(torch_oracle)


def test_strides_of_a_new_dimension() -> None:
    x = plugrad.zeros(2, 3)
    assert [x.unsqueeze(dim).stride() for dim in range(3)] == [(6, 3, 1), (3, 3, 1), (3, 1, 1)]
    assert x.t().unsqueeze(1).stride() == (1, 6, 3)
