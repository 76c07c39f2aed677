"""Where new tensors go: BackendSelect, `with plugrad.device`, a default for each thread."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad import record_dispatch_trace
from tests.core.autograd.devices.graphs import then

pytestmark = pytest.mark.usefixtures("places")

FACTORIES: dict[str, Any] = {
    "empty": lambda **o: plugrad.empty(2, **o),
    "zeros": lambda **o: plugrad.zeros(2, **o),
    "ones": lambda **o: plugrad.ones(2, **o),
    "full": lambda **o: plugrad.full((2,), 3.0, **o),
    "arange": lambda **o: plugrad.arange(3, **o),
    "linspace": lambda **o: plugrad.linspace(0, 1, 3, **o),
    "logspace": lambda **o: plugrad.logspace(0, 1, 3, **o),
    "eye": lambda **o: plugrad.eye(2, **o),
    "tril_indices": lambda **o: plugrad.tril_indices(2, 2, **o),
    "rand": lambda **o: plugrad.rand(2, **o),
    "randn": lambda **o: plugrad.randn(2, **o),
    "randint": lambda **o: plugrad.randint(5, (2,), **o),
    "randperm": lambda **o: plugrad.randperm(4, **o),
    "empty_strided": lambda **o: plugrad.empty_strided((2,), (1,), **o),
}
FROM_DATA: dict[str, Any] = {
    "tensor": lambda **o: plugrad.tensor([1, 2], **o),
    "as_tensor": lambda **o: plugrad.as_tensor([1, 2], **o),
    "asarray": lambda **o: plugrad.asarray([1, 2], **o),
    "scalar_tensor": lambda **o: plugrad.scalar_tensor(1, **o),
}


@pytest.mark.parametrize("name", [*FACTORIES, *FROM_DATA])
def test_a_factory_asks_the_argument_then_the_block_then_the_default(name: str) -> None:
    make = {**FACTORIES, **FROM_DATA}[name]
    assert str(make(device="places:1").device) == "places:1"
    with plugrad.device("places:2"):
        assert str(make().device) == "places:2"
        assert str(make(device="cpu").device) == "cpu"
        with plugrad.device("places:0"):
            assert str(make().device) == "places:0"
        assert str(make().device) == "places:2"
    assert str(make().device) == "cpu"


class _Model:
    def __init__(self) -> None:
        with plugrad.device("places:1") as device:
            self.x = plugrad.ones(1)
        self.device = device


def test_a_block_gives_its_device_wherever_it_stands() -> None:
    model = _Model()
    assert model.x.device is model.device is plugrad.device("places:1")
    with contextlib.ExitStack() as stack:
        assert stack.enter_context(plugrad.device("places:2")) is plugrad.ones(1).device
    assert str(plugrad.ones(1).device) == "cpu"


def test_a_default_that_is_set_in_a_block_lasts() -> None:
    with plugrad.device("places:1"):
        plugrad.set_default_device("places:2")
        assert str(plugrad.ones(1).device) == "places:1"
    assert str(plugrad.ones(1).device) == "places:2"
    plugrad.set_default_device(None)


@pytest.mark.parametrize("name", FACTORIES)
def test_factories_go_through_backend_select(name: str) -> None:
    with record_dispatch_trace() as trace:
        FACTORIES[name](device="places:1")
    lines = str(trace).splitlines()
    assert any("key=[BackendSelect]" in line for line in lines), lines
    assert any("key=[Places]" in line for line in lines), lines


def test_those_that_follow_a_tensor_ignore_the_default() -> None:
    x = plugrad.ones(2, device="places:1")
    with plugrad.device("places:2"):
        made = [
            plugrad.zeros_like(x),
            plugrad.randn_like(x),
            x.new_zeros(2),
            x.new_tensor([1.0]),
            x.new_full((2,), 1.0),
        ]
        assert {str(y.device) for y in made} == {"places:1"}
        assert str(plugrad.zeros_like(x, device="cpu").device) == "cpu"
        # PyTorch: it shares the array's memory, which is the host's.
        assert str(plugrad.from_numpy(np.ones(2)).device) == "cpu"
        assert str(plugrad.as_tensor(x).device) == "places:1"


def test_a_block_is_stronger_than_a_default_set_within() -> None:
    try:
        with plugrad.device("places:1"):
            plugrad.set_default_device("places:2")
            assert str(plugrad.get_default_device()) == "places:1"
        assert str(plugrad.get_default_device()) == "places:2"
    finally:
        plugrad.set_default_device(None)
    assert str(plugrad.get_default_device()) == "cpu"


def test_a_thread_has_a_default_of_its_own() -> None:
    seen: list[str] = []

    def work() -> None:
        seen.append(str(plugrad.ones(1).device))
        plugrad.set_default_device("places:2")
        seen.append(str(plugrad.ones(1).device))

    with plugrad.device("places:1"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        seen.append(str(plugrad.ones(1).device))
    assert seen == ["cpu", "places:2", "places:1"]
    assert str(plugrad.ones(1).device) == "cpu"


def test_backward_s_threads_have_the_caller_s_default() -> None:
    seen: list[tuple[str, str]] = []

    def note(grad: Any) -> None:
        thread = threading.current_thread().name
        seen.append((thread, str(plugrad.ones(1).device)))

    def run() -> None:
        x = plugrad.ones(2, device="places:1", requires_grad=True)
        then(then(x, note).to("cpu"), note).sum().backward()

    run()
    with plugrad.device("places:2"):
        run()
    run()
    here = threading.current_thread().name
    assert seen == [
        (here, "cpu"),
        ("plugrad-places:1", "cpu"),
        (here, "places:2"),
        ("plugrad-places:1", "places:2"),
        (here, "cpu"),
        ("plugrad-places:1", "cpu"),
    ]


def test_a_block_that_a_hook_opens_ends_with_it() -> None:
    seen: list[str] = []

    def opens(grad: Any) -> None:
        plugrad.set_default_device("places:2")
        seen.append(str(plugrad.ones(1).device))

    x = plugrad.ones(2, device="places:1", requires_grad=True)
    y = then(x, lambda grad: seen.append(str(plugrad.ones(1).device)))
    then(y, opens).sum().backward()
    y = then(x, lambda grad: seen.append(str(plugrad.ones(1).device)))
    y.sum().backward()
    assert seen[0] == "places:2"
    assert seen[2] == "cpu"
    assert str(plugrad.ones(1).device) == "cpu"
