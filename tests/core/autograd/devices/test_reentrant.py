"""Backward passes within backward passes: deep ones, and ones across devices."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

import plugrad
from plugrad.autograd.engine.engine import ENGINE, MAX_DEPTH
from plugrad.dispatch.local_state import current_state
from tests.core.autograd.devices.graphs import Notes, device_threads, leaf, then
from tests.core.autograd.devices.toy import ToyBackend
from tests.core.autograd.together import run_together


def nest(devices: list[str], levels: int, at_the_end: Callable[[], None]) -> Any:
    """A node's work: run a pass on the next device, where a node does the same, and so on.

    Returns the gradient of the outermost leaf, to which every level contributes.
    """

    def node(level: int) -> Callable[[Any], Any]:
        def run(grad: Any) -> Any:
            if level == 0:
                at_the_end()
                return grad
            with plugrad.enable_grad():
                x = leaf(devices[level % len(devices)], 0.0)
                then(x, node(level - 1)).sum().backward()
            return grad + x.grad.item()

        return run

    x = leaf(devices[levels % len(devices)], 0.0)
    then(x, node(levels - 1)).sum().backward()
    return x.grad.item()


def nothing() -> None:
    pass


@pytest.mark.slow
@pytest.mark.parametrize("devices", [["cpu"], ["toy:0", "cpu", "toy:1"]])
def test_ten_thousand_levels(toy: ToyBackend, devices: list[str]) -> None:
    assert nest(devices, 10_000, nothing) == 10_000


@pytest.mark.parametrize("devices", [["cpu"], ["toy:0"], ["toy:0", "toy:1"], ["cpu", "toy:0"]])
def test_many_levels(toy: ToyBackend, devices: list[str]) -> None:
    assert nest(devices, 500, nothing) == 500


@pytest.mark.parametrize("devices", [["cpu"], ["toy:0"]])
def test_passes_nest_on_one_thread_up_to_a_depth(toy: ToyBackend, devices: list[str]) -> None:
    shallow, deep = Notes(), Notes()
    nest(devices, MAX_DEPTH, lambda: shallow.note("end"))
    assert not [name for name in device_threads() if "reentrant" in name]
    nest(devices, MAX_DEPTH + 1, lambda: deep.note("end"))
    first = "MainThread" if devices == ["cpu"] else "plugrad-toy:0"
    assert shallow.threads["end"] == first
    assert deep.threads["end"] == ("plugrad-reentrant-1" if devices == ["cpu"] else first)


def test_threads_of_the_pool_serve_again(toy: ToyBackend) -> None:
    for _ in range(5):
        nest(["cpu"], 3 * MAX_DEPTH, nothing)
        pool = ENGINE._pool
        assert pool is not None
        while len(pool._idle) < 2:  # they come to rest a moment after the pass is over
            time.sleep(0.0001)
    reentrant = [name for name in device_threads() if "reentrant" in name]
    assert len(reentrant) == 2


def test_most_threads_of_the_pool_end_when_they_are_idle(toy: ToyBackend) -> None:
    nest(["cpu"], 20 * MAX_DEPTH, nothing)
    nest(["cpu"], 2 * MAX_DEPTH, nothing)
    assert len([name for name in device_threads() if "reentrant" in name]) <= 9


def test_a_thread_s_depth_is_as_before(toy: ToyBackend) -> None:
    depths: list[int] = []
    nest(["toy:0"], 5, lambda: depths.append(current_state().depth))
    nest(["toy:0"], 5, lambda: depths.append(current_state().depth))
    assert depths == [4, 4]
    assert current_state().depth == 0


def test_devices_that_wait_for_each_other(toy: ToyBackend) -> None:
    # While toy:0 waits for toy:1, toy:1 needs toy:0, and so on; twice at the same time.
    def work() -> None:
        assert nest(["toy:0", "toy:1", "cpu", "toy:2"], 12, nothing) == 12

    run_together(work, work, work)


def test_devices_that_wait_for_each_other_in_the_pool(toy: ToyBackend) -> None:
    def work() -> None:
        levels = 4 * MAX_DEPTH
        assert nest(["toy:0", "toy:1"], levels, nothing) == levels

    run_together(work, work)


def test_a_waiting_device_goes_on_with_other_passes(toy: ToyBackend) -> None:
    # The first pass's node on toy:0 waits for toy:1, where a node waits for a pass that another
    # thread runs on toy:0.
    x = leaf("toy:0")

    def on_1(grad: Any) -> None:
        def elsewhere() -> None:
            with plugrad.enable_grad():
                (x * 5).sum().backward()

        run_together(elsewhere)

    def on_0(grad: Any) -> None:
        with plugrad.enable_grad():
            then(leaf("toy:1"), on_1).sum().backward()

    then(leaf("toy:0"), on_0).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


def test_an_error_far_down_comes_all_the_way_up(toy: ToyBackend) -> None:
    error = KeyError("deep")

    def fail() -> None:
        raise error

    for devices in (["cpu"], ["toy:0"], ["toy:0", "toy:1", "cpu"]):
        with pytest.raises(KeyError) as caught:
            nest(devices, 3 * MAX_DEPTH, fail)
        assert caught.value is error
        error = KeyError("again")
        assert nest(devices, 3 * MAX_DEPTH, nothing) == 3 * MAX_DEPTH
