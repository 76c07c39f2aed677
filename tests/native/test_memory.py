"""The memory of large results is kept for the next ones."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy._core.multiarray import get_handler_name

import plugrad
from plugrad_native import compiled

OURS, PLAIN = "plugrad_native", "default_allocator"
RELU: Any = compiled.kernel("relu")


def rectified(*shape: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = RELU(np.full(shape, 3, dtype))
    return found


@pytest.mark.parametrize(
    ("count", "name"),
    [
        (1, PLAIN),
        ((1 << 15) - 1, PLAIN),
        (1 << 15, OURS),
        (1_000_003, OURS),
        (1 << 24, OURS),
        ((1 << 24) + 1, PLAIN),
    ],
)
def test_large_results_have_memory_that_is_kept(count: int, name: str) -> None:
    found = rectified(count)
    assert get_handler_name(found) == name
    assert found.flags.owndata
    assert (found == 3).all()


def test_freed_memory_serves_the_next_result_of_about_its_size() -> None:
    first = rectified(1_000_000)
    place = first.ctypes.data
    del first
    assert rectified(999_000).ctypes.data == place
    taken = rectified(1_000_000)
    other = rectified(1_000_000)
    assert taken.ctypes.data != other.ctypes.data


@pytest.mark.parametrize("count", [1 << 15, 40_000, 65_537, 1_000_003, 1 << 23])
def test_results_begin_with_a_page(count: int) -> None:
    for dtype in (np.float32, np.float64):
        assert rectified(count // 2, dtype=dtype).nbytes
        assert rectified(count, dtype=np.float32).ctypes.data % 4096 == 0


def test_blocks_do_not_overlap() -> None:
    sizes = [(1 << 15) + 977 * i for i in range(60)]
    for _ in range(3):
        held = [rectified(size) for size in sizes]
        for i, array in enumerate(held):
            array[:] = i
        for i, array in enumerate(held):
            assert (array == i).all()
        held[::2] = [rectified(size) for size in sizes[::2]]
        for i, array in enumerate(held):
            assert (array == (i if i % 2 else 3)).all()


def test_a_result_can_be_resized() -> None:
    found = rectified(100_000)
    found.resize(300_000, refcheck=False)
    assert (found[:100_000] == 3).all()
    assert (found[100_000:] == 0).all()
    found.resize(1000, refcheck=False)
    assert (found == 3).all()


@pytest.mark.usefixtures("native")
def test_zeros_are_zeros_in_memory_that_was_used() -> None:
    x = plugrad.full((1000, 200), 2.0, requires_grad=True)
    for _ in range(2):
        loss = plugrad.nn.functional.nll_loss(x, plugrad.zeros(1000, dtype=plugrad.long))
        (grad,) = plugrad.autograd.grad(loss, x)
        seen = grad.numpy()
        assert get_handler_name(seen if seen.base is None else seen.base) == OURS
        assert (seen[:, 1:] == 0).all()
        del seen
        del grad
        rectified(1000, 200)


PROGRAM = """
import resource, sys
import numpy as np
from plugrad_native import compiled

relu = compiled.kernel("relu")
page = resource.getpagesize()

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * page

relu(np.ones(100_000, np.float32))
before = resident()
for count in range(1 << 17, 1 << 21, 1 << 14):
    held = [relu(np.ones(count, np.float32)) for _ in range(4)]
    del held
print((resident() - before) >> 20)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_is_kept_is_limited() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 64 + 16
