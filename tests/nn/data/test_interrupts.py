"""A process starts with interrupts held back, however it starts."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import multiprocessing, signal, sys
from plugrad_nn.multiprocessing.interrupts import held_while_starting, run_quietly

def is_held():
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])

def show():
    print(is_held(), flush=True)

def work():
    show()
    run_quietly(show, hold_afterwards=True)
    show()

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    process = context.Process(target=work)
    with held_while_starting(context):
        process.start()
    process.join()
    show()
"""


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="no masks of signals here")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_interrupts_are_held_back_but_for_the_function(method: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    told = subprocess.run(
        [sys.executable, program, method], capture_output=True, text=True, check=True, timeout=120
    )
    # Before, in and after the function, and in the main process.
    assert told.stdout.split() == ["True", "False", "True", "False"]
