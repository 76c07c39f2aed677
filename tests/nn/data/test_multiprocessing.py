"""Tensors in shared memory, through queues and pipes, and processes that `spawn` starts."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrad
import plugrad.multiprocessing as mp

STRATEGIES = sorted(mp.get_all_sharing_strategies())
METHODS = [method for method in mp.get_all_start_methods() if method != "forkserver"]

pytestmark = pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")


@pytest.fixture(params=STRATEGIES)
def strategy(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each way to share memory; no file is left behind."""
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy(request.param)
    files = shared_files()
    yield request.param
    mp.set_sharing_strategy(before)
    gc.collect()
    assert shared_files() == files


def shared_files() -> set[str]:
    folder = Path("/dev/shm")
    names = os.listdir(folder) if folder.is_dir() else []
    return {name for name in names if name.startswith("plugrad")}


def test_everything_of_multiprocessing_is_there() -> None:
    assert set(multiprocessing.__all__) <= set(mp.__all__)
    assert mp.Process is multiprocessing.Process
    with pytest.raises(AttributeError, match="nonsense"):
        mp.nonsense  # noqa: B018  # it is the lookup that fails


def test_a_strategy_that_is_not_there() -> None:
    with pytest.raises(AssertionError, match="invalid sharing strategy 'telepathy', expected one"):
        mp.set_sharing_strategy("telepathy")


class TestSharedMemory:
    def test_tensor_and_views_stay_together(self, strategy: str) -> None:
        whole = plugrad.arange(12.0).view(3, 4)
        row, turned = whole[1], whole.t()
        detached = whole.detach()
        version = whole._version
        assert not any(tensor.is_shared() for tensor in (whole, row, turned, detached))
        assert row.share_memory_() is row
        assert all(tensor.is_shared() for tensor in (whole, row, turned, detached))
        whole += 1
        assert row.tolist() == [5.0, 6.0, 7.0, 8.0]
        assert turned[:, 1].tolist() == detached[1].tolist() == row.tolist()
        assert whole.untyped_storage().nbytes() == 48
        assert whole._version == version + 1 == row._version
        assert (row.storage_offset(), turned.stride()) == (4, (1, 4))

    @pytest.mark.parametrize(
        "tensor",
        [
            plugrad.empty(0),
            plugrad.tensor(3, dtype=plugrad.bfloat16),
            plugrad.ones(3, 0, 2),
            plugrad.tensor([1 + 2j]),
            plugrad.tensor([True, False]),
            plugrad.from_numpy(np.arange(6.0).reshape(2, 3).T),
            plugrad.arange(5).expand(3, 5),
        ],
    )
    def test_values_and_layout_stay(self, tensor: plugrad.Tensor, strategy: str) -> None:
        expected, strides = tensor.clone(), tensor.stride()
        tensor.share_memory_()
        assert plugrad.equal(tensor, expected)
        assert tensor.stride() == strides
        assert tensor.is_shared()
        address = tensor.data_ptr()
        assert tensor.share_memory_().data_ptr() == address

    def test_a_graph_goes_on(self) -> None:
        x = plugrad.tensor([2.0, 3.0], requires_grad=True)
        y = x * x
        x.share_memory_()
        y.sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [4.0, 6.0]
        assert (x.is_leaf, x.is_shared()) == (True, True)

    def test_modules(self) -> None:
        model = plugrad.nn.Sequential(plugrad.nn.Linear(2, 3), plugrad.nn.BatchNorm1d(3))
        model[0].weight.grad = plugrad.ones(3, 2)
        parameters = list(model.parameters())
        assert model.share_memory() is model
        assert all(new is old for new, old in zip(model.parameters(), parameters, strict=True))
        assert all(tensor.is_shared() for tensor in model.state_dict().values())
        assert model[0].weight.grad.is_shared()

    def test_storages(self) -> None:
        x = plugrad.arange(3)
        storage = x.untyped_storage()
        assert not storage.is_shared()
        assert storage.share_memory_() is storage
        x[0] = 7
        assert (x.is_shared(), storage.is_shared()) == (True, True)
        assert x.storage().tolist() == [7, 1, 2]
        assert storage == x.untyped_storage()

    def test_arrays_of_other_devices_cannot_be_shared(self, second_backend: str) -> None:
        x = plugrad.ones(2, device=second_backend)
        with pytest.raises(NotImplementedError, match="arrays of device 'second' cannot live in"):
            x.share_memory_()
        assert not x.is_shared()

    @pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="descriptors are in /proc")
    def test_memory_and_descriptors_go_with_the_tensor(self, strategy: str) -> None:
        gc.collect()
        before = len(os.listdir("/proc/self/fd"))
        shared = [plugrad.ones(3).share_memory_() for _ in range(5)]
        assert len(os.listdir("/proc/self/fd")) > before
        del shared
        assert len(os.listdir("/proc/self/fd")) == before

    def test_a_forked_child_sees_writes(self, strategy: str) -> None:
        x = plugrad.zeros(2).share_memory_()
        child = mp.get_context("fork").Process(target=x.fill_, args=(5,))
        child.start()
        child.join()
        assert (child.exitcode, x.tolist()) == (0, [5.0, 5.0])


