"""`plugrad.cuda`'s streams, events and devices: their calls of CUDA, and the order."""

from __future__ import annotations

import threading

import pytest

import plugrad
from plugrad_cuda import cuda
from plugrad_cuda.queue import CudaQueue
from tests.cuda.runtime.fake_cupy import FakeCupy


def test_a_thread_has_a_stream_on_each_gpu(cupy: FakeCupy) -> None:
    first, second = cuda.Stream(0), cuda.Stream("cuda:1")
    assert (first.device_index, second.device_index) == (0, 1)
    assert str(second.device) == "cuda:1"
    with cuda.stream(first), cuda.stream(second):
        assert cuda.current_device() == 1
        assert cuda.current_stream() == second
        assert cuda.current_stream(0) == first
    assert cuda.current_device() == 0
    assert cuda.current_stream() == cuda.default_stream()
    assert cuda.current_stream(1) == cuda.default_stream(1) != cuda.default_stream(0)


def test_streams_of_other_threads_are_their_own(cupy: FakeCupy) -> None:
    seen = []
    with cuda.stream(cuda.Stream()):
        thread = threading.Thread(target=lambda: seen.append(cuda.current_stream()))
        thread.start()
        thread.join()
    assert seen == [cuda.default_stream()]


def test_a_stream_that_is_chosen_through_cupy_is_the_current_one(cupy: FakeCupy) -> None:
    theirs = cupy.cuda.Stream(non_blocking=True)
    theirs.use()
    assert cuda.current_stream().cuda_stream == theirs.ptr
    assert cuda.current_stream() == cuda.ExternalStream(theirs.ptr)
    assert hash(cuda.current_stream()) == hash(cuda.ExternalStream(theirs.ptr))
    cuda.set_stream(cuda.default_stream())
    cuda.set_stream(None)
    assert cupy.current().ptr == 0


def test_a_stream_waits_for_a_mark_on_another_gpu_s(cupy: FakeCupy) -> None:
    one, two = cuda.Stream(0), cuda.Stream(1, priority=-1)
    two.wait_stream(one)
    recorded, waited = cupy.log
    assert recorded == ("record", one._raw.name)
    assert waited == ("wait", two._raw.name, one._raw.name)
    assert (one.priority, two.priority) == (0, -1)
    assert one.query()
    one.synchronize()
    assert cupy.log[-1] == ("synchronize", one._raw.name)


def test_events(cupy: FakeCupy) -> None:
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    start.wait()  # nothing was recorded: nothing to wait for
    start.synchronize()
    assert start.query()
    assert cupy.log == []
    with pytest.raises(RuntimeError, match="must be recorded"):
        start.elapsed_time(end)
    start.record()
    end.record(cuda.Stream())
    assert start.elapsed_time(end) > 0
    end.synchronize()
    assert cupy.log[-1][0] == "synchronize event"
    with pytest.raises(RuntimeError, match="enable_timing=True"):
        cuda.Event().elapsed_time(end)
    with pytest.raises(ValueError, match="interprocess"):
        cuda.Event(enable_timing=True, interprocess=True)


def test_devices_are_chosen_for_a_while(cupy: FakeCupy) -> None:
    with cuda.device(1):
        assert cuda.current_device() == 1
        with cuda.device(-1), cuda.device(None):
            assert cuda.current_device() == 1
        with cuda.device("cuda:0"):
            assert cuda.current_device() == 0
        assert cuda.current_device() == 1
    assert cuda.current_device() == 0
    cuda.set_device(-1)
    with pytest.raises(RuntimeError, match="invalid device ordinal: cuda:2 of 2 devices"):
        cuda.set_device(2)
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        cuda.set_device("cpu")


def test_properties_of_a_gpu(cupy: FakeCupy) -> None:
    assert cuda.get_device_name(1) == "Fake 1"
    assert cuda.get_device_capability() == (9, 0)
    assert cuda.get_device_properties("cuda:0").multi_processor_count == 132
    assert cuda.can_device_access_peer(0, 1)
    assert cuda.is_bf16_supported(including_emulation=False)
    assert cuda.mem_get_info() == (3, 7)
    cuda.synchronize(1)
    assert cupy.log == [("synchronize device", 1)]


def test_cuda_means_the_current_gpu(cuda: FakeCupy) -> None:
    with plugrad.cuda.device(1):
        assert str(plugrad.zeros(2, device="cuda").device) == "cuda:1"
    assert str(plugrad.zeros(2, device="cuda").device) == "cuda:0"
    with plugrad.cuda.device_of(plugrad.zeros(2, device="cuda:1")):
        assert plugrad.cuda.current_device() == 1
    with plugrad.cuda.device_of(plugrad.zeros(2)):
        assert plugrad.cuda.current_device() == 0


def test_the_engine_s_thread_has_a_stream_of_its_own(cupy: FakeCupy) -> None:
    queue = CudaQueue(1)
    seen = []

    def thread_of_the_engine() -> None:
        queue.activate()
        seen.append((cuda.current_device(), cuda.current_stream()))

    thread = threading.Thread(target=thread_of_the_engine)
    thread.start()
    thread.join()
    assert seen == [(1, queue.stream)]
    assert queue.stream != cuda.default_stream(1)


def test_marks_of_other_backends_are_waited_for_by_the_host(cupy: FakeCupy) -> None:
    waited = []

    class Theirs:
        def synchronize(self) -> None:
            waited.append(self)

    queue = CudaQueue(0)
    queue.wait_event(None)
    queue.wait_event(Theirs())
    assert len(waited) == 1
    queue.wait_event(cuda.Stream(1).record_event())
    assert cupy.log[-1][:2] == ("wait", queue.stream._raw.name)
    queue.synchronize()
    assert cupy.log[-1] == ("synchronize device", 0)


def kernels_of(log: list[object]) -> list[str]:
    return [entry[1] for entry in log if isinstance(entry, tuple) and entry[0] == "kernel"]


def test_backward_works_on_the_streams_of_forward(cuda: FakeCupy) -> None:
    x = plugrad.ones(3, device="cuda:0", requires_grad=True)
    side = plugrad.cuda.Stream(0)
    side.wait_stream(plugrad.cuda.current_stream(0))
    with plugrad.cuda.stream(side):
        y = x.exp()
    plugrad.cuda.current_stream(0).wait_stream(side)
    z = (y * 2).sum()
    cuda.log.clear()
    z.backward()
    names = kernels_of(cuda.log)
    assert side._raw.name in names
    assert set(names) <= {side._raw.name, "default 0 of 0"}
    assert ("wait", "default 0 of 0", side._raw.name) in cuda.log
    assert x.grad.shape == (3,)


def test_backward_over_two_gpus(cuda: FakeCupy) -> None:
    x = plugrad.tensor([1.0, 2.0], device="cuda:0", requires_grad=True)
    y = (x * 3).to("cuda:1")
    assert ("copy", 0, 1, "default 0 of 1") in cuda.log
    (y * y).sum().backward()
    assert x.grad.tolist() == [18.0, 36.0]
    assert str(x.grad.device) == "cuda:0"
    assert ("copy", 1, 0, "default 0 of 0") in cuda.log
