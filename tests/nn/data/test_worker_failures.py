"""Errors and deaths of workers, and that no process and no memory is left behind.

Code that ends a process runs in a separate program, and its output must have no complaints.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import plugrad

PROGRAM = """
import gc, os, signal, sys, threading, time
import plugrad
from plugrad.utils.data import DataLoader, Dataset

# What a shell starts in the background ignores it.
signal.signal(signal.SIGINT, signal.default_int_handler)

class Images(Dataset):
    def __init__(self, count=10**6, act=lambda index: None):
        self.count, self.act = count, act

    def __getitem__(self, index):
        self.act(index)
        return plugrad.full((3, 32, 32), float(index))

    def __len__(self):
        return self.count

def pids(batches):
    print(*(worker.pid for worker in batches._workers), flush=True)

"""


class Program:
    """Runs programs, and reads their workers' ids from their first line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.before = shared_files()

    def start(self, body: str) -> subprocess.Popen[str]:
        path = self.folder / "program.py"
        path.write_text(PROGRAM + body)
        # A group of its own gets the signals, as from a terminal.
        return subprocess.Popen(
            [sys.executable, "-W", "always", path],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONDEVMODE": ""},
        )

    def run(self, body: str, code: int = 0) -> str:
        """What a program prints after its first line; it and its workers have ended quietly."""
        process = self.start(body)
        out, told = process.communicate(timeout=120)
        assert process.returncode == code, told
        assert told == ""
        first, _, rest = out.partition("\n")
        self.assert_gone(first)
        return rest

    def assert_gone(self, pids: str) -> None:
        assert pids
        for pid in pids.split():
            assert not is_alive(int(pid))
        assert shared_files() == self.before


def shared_files() -> set[str]:
    """Files by which memory may be shared, as far as they are plugrad's or Python's."""
    folder = Path("/dev/shm")
    names = os.listdir(folder) if folder.is_dir() else []
    return {name for name in names if name.startswith(("plugrad", "psm_", "pym"))}


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.fixture
def program(tmp_path: Path) -> Program:
    if not Path("/proc/self").exists():
        pytest.skip("processes are looked up in /proc")
    return Program(tmp_path)


class Failing(plugrad.utils.data.Dataset[int]):
    def __init__(self, fail: Callable[[], Any]) -> None:
        self.fail = fail

    def __getitem__(self, index: int) -> int:
        return self.fail() if index == 2 else index

    def __len__(self) -> int:
        return 4


class TwoArguments(Exception):
    def __init__(self, first: int, second: int) -> None:
        super().__init__(first, second)


class Described(Exception):
    message = "of the class"

    def __init__(self, message: str) -> None:
        super().__init__(message)


def raise_(error: Exception) -> Any:
    raise error


def local_error() -> Any:
    class Local(Exception):
        pass

    raise Local("inside")


@pytest.mark.parametrize(
    ("fail", "kind", "name"),
    [
        (lambda: raise_(ValueError("bad")), ValueError, "ValueError"),
        (lambda: raise_(KeyError("bad")), KeyError, "KeyError"),
        (lambda: raise_(TwoArguments(1, 2)), RuntimeError, "TwoArguments"),
        (lambda: raise_(Described("bad")), Described, "Described"),
        (lambda: raise_(UnicodeDecodeError("utf-8", b"x", 0, 1, "bad")), RuntimeError, "Unicode"),
        (local_error, RuntimeError, "Local"),
        (lambda: {}["bad"], KeyError, "KeyError"),
    ],
)
def test_an_error_reaches_the_user_with_its_traceback(
    fail: Callable[[], Any], kind: type[Exception], name: str
) -> None:
    with pytest.raises(kind) as caught:
        list(plugrad.utils.data.DataLoader(Failing(fail), num_workers=2))
    assert type(caught.value) is kind
    # As it is printed: KeyError would show it quoted.
    lines = str(caught.value).splitlines()
    assert lines[0].startswith(f"Caught {name}")
    assert lines[0].endswith(" in DataLoader worker process 0.")
    assert lines[1] == "Original Traceback (most recent call last):"
    assert any("test_worker_failures.py" in line for line in lines)