def there_and_back(queue: Any, answers: Any) -> None:
    whole, row, parameter, buffer, again = queue.get()
    whole += 1
    parameter.detach().fill_(3)
    answers.put(
        {
            "row": row.tolist(),
            "types": [type(tensor).__name__ for tensor in (whole, parameter, buffer)],
            "grad": parameter.requires_grad,
            "same": again is whole,
            "strides": (whole.stride(), row.storage_offset()),
        }
    )
    answers.put(plugrad.full((2, 2), 9.0, dtype=plugrad.bfloat16).t())
    assert queue.get() == "end"  # a tensor can be taken as long as the sender lives


@pytest.mark.parametrize("method", METHODS)
def test_both_sides_of_a_queue_see_writes(method: str, strategy: str) -> None:
    context = mp.get_context(method)
    queue, answers = context.Queue(), context.Queue()
    child = context.Process(target=there_and_back, args=(queue, answers))
    child.start()
    whole = plugrad.arange(6.0).view(2, 3).t()
    parameter = plugrad.nn.Parameter(plugrad.ones(2))
    queue.put((whole, whole[1], parameter, plugrad.nn.Buffer(plugrad.ones(1)), whole))
    told = answers.get()
    assert told == {
        "row": [2.0, 5.0],
        "types": ["Tensor", "Parameter", "Buffer"],
        "grad": True,
        "same": True,
        "strides": ((1, 3), 1),
    }
    assert whole.tolist() == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
    assert parameter.tolist() == [3.0, 3.0]
    made = answers.get()
    assert (made.dtype, made.tolist()) == (plugrad.bfloat16, [[9.0, 9.0]] * 2)
    assert made.is_shared()
    queue.put("end")
    child.join()
    assert child.exitcode == 0
    for used in (queue, answers):
        used.close()
        used.join_thread()


def put_and_end(queue: Any) -> None:
    queue.put(plugrad.arange(3))


@pytest.mark.parametrize("method", METHODS)
def test_what_a_process_does_last_may_be_to_send(method: str) -> None:
    context = mp.get_context(method)
    queue = context.Queue()
    child = context.Process(target=put_and_end, args=(queue,))
    child.start()
    while not queue._reader.poll(60):  # type: ignore[attr-defined]  # it exists
        pass
    assert child.is_alive()
    assert queue.get().tolist() == [0, 1, 2]
    child.join(60)
    assert child.exitcode == 0
    queue.close()
    queue.join_thread()


def test_a_pipe_and_a_pool_share_too(strategy: str) -> None:
    here, there = mp.Pipe()
    x = plugrad.zeros(2)
    here.send(x)
    received = there.recv()
    x += 4
    assert received.tolist() == [4.0, 4.0]
    here.close()
    there.close()
    with mp.get_context("spawn").Pool(1) as pool:
        assert pool.apply(plugrad.Tensor.add_, (x, 1)).tolist() == [5.0, 5.0]
        # What is left else is killed, and cannot give its share of the memory back.
        pool.close()
        pool.join()
    assert x.tolist() == [5.0, 5.0]


def test_a_tensor_with_a_graph_is_refused() -> None:
    y = plugrad.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which"):
        ForkingPickler.dumps(y)


