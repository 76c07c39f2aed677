"""Every tenth case ends the process."""

from __future__ import annotations

import os
import signal

NAME = "crash"


def run_case(seed: int) -> None:
    if seed % 10 == 3:
        os.kill(os.getpid(), signal.SIGSEGV)


def program_of(seed: int) -> str:
    return f"crash({seed})"
