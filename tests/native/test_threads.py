"""Large calls share their work among threads: what they give is the same for any number of them."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("plugrad_native.compiled")

FLOAT32 = np.dtype(np.float32)
# With odd sizes, so that the last part is a short one; as large as threads are worth it.
ROWS, COLUMNS = 1031, 613


@pytest.fixture
def threads(kernels: Any) -> Iterator[Any]:
    """Sets how many threads calls may use."""
    allowed = [1]
    kernels.use_thread_count(lambda: allowed[0])
    yield lambda count: allowed.__setitem__(0, count)
    kernels.use_thread_count(None)


def calls(x: Any) -> dict[str, tuple[Any, ...]]:
    """Calls of kernels that share their work, on rows."""
    flat, row = x.reshape(-1), x[0].copy()
    stats = x.mean(1, keepdims=True), 1 / x.std(1, keepdims=True)
    return {
        "relu": (x,),
        "exp": (x,),
        "clamp": (x, -0.5, 0.5),
        "gelu_backward": (x, x, "none"),
        "tanh_backward": (x, x),
        "threshold_backward": (x, x, 0.1),
        "softmax": (x, 1, False),
        "log_softmax_backward": (x, x, 1, FLOAT32),
        "layer_norm": (x, (COLUMNS,), row, row, 1e-5),
        "layer_norm_backward": (x, x, (COLUMNS,), *stats, row, row, (True, True, True)),
        "rms_norm": (x, (COLUMNS,), row, 1e-5),
        "rms_norm_backward": (x, x, (COLUMNS,), stats[1], row, (True, True)),
        "group_norm": (x, None, None, ROWS, COLUMNS, 1, 1, 1e-5),
        "group_norm_backward": (
            *(x, x, *stats, None, ROWS, COLUMNS, 1, 1),
            (True, True, True),
        ),
        "cumsum": (x, 1, FLOAT32),
        "sum": (flat, (0,), False, FLOAT32),
        "mean": (x, (1,), False, FLOAT32),
    }


def flattened(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple) else [found]


@pytest.fixture
def x() -> Any:
    return np.random.default_rng(3).standard_normal((ROWS, COLUMNS)).astype(np.float32)


@pytest.mark.parametrize("name", calls(np.eye(2, COLUMNS, dtype=np.float32)))
def test_threads_give_the_same_bits(kernels: Any, threads: Any, x: Any, name: str) -> None:
    args = calls(x)[name]
    expected = flattened(getattr(kernels, name)(*args))
    for count in (2, 3, 5):
        threads(count)
        for _ in range(5):
            for found, one in zip(flattened(getattr(kernels, name)(*args)), expected, strict=True):
                np.testing.assert_array_equal(found, one)


def test_sums_over_columns_are_the_same(kernels: Any, threads: Any, x: Any) -> None:
    expected = kernels.sum(x, (0,), False, FLOAT32)
    np.testing.assert_allclose(expected, x.sum(0, np.float64), rtol=1e-4, atol=1e-4)
    threads(2)
    np.testing.assert_array_equal(kernels.sum(x, (0,), False, FLOAT32), expected)


@pytest.mark.parametrize("size", [70, 4100, 9000, 33_000, 70_001])
def test_calls_that_follow_each_other_share_less(kernels: Any, threads: Any, size: int) -> None:
    """Threads that are awake share calls for which sleeping ones are not woken."""
    x = np.random.default_rng(size).standard_normal((size // 70, 70)).astype(np.float32)
    made = [
        lambda: kernels.add(x, x[:1]),
        lambda: kernels.exp(x),
        lambda: kernels.softmax(x, 1, False),
        lambda: kernels.sum(x.reshape(-1), (0,), False, FLOAT32),
        lambda: kernels.sum(x, (0,), False, FLOAT32),
        lambda: kernels.mean(x, (1,), False, FLOAT32),
    ]
    expected = [call() for call in made]
    for count in (2, 3, 5):
        threads(count)
        for _ in range(40):
            for call, one in zip(made, expected, strict=True):
                np.testing.assert_array_equal(call(), one)


def time_of_others() -> int:
    """Nanoseconds that all threads of this process but the main one have run."""
    tasks = [task for task in Path("/proc/self/task").iterdir() if int(task.name) != os.getpid()]
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="needs Linux's /proc")
def test_threads_join_in_calls_that_follow_each_other(kernels: Any, threads: Any) -> None:
    threads(2)
    x = np.ones(9000, np.float32)  # too few for which to wake a thread for a single call
    kernels.exp(np.ones(1 << 17, np.float32))  # starts the thread
    time.sleep(0.05)  # it falls asleep
    before = time_of_others()
    for _ in range(3000):
        kernels.exp(x)
    assert time_of_others() > before


def others_that_run() -> list[str]:
    """The threads of this process, but the main one, that do not sleep."""
    tasks = [task for task in Path("/proc/self/task").iterdir() if int(task.name) != os.getpid()]
    states = {task.name: (task / "stat").read_text().rpartition(") ")[2][0] for task in tasks}
    return [name for name, state in states.items() if state == "R"]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
def test_threads_sleep_when_no_call_follows(kernels: Any, threads: Any, x: Any) -> None:
    threads(3)
    for _ in range(50):
        kernels.exp(x)
    asleep = 0
    for _ in range(10_000):
        asleep = 0 if others_that_run() else asleep + 1
        if asleep == 100:
            break
        time.sleep(0.001)
    assert asleep == 100


def test_calls_of_several_threads_at_once(kernels: Any, threads: Any, x: Any) -> None:
    threads(2)
    expected, found = kernels.exp(x), []

    def work() -> None:
        found.extend([bool(np.array_equal(kernels.exp(x), expected)) for _ in range(30)])

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [True] * 120


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
def test_signals_are_left_to_the_interpreters_threads(kernels: Any, threads: Any, x: Any) -> None:
    threads(2)
    kernels.exp(x)
    interrupt = 1 << (signal.SIGINT - 1)
    blocks = {
        int(task.name): bool(int(line.split()[1], 16) & interrupt)
        for task in Path("/proc/self/task").iterdir()
        for line in (task / "status").read_text().splitlines()
        if line.startswith("SigBlk:")
    }
    assert any(blocks.values())
    assert not blocks[os.getpid()]  # the main thread


def test_a_count_that_fails_means_one_thread(kernels: Any, threads: Any, x: Any) -> None:
    expected = kernels.exp(x)
    for count in ("many", -3, 10**30, None):
        threads(count)
        np.testing.assert_array_equal(kernels.exp(x), expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_the_child_of_a_fork_starts_threads_of_its_own(kernels: Any, threads: Any, x: Any) -> None:
    threads(2)
    expected = kernels.exp(x)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(kernels.exp(x), expected) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
