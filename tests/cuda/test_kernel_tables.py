"""plugrad-cuda has a kernel for whatever the CPU has one for, of functions that CuPy has."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
import pytest

from plugrad.plugins import package_kernels
from plugrad_cuda.kernels import array_kernels, kernels
from plugrad_cuda.kernels.namespace import CupyNamespace
from tests.cuda.host_namespace import (
    GuardedNumPy,
    HostNamespace,
    MissingLoop,
    array_without_device,
    fused_dtypes,
)

# The core computes these otherwise: CuPy has no LDL and no running extrema, one kernel has all
# overloads of `random_`, resampling consists of products and sums, least squares of decompositions,
# and histograms of `bincount`. It walks over the steps of recurrent layers, and calls the operators
# of an optimizer's step one by one. Groups are normalised as rows, by `native_layer_norm`.
ON_HOST = {
    *("_linalg_ldl_factor", "random_.from", "random_.to"),
    *("_resample", "_resample_backward", "_linalg_lstsq", "cummax", "cummin", "histc"),
    *("_lstm_layer", "_lstm_layer_backward", "_gru_layer", "_gru_layer_backward"),
    *("_update_sgd", "_update_adam", "_fused_rms_norm", "_fused_rms_norm_backward"),
    *("native_group_norm", "native_group_norm_backward"),
    # Called on the CPU only.
    "_max_pool1d",
}
# The operators that the CPU's backend leaves to the core, because its memory is the host's, too.
MORE = {"_lu_permutation"}


def test_every_kernel_of_the_cpu_is_there() -> None:
    of_the_cpu = set(package_kernels("plugrad_cpu.kernels"))
    wanted = (of_the_cpu - ON_HOST) | MORE
    assert set(kernels()) == wanted
    assert set(array_kernels(CupyNamespace())) == wanted


def test_the_twins_make_the_same_tables() -> None:
    assert list(array_kernels(HostNamespace())) == list(array_kernels(CupyNamespace()))


def test_cudas_own_sources_come_before_array_kernels() -> None:
    table = kernels()
    arrays = array_kernels(CupyNamespace())
    for name in ("_softmax", "native_layer_norm", "embedding", "convolution"):
        assert table[name].__qualname__ != arrays[name].__qualname__


def test_the_guard_sees_what_cupy_lacks() -> None:
    xp: Any = GuardedNumPy(np, cupy)
    a = np.ones(3)
    with pytest.raises(AttributeError):
        xp.vecdot(a, a)
    with pytest.raises(TypeError, match="unexpected keyword argument 'initial'"):
        xp.amax(a, axis=0, initial=0.0, where=True)
    with pytest.raises(MissingLoop):
        xp.logical_and(a.astype(complex), a.astype(complex))


def test_the_guard_sees_what_cupy_cannot_fuse() -> None:
    def twice_reduced(x: Any) -> Any:
        return cupy.sum(cupy.sum(x, axis=0) * 2, axis=0)

    with pytest.raises(Exception, match="reduc"):
        fused_dtypes(twice_reduced, (np.ones((2, 3)),))


@pytest.mark.parametrize("dtype", ["float32", "complex64", "int64", "bool"])
def test_views_of_cupy_arrays_share_memory(dtype: str) -> None:
    table = array_kernels(CupyNamespace())
    a = array_without_device(np.dtype(dtype), (4, 6))
    start, step = a.data.ptr, a.itemsize
    found = {
        "view": (table["view"](a, (8, 3)), (8, 3), (3, 1), 0),
        "permute": (table["permute"](a, (1, 0)), (6, 4), (1, 6), 0),
        "expand": (table["expand"](table["unsqueeze"](a, 1), (4, 2, 6)), (4, 2, 6), (6, 0, 1), 0),
        "select": (table["select"](a, 1, 2), (4,), (6,), 2),
        "slice": (table["slice"](a, 0, 1, 4, 2), (2, 6), (12, 1), 6),
        "diagonal": (table["diagonal"](a, 1, 0, 1), (4,), (7,), 1),
        "below": (table["diagonal"](a, -1, 0, 1), (3,), (7,), 6),
        "_as_strided": (table["_as_strided"](a[1:], (2, 2), (3, 2), 5), (2, 2), (3, 2), 5),
        "split": (table["split"](a, (2, 4), 1)[1], (4, 4), (6, 1), 2),
        "unbind": (table["unbind"](a, 0)[3], (6,), (1,), 18),
    }
    for name, (view, shape, strides, offset) in found.items():
        assert view.shape == shape, name
        assert view.strides == tuple(step * stride for stride in strides), name
        assert view.data.ptr - start == step * offset, name


def test_what_takes_a_copy_is_no_view() -> None:
    table = array_kernels(CupyNamespace())
    a = array_without_device(np.dtype(np.float32), (4, 6))
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        table["view"](a.T, (24,))
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 96"):
        table["_as_strided"](a, (5,), (6,), 0)


def test_complex_views() -> None:
    table = array_kernels(CupyNamespace())
    a = array_without_device(np.dtype(np.complex64), (2, 3))
    parts = table["view_as_real"](a)
    assert (parts.shape, parts.strides, parts.dtype) == ((2, 3, 2), (24, 8, 4), np.float32)
    again = table["view_as_complex"](parts)
    assert (again.shape, again.strides, again.data.ptr) == (a.shape, a.strides, a.data.ptr)