@pytest.mark.parametrize("kind", ["ValueError", "KeyError", "TwoArguments", "Described"])
def test_the_message_begins_and_ends_as_pytorchs(torch: Any, kind: str) -> None:
    def told(lib: Any) -> Any:
        errors = {
            "ValueError": ValueError("bad"),
            "KeyError": KeyError("bad"),
            "TwoArguments": TwoArguments(1, 2),
            "Described": Described("bad"),
        }
        data = Failing(lambda: raise_(errors[kind]))
        try:
            list(lib.utils.data.DataLoader(data, num_workers=1))
        except Exception as error:
            lines = str(error).splitlines()
            return type(error), lines[:2], lines[-1]

    assert told(plugrad) == told(torch)


def test_what_cannot_be_pickled_is_an_error_of_its_batch() -> None:
    options: dict[str, Any] = {"num_workers": 1, "collate_fn": lambda samples: lambda: 0}
    with pytest.raises(Exception, match=r"(?s)in DataLoader worker process 0.*pickle"):
        list(plugrad.utils.data.DataLoader(range(3), **options))


def test_a_tensor_with_a_graph_is_refused() -> None:
    def collate(samples: Any) -> Any:
        return plugrad.ones(1, requires_grad=True) * 2

    options: dict[str, Any] = {"num_workers": 1, "collate_fn": collate}
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        list(plugrad.utils.data.DataLoader(range(3), **options))


def test_an_error_of_worker_init_fn_is_raised_by_the_first_batch() -> None:
    def init(number: int) -> None:
        raise ValueError("no start")

    loader = plugrad.utils.data.DataLoader(range(3), num_workers=1, worker_init_fn=init)
    with pytest.raises(ValueError, match=r"(?s)Caught ValueError in DataLoader.*no start"):
        list(loader)


def test_what_cannot_be_pickled_cannot_be_spawned(program: Program) -> None:
    loader = plugrad.utils.data.DataLoader(
        range(3), num_workers=2, multiprocessing_context="spawn", collate_fn=lambda samples: 0
    )
    with pytest.raises(Exception, match="pickle"):
        iter(loader)


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (lambda: os._exit(3), "exited unexpectedly with exit code 3"),
        (lambda: os._exit(0), "exited unexpectedly with exit code 0"),
        (lambda: sys.exit(5), "exited unexpectedly with exit code 5"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "is killed by signal: Killed"),
        (lambda: os.kill(os.getpid(), signal.SIGTERM), "is killed by signal: Terminated"),
    ],
)
def test_a_worker_that_dies_is_noticed(end: Callable[[], Any], reason: str) -> None:
    batches = iter(plugrad.utils.data.DataLoader(Failing(end), num_workers=2))
    pids = [worker.pid for worker in batches._workers]
    with pytest.raises(RuntimeError) as caught:
        list(batches)
    assert str(caught.value) == f"DataLoader worker (pid(s) {pids[0]}) exited unexpectedly"
    assert f"DataLoader worker (pid {pids[0]}) {reason}" in str(caught.value.__cause__)
    assert not any(worker.is_alive() for worker in batches._workers)


