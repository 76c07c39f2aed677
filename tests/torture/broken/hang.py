"""One case does not come back."""

from __future__ import annotations

import threading

NAME = "hang"
TIME_LIMIT = 0.3


def run_case(seed: int) -> None:
    if seed % 10 == 4:
        threading.Event().wait()