def test_other_devices_and_lazy_bits_go_by_value(second_backend: str) -> None:
    for sent in (plugrad.ones(2, device=second_backend), plugrad.tensor([1 + 2j]).conj()):
        got = pickle.loads(ForkingPickler.dumps(sent))
        assert (got.device, got.tolist()) == (sent.device, sent.tolist())


def test_copies_and_pickles_are_not_shared() -> None:
    x = plugrad.ones(2).share_memory_()
    assert not pickle.loads(pickle.dumps(x)).is_shared()
    assert not x.clone().is_shared()


def fill(index: int, x: Any, y: Any) -> None:
    x[index] = index + y


def fail_one(index: int, event: Any) -> None:
    if index == 1:
        raise ValueError("of one")
    event.wait(60)


def leave(index: int, code: int) -> None:
    if code < 0:
        os.kill(os.getpid(), -code)
    os._exit(code)


class TestSpawn:
    @pytest.mark.parametrize("method", METHODS)
    def test_runs_a_function_in_each_process(self, method: str) -> None:
        x = plugrad.zeros(3).share_memory_()
        assert mp.start_processes(fill, (x, 5), nprocs=3, start_method=method) is None
        assert x.tolist() == [5.0, 6.0, 7.0]

    def test_spawn_is_for_spawn(self) -> None:
        with pytest.warns(FutureWarning, match="only supports start_method=spawn"):
            mp.spawn(fill, (plugrad.zeros(1).share_memory_(), 0), start_method="fork")

    def test_an_error_ends_the_others(self) -> None:
        event = mp.get_context("fork").Event()
        context = mp.start_processes(fail_one, (event,), 3, join=False, start_method="fork")
        assert context is not None
        assert len(set(context.pids())) == 3
        with pytest.raises(mp.ProcessRaisedException, match=r"(?s)-- Process 1 .*of one") as caught:
            context.join(grace_period=10)
        assert caught.value.error_index == 1
        assert caught.value.pid == context.pids()[1]
        assert not any(process.is_alive() for process in context.processes)
        copied = pickle.loads(pickle.dumps(caught.value))
        assert (copied.args, copied.error_index) == (caught.value.args, 1)

    @pytest.mark.parametrize(
        ("code", "message", "name"),
        [
            (3, "process 0 terminated with exit code 3", None),
            (-signal.SIGKILL, "process 0 terminated with signal SIGKILL", "SIGKILL"),
        ],
    )
    def test_a_process_that_ends(self, code: int, message: str, name: str | None) -> None:
        with pytest.raises(mp.ProcessExitedException) as caught:
            mp.start_processes(leave, (code,), start_method="fork")
        error = caught.value
        assert (str(error), error.exit_code, error.signal_name) == (message, code, name)
        copied = pickle.loads(pickle.dumps(error))
        assert (copied.args, copied.exit_code) == (error.args, code)

    def test_join_may_end_before_the_processes_do(self) -> None:
        event = mp.get_context("fork").Event()
        context = mp.start_processes(fail_one, (event,), 1, join=False, start_method="fork")
        assert context is not None
        assert context.join(timeout=0.01) is False
        event.set()
        while not context.join():
            pass
        assert context.join() is True

    def test_as_in_pytorch(self, torch: Any) -> None:
        def told(lib: Any) -> Any:
            try:
                lib.multiprocessing.start_processes(leave, (4,), start_method="fork")
            except Exception as error:
                return type(error).__name__, str(error), error.error_index, error.exit_code

        assert told(plugrad) == told(torch)


PROGRAM = """
import os, signal, sys
import plugrad, plugrad.multiprocessing as mp

mp.set_sharing_strategy(sys.argv[1])
kept = plugrad.ones(3).share_memory_()
queue = mp.SimpleQueue()
queue.put(kept)
if sys.argv[2] == "end":
    sys.exit()
print(queue.get().tolist())
"""


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("how", ["end", "take"])
def test_a_program_that_ends_leaves_nothing_and_says_nothing(
    tmp_path: Path, strategy: str, how: str
) -> None:
    before = shared_files()
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    command = [sys.executable, "-W", "always", str(path), strategy, how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert shared_files() == before