def test_a_worker_that_another_process_kills_while_it_reads_is_noticed() -> None:
    batches = iter(plugrad.utils.data.DataLoader(Failing(signal.pause), num_workers=1))
    assert [next(batches).item() for _ in range(2)] == [0, 1]
    os.kill(batches._workers[0].pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        next(batches)


def test_a_worker_that_takes_too_long_is_an_error() -> None:
    batches = iter(plugrad.utils.data.DataLoader(Failing(signal.pause), num_workers=1, timeout=0.5))
    assert [next(batches).item() for _ in range(2)] == [0, 1]
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.5 seconds"):
        next(batches)
    os.kill(batches._workers[0].pid, signal.SIGKILL)


@pytest.mark.parametrize("persistent", [False, True])
def test_the_end_of_a_program_ends_workers_in_the_middle_of_an_epoch(
    program: Program, persistent: bool
) -> None:
    program.run(
        f"batches = iter(DataLoader(Images(), 4, num_workers=2, persistent_workers={persistent}))\n"
        "kept = next(batches)\npids(batches)"
    )


def test_an_iterator_that_is_let_go_ends_its_workers(program: Program) -> None:
    told = program.run(
        "batches = iter(DataLoader(Images(), 4, num_workers=2))\n"
        "next(batches)\npids(batches)\nworkers = batches._workers\ndel batches\n"
        "print([worker.exitcode for worker in workers])\n"
    )
    assert told == "[0, 0]\n"


def test_an_error_of_the_program_ends_workers(program: Program) -> None:
    process = program.start(
        "for batch in (batches := iter(DataLoader(Images(), 4, num_workers=2))):\n"
        "    pids(batches)\n    raise ValueError('of the loop')\n"
    )
    out, told = process.communicate(timeout=120)
    assert process.returncode == 1
    assert told.count("Traceback") == 1
    program.assert_gone(out.splitlines()[0])


# A signal that comes while Python makes a socket leaves it open.
WAITING = """
import warnings
warnings.simplefilter("ignore", ResourceWarning)
batches = iter(DataLoader(Images(), 4, num_workers=2))
next(batches)
pids(batches)
for batch in batches:
    pass
"""


def test_ctrl_c_ends_program_and_workers(program: Program) -> None:
    process = program.start(WAITING)
    assert process.stdout is not None
    pids = process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGINT, told
    # Only the main process's.
    assert told.count("Traceback") == 1
    assert told.strip().endswith("KeyboardInterrupt")
    program.assert_gone(pids)


STARTING = """
os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGINT))
for batch in DataLoader(Images(), 4, num_workers=1):
    pass
"""


def test_ctrl_c_while_a_worker_starts_ends_it_quietly(program: Program) -> None:
    """Before Python has come to the worker's own code, which could catch it."""
    process = program.start(STARTING)
    _, told = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "DataLoader worker (pid(s)" in told
    assert "KeyboardInterrupt" not in told


def test_workers_end_when_the_program_is_killed(program: Program) -> None:
    process = program.start(WAITING)
    assert process.stdout is not None
    pids = process.stdout.readline()
    process.kill()
    # The pipe closes when the last process that has it is gone.
    _, told = process.communicate(timeout=120)
    assert told == ""
    program.assert_gone(pids)


def test_a_worker_that_does_not_end_is_ended(program: Program) -> None:
    program.run(
        "import plugrad_nn.utils.data._utils.multiprocess as multiprocess\n"
        "multiprocess._PATIENCE = 0.2\n"
        "def act(index):\n    if index == 8:\n"
        "        signal.signal(signal.SIGTERM, signal.SIG_IGN)\n        time.sleep(1000)\n"
        "batches = iter(DataLoader(Images(act=act), 4, num_workers=1))\n"
        "next(batches), next(batches)\npids(batches)\ndel batches\n"
    )


def test_a_fork_does_not_keep_workers_alive(program: Program) -> None:
    """Without a hook, a child that survives would have the main process's ends of the pipes."""
    process = program.start(
        "batches = iter(DataLoader(Images(), 4, num_workers=2))\n"
        "next(batches)\n"
        "child = os.fork()\n"
        "if not child:\n    time.sleep(1000)\n"
        "print(*(worker.pid for worker in batches._workers), child, flush=True)\n"
        "time.sleep(1000)\n"
    )
    assert process.stdout is not None
    *workers, child = process.stdout.readline().split()
    process.kill()
    process.wait(60)
    try:
        for pid in workers:
            wait_for_end(int(pid))
        assert is_alive(int(child))
    finally:
        os.kill(int(child), signal.SIGKILL)
        process.communicate()


def wait_for_end(pid: int) -> None:
    """Wait until a process that is no child of ours has ended."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        import select

        assert select.select([handle], [], [], 60)[0]
    finally:
        os.close(handle)


def test_threads_may_have_loaders(program: Program) -> None:
    told = program.run(
        "found = {}\n"
        "def read(number):\n"
        "    batches = iter(DataLoader(Images(20), 2, num_workers=2))\n"
        "    workers[number] = batches._workers\n"
        "    found[number] = sum(batch.sum().item() for batch in batches)\n"
        "workers = {}\n"
        "threads = [threading.Thread(target=read, args=(number,)) for number in range(3)]\n"
        "for thread in threads:\n    thread.start()\n"
        "for thread in threads:\n    thread.join()\n"
        "print(*(worker.pid for group in workers.values() for worker in group))\n"
        "print(sorted(found.values()))\n"
    )
    total = 3 * 32 * 32 * sum(range(20))
    assert told == f"{[float(total)] * 3}\n"
