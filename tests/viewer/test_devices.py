"""Recordings of passes that use the threads of devices."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import plugrad
from plugrad.autograd.engine.engine import ENGINE
from plugrad.dispatch.backends.active import activate_backend, deactivate_backend
from tests.core.autograd.devices.toy import ToyBackend
from tests.viewer.recordings import events, validate


@pytest.fixture(autouse=True)
def toy() -> Iterator[None]:
    ENGINE.stop()
    activate_backend(ToyBackend())
    yield
    ENGINE.stop()
    deactivate_backend("toy")


def test_each_device_has_a_queue_and_a_thread() -> None:
    first = plugrad.ones(2, device="toy:0", requires_grad=True)
    second = plugrad.ones(2, device="toy:1", requires_grad=True)
    with plugrad.viewer.record() as recording:
        (first.exp().to("cpu") + second.sin().to("cpu")).sum().backward()
    data = recording.data
    validate(data)
    threads = [thread["name"] for thread in data["threads"]]
    assert set(threads) == {threads[0], "plugrad-toy:0", "plugrad-toy:1"}
    where = {
        data["nodes"][event["n"]]["name"]: (event["q"], threads[event["th"]])
        for event in events(data, "pop")
    }
    assert where["SumBackward0"] == (threads[0], threads[0])
    assert where["ExpBackward0"] == ("toy:0", "plugrad-toy:0")
    assert where["SinBackward0"] == ("toy:1", "plugrad-toy:1")
    assert {event["label"] for event in events(data, "grad")} == {"first", "second"}
    # What formulas call on a device's thread is recorded there.
    sin = next(
        event for event in events(data, "run") if event["th"] == threads.index("plugrad-toy:1")
    )
    assert any(call["thread"] == sin["th"] for call in data["calls"])


@pytest.mark.parametrize("round_", range(5))
def test_gradients_from_two_devices_are_counted_one_after_the_other(round_: int) -> None:
    x = plugrad.ones(2, requires_grad=True)
    with plugrad.viewer.record() as recording:
        y = x.exp()
        parts = [y.to(f"toy:{index}").sin().to("cpu") for index in range(4)]
        sum(parts[1:], parts[0]).sum().backward()
    data = recording.data
    validate(data)
    exp = next(index for index, node in enumerate(data["nodes"]) if node["name"] == "ExpBackward0")
    assert [event["left"] for event in events(data, "count") if event["n"] == exp] == [3, 2, 1, 0]
