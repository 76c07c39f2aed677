"""Ctrl-C during a backward pass: it ends, and everything is usable at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import plugrad
from plugrad.autograd.engine import engine as engine_module
from plugrad.dispatch.local_state import current_state
from tests.core.autograd.devices.graphs import SECONDS, leaf, then
from tests.core.autograd.devices.toy import ToyBackend
from tests.core.autograd.together import run_together

COMPILED = not str(engine_module.__file__).endswith(".py")
CHAIN = 300_000 if COMPILED else 20_000

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "pthread_kill"), reason="signals cannot be sent to a thread here"
)


class Alarm:
    """An alarm clock that does what Ctrl-C does, to the main thread, while it is `armed`."""

    def __init__(self) -> None:
        self.armed = False

    def ring(self, number: int, frame: Any) -> None:
        if self.armed:
            self.armed = False
            raise KeyboardInterrupt

    def interrupt(self) -> None:
        """Send signals until the main thread has handled one; call it from another thread.

        A signal that comes just before a thread begins to wait only works when it ends to.
        """
        self.armed = True
        while self.armed:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)
            time.sleep(0.001)

    def set(self, seconds: float, interval: float = 0.0) -> None:
        signal.setitimer(signal.ITIMER_REAL, seconds, interval)


@pytest.fixture
def alarm() -> Iterator[Alarm]:
    clock = Alarm()
    before = signal.signal(signal.SIGALRM, clock.ring)
    yield clock
    clock.set(0.0)
    signal.signal(signal.SIGALRM, before)


def wait_for(condition: Any) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.0001)


def works(device: str) -> None:
    x = leaf(device)
    ((x * x).to("toy:1") * 2).sum().backward()
    assert x.grad.tolist() == [4.0, 8.0]


def test_while_the_owner_waits_for_a_device(toy: ToyBackend, alarm: Alarm) -> None:
    ended: list[bool] = []
    x = leaf("toy:0")
    failing = [True]

    def node(grad: Any) -> None:
        if failing[0]:
            task = current_state().graph_task
            alarm.interrupt()
            wait_for(lambda: task.error is not None)
            ended.append(True)

    y = then(x * x, node)
    z = (y.to("toy:1") * 2).sum()
    for _ in range(20):
        failing[0] = True
        with pytest.raises(KeyboardInterrupt):
            z.backward(retain_graph=True)
        assert ended.pop()  # the node had ended when the caller went on
        assert x.grad is None
        failing[0] = False
        z.backward(retain_graph=True)
        assert x.grad.tolist() == [4.0, 8.0]
        x.grad = None


def test_twice_when_a_device_does_not_end(toy: ToyBackend, alarm: Alarm) -> None:
    go_on = threading.Event()
    x = leaf("toy:0")

    def stuck(grad: Any) -> None:
        task = current_state().graph_task
        alarm.interrupt()
        wait_for(lambda: task.error is not None)
        alarm.interrupt()
        assert go_on.wait(SECONDS)

    y = x * x
    z = then(y, stuck).to("toy:1").sum()
    with pytest.raises(KeyboardInterrupt):
        z.backward(retain_graph=True)
    x2 = leaf("toy:1")
    (x2 * 3).sum().backward()  # on a device that is free
    go_on.set()
    works("toy:0")
    assert x2.grad.tolist() == [3.0, 3.0]
    assert x.grad is None
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_while_another_thread_drives_the_pass(toy: ToyBackend, alarm: Alarm) -> None:
    handed_over: list[Any] = []

    def nested(level: int) -> Any:
        def run(grad: Any) -> None:
            if level == 0:
                alarm.interrupt()
                wait_for(lambda: handed_over[0].error is not None)
                return
            with plugrad.enable_grad():
                y = then(leaf("cpu"), nested(level - 1)).sum()
                if threading.current_thread() is not threading.main_thread():
                    handed_over.append(current_state().graph_task)
                y.backward()

        return run

    with pytest.raises(KeyboardInterrupt):
        then(leaf("cpu"), nested(engine_module.MAX_DEPTH + 2)).sum().backward()
    works("toy:0")


def test_during_a_long_host_graph(alarm: Alarm) -> None:
    x = plugrad.tensor(1.0, dtype=plugrad.float64, requires_grad=True)
    y = x
    for _ in range(CHAIN):
        y = y + x

    def start(grad: Any) -> None:
        alarm.armed = True
        alarm.set(0.002)

    handle = y.register_hook(start)
    with pytest.raises(KeyboardInterrupt):
        y.backward(retain_graph=True)
    handle.remove()
    x.grad = None
    y.backward()
    assert x.grad.item() == CHAIN + 1


def test_at_any_time_during_passes_over_devices(toy: ToyBackend, alarm: Alarm) -> None:
    x = leaf("toy:0")
    y = ((x * x).to("toy:1") * 2).sum()
    interrupts = 0
    alarm.set(0.001, 0.0007)
    while interrupts < 150:
        try:
            alarm.armed = True
            y.backward(retain_graph=True)
            alarm.armed = False
        except KeyboardInterrupt:
            interrupts += 1
    alarm.set(0.0)
    works("toy:0")
    works("toy:1")


def test_threads_that_are_not_interrupted_go_on(toy: ToyBackend, alarm: Alarm) -> None:
    stop = threading.Event()
    passes: list[int] = []

    def work() -> None:
        while not stop.is_set():
            works("toy:0")
            passes.append(1)

    def interrupts() -> None:
        try:
            for _ in range(20):
                y = then(leaf("toy:0"), lambda grad: interrupt())
                with pytest.raises(KeyboardInterrupt):
                    y.sum().backward()
        finally:
            stop.set()

    def interrupt() -> None:
        task = current_state().graph_task
        alarm.interrupt()
        wait_for(lambda: task.error is not None)

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    interrupts()
    for worker in workers:
        worker.join(SECONDS)
        assert not worker.is_alive()
    works("toy:0")
    run_together(lambda: works("toy:1"))


SCRIPT = """
import os, signal, sys, threading, time
from plugrad.dispatch.backends.active import activate_backend
from tests.core.autograd.devices.graphs import leaf, then
from tests.core.autograd.devices.toy import ToyBackend
activate_backend(ToyBackend())
# Whoever started the tests may have left the signal ignored, as shells do for background jobs.
signal.signal(signal.SIGINT, signal.default_int_handler)

def node(grad):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.2)

x = leaf(sys.argv[1])
try:
    then(x, node).sum().backward()
except KeyboardInterrupt:
    print("interrupted", flush=True)
y = leaf(sys.argv[1])
(y * 2).sum().backward()
print(y.grad.tolist(), flush=True)
then(x, node).sum().backward()
"""


@pytest.mark.parametrize("place", ["cpu", "toy:0"])
def test_a_process_that_is_interrupted_ends_as_usual(place: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, place],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.splitlines() == ["interrupted", "[2.0, 2.0]"]
    assert done.stderr.splitlines()[-1] == "KeyboardInterrupt"
    assert done.returncode == -signal.SIGINT
