"""A fork's child: device threads are made anew, and no lock is held by a thread that is gone."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.core.autograd.devices.graphs import SECONDS

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

PRELUDE = """
import os, signal, sys, threading, time
import plugrad
from plugrad.autograd.engine.engine import ENGINE, MAX_DEPTH
from plugrad.dispatch import keys, registration
from plugrad.dispatch.backends import active as active_backends
from plugrad.dispatch.backends.active import activate_backend, find_backend
from plugrad.dispatch.local_state import current_state
from tests.core.autograd.devices.graphs import device_threads, leaf, then
from tests.core.autograd.devices.toy import ToyBackend
activate_backend(ToyBackend())

def works():
    x = leaf("toy:0")
    y = leaf("cpu")
    ((x * x).to("toy:1") * y.to("toy:1")).sum().backward()
    assert x.grad.tolist() == [2.0, 8.0], x.grad
    assert y.grad.tolist() == [1.0, 4.0], y.grad

def in_a_child(work):
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # ends a child that hangs
        code = 1
        try:
            work()
            code = 0
        except BaseException as error:
            print(repr(error), flush=True)
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
"""


def run(script: str) -> None:
    """Run a script in a process of its own, since forks of pytest's would carry its threads."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PRELUDE + script],
        capture_output=True,
        text=True,
        timeout=2 * SECONDS,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_parent_and_child_both_go_on() -> None:
    run(
        """
works()
def child():
    assert device_threads() == ["plugrad-toy:0", "plugrad-toy:1"] or not device_threads()
    works()
    in_a_child(works)
    ENGINE.stop()
    works()
in_a_child(child)
works()
"""
    )


def test_a_graph_from_before_the_fork_runs_in_the_child() -> None:
    run(
        """
x = leaf("toy:0")
y = ((x * x).to("toy:1") * 2).sum()
y.backward(retain_graph=True)
def child():
    y.backward()
    assert x.grad.tolist() == [8.0, 16.0], x.grad
in_a_child(child)
assert x.grad.tolist() == [4.0, 8.0]
"""
    )


def test_the_pool_is_made_anew() -> None:
    run(
        """
def nested(level):
    def node(grad):
        if level:
            with plugrad.enable_grad():
                then(leaf("cpu"), nested(level - 1)).sum().backward()
    return node
def deep():
    then(leaf("cpu"), nested(2 * MAX_DEPTH + 3)).sum().backward()
deep()
in_a_child(deep)
deep()
"""
    )


def test_a_fork_while_other_threads_run_passes() -> None:
    run(
        """
sys.setswitchinterval(1e-5)
shared = leaf("toy:0")
stop = False
def hammer():
    while not stop:
        works()
        (shared * 2).sum().backward()
threads = [threading.Thread(target=hammer) for _ in range(3)]
for thread in threads:
    thread.start()
def child():
    works()
    shared.grad = None
    (shared * 2).sum().backward()
    assert shared.grad.tolist() == [2.0, 2.0]
for _ in range(25):
    in_a_child(child)
stop = True
for thread in threads:
    thread.join()
works()
"""
    )


def test_a_fork_in_the_midst_of_a_pass() -> None:
    run(
        """
def node(grad):
    with plugrad.enable_grad():
        in_a_child(works)
x = leaf("cpu")
then(x, node).sum().backward()
x = leaf("toy:0")
then(x, node).sum().backward()
works()
"""
    )


def test_no_lock_of_dispatch_is_held_in_the_child() -> None:
    run(
        """
def child():
    for lock in (active_backends._lock, keys._lock, registration.LOCK):
        assert lock.acquire(timeout=20), lock
        lock.release()
    activate_backend(ToyBackend("other"))
    lib = plugrad.library.Library("in_a_child", "DEF")
    lib.define("twice(Tensor self) -> Tensor")
    lib.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
    assert plugrad.ops.in_a_child.twice(plugrad.ones(2)).tolist() == [2.0, 2.0]

for lock in (active_backends._lock, keys._lock, registration.LOCK):
    held, forked = threading.Event(), threading.Event()
    def hold():
        with lock:
            held.set()
            forked.wait(0.3)
    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    in_a_child(child)
    forked.set()
    holder.join()
    with lock:
        pass
works()
"""
    )


def test_locks_beside_dispatch_are_free_in_the_child() -> None:
    run(
        """
from plugrad.autograd import saved_tensors
from plugrad.plugins import get_manager

def hold(lock, held, done):
    with lock:
        held.set()
        done.wait()

done = threading.Event()
for lock in (get_manager()._lock, saved_tensors._mutation.lock):
    held = threading.Event()
    threading.Thread(target=hold, args=(lock, held, done)).start()
    held.wait()

def child():
    get_manager().discovered()
    with plugrad.autograd.graph.allow_mutation_on_saved_tensors():
        works()

in_a_child(child)
done.set()
"""
    )
