"""Memory of GPUs, page-locked memory, and copies through it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad_cuda import cuda as api
from plugrad_cuda.memory import LentMemory, _Peaks
from plugrad_cuda.pinned import under_way
from tests.cuda.runtime.fake_cupy import FakeCupy


class Block:
    """A fake piece of CuPy's pool."""


def test_lent_memory_is_kept_until_the_stream_is_done(cupy: FakeCupy) -> None:
    lent, stream, block = LentMemory(), api.Stream(), Block()
    cupy.busy = {stream._raw.name}  # type: ignore[attr-defined]
    lent.lend(block, stream)
    lent.lend(block, stream)
    lent.collect()
    assert (lent.held(), cupy.log) == (1, [])  # somebody refers to it
    del block
    lent.collect()
    assert cupy.log == [("record", stream._raw.name)]
    lent.collect()
    assert lent.held() == 1  # the stream is not done
    cupy.busy.clear()  # type: ignore[attr-defined]
    lent.collect()
    assert lent.held() == 0


def test_memory_that_two_streams_use_waits_for_both(cupy: FakeCupy) -> None:
    lent, one, two, block = LentMemory(), api.Stream(), api.Stream(1), Block()
    cupy.busy = {two._raw.name}  # type: ignore[attr-defined]
    lent.lend(block, one)
    lent.lend(block, two)
    del block
    lent.collect()
    lent.collect()
    assert lent.held() == 1
    cupy.busy.clear()  # type: ignore[attr-defined]
    lent.collect()
    assert lent.held() == 0


def test_nothing_is_asked_of_streams_while_a_graph_is_captured(cupy: FakeCupy) -> None:
    lent = LentMemory()
    lent.capturing = 1
    lent.lend(Block(), api.Stream())
    lent.lend(Block(), api.Stream())
    assert cupy.log == []
    lent.capturing = 0
    lent.collect()
    assert len(cupy.log) == lent.held() or lent.held() == 0


def test_tensors_record_streams(cuda: FakeCupy) -> None:
    x = plugrad.ones(4, device="cuda:0")
    x.record_stream(plugrad.cuda.Stream(0))
    from plugrad_cuda.memory import lent

    assert lent.held() == 1
    with pytest.raises(NotImplementedError, match="needs a device with streams"):
        plugrad.ones(4).record_stream(plugrad.cuda.Stream(0))


def test_the_pool_s_numbers_have_pytorch_s_names(cupy: FakeCupy) -> None:
    cupy.pool.bytes = [100, 7]
    assert (api.memory_allocated(), api.memory_allocated(1)) == (100, 7)
    assert (api.memory_reserved(), api.memory_reserved("cuda:1")) == (200, 14)
    stats = api.memory_stats(1)
    assert stats["allocated_bytes.all.current"] == 7
    assert stats["reserved_bytes.all.current"] == 14
    api.empty_cache()
    assert cupy.log[-2:] == ["free", "free pinned"]


def test_peaks_are_seen_at_every_allocation(cupy: FakeCupy) -> None:
    peaks = _Peaks()
    peaks.watch()
    peaks.watch()
    cupy.allocator(300)
    cupy.pool.bytes[0] = 20
    assert peaks.note(0) == (300, 600)
    peaks.reset(0)
    assert peaks.note(0) == (20, 40)


def test_pinned_memory(cuda: FakeCupy) -> None:
    x = plugrad.arange(6.0).reshape(2, 3)
    pinned = x.pin_memory()
    assert pinned.is_pinned()
    assert not x.is_pinned()
    assert pinned[1:].is_pinned()
    assert pinned.tolist() == x.tolist()
    assert pinned.pin_memory() is pinned


def test_a_copy_from_pinned_memory_does_not_wait(cuda: FakeCupy) -> None:
    x = plugrad.ones(3).pin_memory()
    stream = plugrad.cuda.Stream(0)
    cuda.log.clear()
    with plugrad.cuda.stream(stream):
        y = x.to("cuda:0", non_blocking=True)
    assert cuda.log == [("from pinned", stream._raw.name), ("record", stream._raw.name)]
    assert under_way._copies[-1][0] is not None
    assert y.tolist() == [1.0, 1.0, 1.0]


def test_a_copy_from_other_memory_goes_through_cupy_s(cuda: FakeCupy) -> None:
    cuda.log.clear()
    plugrad.ones(3).to("cuda:1", non_blocking=True)
    assert ("from host", "default 0 of 1") in cuda.log


def test_a_copy_to_the_host_waits_unless_told_otherwise(cuda: FakeCupy) -> None:
    x = plugrad.ones(3).to("cuda:1")
    cuda.log.clear()
    assert x.cpu().tolist() == [1.0, 1.0, 1.0]
    assert cuda.log[:2] == [
        ("synchronize", "default 0 of 1"),
        ("to host", "default 0 of 1", True),
    ]
    cuda.log.clear()
    late = x.to("cpu", non_blocking=True)
    assert cuda.log == [("to host", "default 0 of 1", False), ("record", "default 0 of 1")]
    assert late.is_pinned()


def test_a_copy_between_gpus_is_in_the_order_of_both_streams(cuda: FakeCupy) -> None:
    x = plugrad.ones(3, device="cuda:0")
    one = plugrad.cuda.Stream(1)
    cuda.log.clear()
    with plugrad.cuda.stream(one):
        y = x.to("cuda:1")
    assert cuda.log == [
        ("record", "default 0 of 0"),
        ("wait", one._raw.name, "default 0 of 0"),
        ("copy", 0, 1, one._raw.name),
    ]
    assert y.tolist() == [1.0, 1.0, 1.0]


def test_dlpack_of_another_gpu_is_refused(cupy: FakeCupy) -> None:
    from plugrad_cuda.backend import CudaBackend

    class Theirs:
        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 1

    with pytest.raises(BufferError, match="the memory is not on cuda:0"):
        CudaBackend().from_dlpack(Theirs(), 0)
    with pytest.raises(BufferError, match="DLPack device"):
        CudaBackend().from_dlpack(np.ones(2), 0)


def test_kernels_run_on_the_gpu_of_their_arrays(cupy: FakeCupy) -> None:
    from plugrad_cuda.backend import on_device_of_arrays

    seen: list[int] = []

    def kernel(*args: Any) -> None:
        seen.append(cupy.device())

    with cupy.cuda.Device(1):
        there = cupy.zeros((2,), "f4")
    guarded = on_device_of_arrays(kernel)
    guarded(there, 3)
    guarded([there])
    guarded(cupy.zeros((2,), "f4"), there)
    guarded((2, 3), 1.5)
    assert seen == [1, 1, 0, 0]


def test_dtypes_that_cuda_lacks_are_refused(cupy: FakeCupy) -> None:
    from plugrad_cuda.backend import DTYPES, CudaBackend

    backend = CudaBackend()
    assert {dtype.name for dtype in backend.dtypes()} == set(DTYPES)
    assert backend.native_dtype(plugrad.bfloat16) == plugrad.bfloat16.numpy
