"""Many threads and many passes: no lost gradient, no lost error, and no thread that waits forever.

Values are small integers in float64, so that sums are exact in any order.
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import plugrad
from tests.core.autograd.devices.graphs import leaf, then
from tests.core.autograd.devices.toy import DEVICES, ToyBackend
from tests.core.autograd.together import run_together

THREADS = 8
PASSES = 480
FAILING_RUNS = 5000


@pytest.fixture(autouse=True)
def eager_switching() -> Iterator[None]:
    """Threads take turns as often as they can, so that races show."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.slow
@pytest.mark.parametrize("devices", [["cpu"], ["toy:0"], ["toy:0", "toy:1"], ["cpu", "toy:2"]])
def test_threads_add_to_shared_parameters(toy: ToyBackend, devices: list[str]) -> None:
    parameters = [leaf(devices[index % len(devices)], 1.0, 2.0) for index in range(4)]

    def work(factor: float) -> Any:
        def run() -> None:
            for index in range(PASSES // 2):
                a, b = parameters[index % 4], parameters[(index + 1) % 4]
                # Two passes: one of a leaf alone, one through both devices.
                (a * factor).sum().backward()
                (a.to(b.device) * 2 + b * factor).sum().backward()

        return run

    factors = [float(1 + thread) for thread in range(THREADS)]
    run_together(*(work(factor) for factor in factors))
    times = PASSES // 2 // 4
    expected = times * sum(factor + 2 + factor for factor in factors)
    for x in parameters:
        assert x.grad.tolist() == [expected, expected]


def test_threads_run_over_one_shared_graph(toy: ToyBackend) -> None:
    x, y = leaf("toy:0", 1.0, 2.0), leaf("cpu", 3.0, 4.0)
    shared = x * x
    z = (shared.to("toy:1") * y.to("toy:1") + shared.to("toy:1")).sum()

    def work() -> None:
        for _ in range(PASSES // 10):
            z.backward(retain_graph=True)

    run_together(*([work] * THREADS))
    passes = THREADS * (PASSES // 10)
    assert x.grad.tolist() == [passes * 8.0, passes * 20.0]
    assert y.grad.tolist() == [passes * 1.0, passes * 4.0]


class InjectedError(Exception):
    pass


@pytest.mark.slow
def test_errors_in_random_nodes_on_random_devices(toy: ToyBackend) -> None:
    """Every run either fails with an error that was injected into it, or is right."""
    places = ["cpu", *(f"toy:{index}" for index in range(DEVICES))]
    outcomes: list[bool] = []

    def run(rng: random.Random) -> bool:
        raised: list[InjectedError] = []
        armed = rng.random() < 0.7

        def maybe(grad: Any) -> None:
            if armed and rng.random() < 0.35:
                raised.append(InjectedError())
                raise raised[-1]

        def nested(device: str) -> Any:
            def node(grad: Any) -> None:
                with plugrad.enable_grad():
                    then(leaf(device), maybe).sum().backward()

            return node

        one, two = rng.sample(places, 2)
        x = leaf(one)
        a = then(x, maybe)
        b = then(x.to(two), nested(rng.choice(places)) if rng.random() < 0.1 else maybe)
        roots = [a.sum(), b.sum()]
        try:
            plugrad.autograd.backward(roots)
        except InjectedError as error:
            if error not in raised:
                raise
            return False
        assert not raised
        assert x.grad.tolist() == [2.0, 2.0]
        return True

    def work(seed: int) -> Any:
        def runs() -> None:
            rng = random.Random(seed)
            outcomes.extend([run(rng) for _ in range(FAILING_RUNS // 4)])

        return runs

    run_together(*(work(seed) for seed in range(4)))
    assert len(outcomes) == FAILING_RUNS
    assert FAILING_RUNS // 5 < sum(outcomes) < FAILING_RUNS * 4 // 5


def test_callers_come_and_go(toy: ToyBackend) -> None:
    x = leaf("toy:0")

    def work() -> None:
        (x.to("toy:1") * 2).sum().backward()

    for _ in range(50):
        run_together(*([work] * 6))
    assert x.grad.tolist() == [600.0, 600.0]
    assert threading.active_count() < 20
