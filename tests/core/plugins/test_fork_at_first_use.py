"""A child forked while another thread imports a module of plugrad's, or holds a lock, can go on."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

IMPORTING = """
import os, signal, sys, threading
import plugrad

name, reached = sys.argv[1], threading.Event()
class Slow:
    def find_spec(self, wanted, path=None, target=None):
        if wanted == name and not reached.is_set():
            reached.set()
            threading.Event().wait(0.1)
sys.meta_path.insert(0, Slow())
sys.modules.pop(name, None)
thread = threading.Thread(target=plugrad.ones, args=(2,))
thread.start()
assert reached.wait(60), "nobody imports it"
child = os.fork()
if child == 0:
    signal.alarm(30)
    os._exit(int(plugrad.ones(2).sum().item()) - 2)
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

HOLDING = """
import importlib, os, signal, sys, threading
import plugrad
from plugrad.dispatch import fork

plugrad.ones(2)
known = len(fork._LOCKS)
for name in sys.argv[1:]:
    importlib.import_module(name)
assert len(fork._LOCKS) - known >= len(sys.argv) - 1, "a lock is not announced"
if len(sys.argv) == 1:
    # A lock of one group of tensors on immutable arrays, which share memory.
    from plugrad.tensor.aliasing import cells
    from plugrad.tensor.aliasing.functionalize import join
    base, view = plugrad.ones(2), plugrad.ones(2)
    join(view, base, None, base.array)
    assert cells.alias_of(view).cell.lock in fork._others()
for lock in [*fork._LOCKS, *fork._others()]:
    reached = threading.Event()
    def hold():
        with lock:
            reached.set()
            threading.Event().wait(0.01)
    thread = threading.Thread(target=hold)
    thread.start()
    reached.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        with lock:
            os._exit(0)
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print(0)
"""


def run(*arguments: str) -> str:
    command = [sys.executable, "-W", "ignore", "-c", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "name", ["plugrad.plugins.loading.manager", "plugrad_cpu.backend", "tomllib"]
)
def test_what_another_thread_imports(name: str) -> None:
    assert run(IMPORTING, name) == "0"


PLUGINS = {
    "the core": (),
    "plugrad-cuda": ("plugrad_cuda.pinned", "plugrad_cuda.memory", "plugrad_cuda.graphs"),
    "plugrad-jax": ("plugrad_jax.deferred", "plugrad_jax.capture.captured"),
}


@pytest.mark.parametrize("whose", PLUGINS)
def test_what_another_thread_holds(whose: str) -> None:
    if whose == "plugrad-jax":
        pytest.importorskip("jax")
    assert run(HOLDING, *PLUGINS[whose]) == "0"
