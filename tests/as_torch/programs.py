"""The programs of examples/torch, and how they are run for some steps."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[2] / "examples" / "torch"
# Enough steps to see the loss change, and a checkpoint.
PROGRAMS: Final = {
    "cnn": ["--epochs", "2", "--pictures", "160"],
    "lstm_language_model": ["--epochs", "2", "--repeats", "4"],
    "transformer": ["--steps", "20", "--every", "5"],
    "vae": ["--epochs", "3", "--pictures", "256"],
    "gan": ["--steps", "10", "--every", "2"],
    "actor_critic": ["--episodes", "10", "--every", "2"],
}


def printed(name: str, *words: str, before: tuple[str, ...] = (), **environment: str) -> str:
    """What a program prints on plugrad, in a process of its own."""
    command = [sys.executable, "-W", "ignore", *(before or ("-m", "plugrad.as_torch"))]
    done = subprocess.run(
        [*command, str(FOLDER / f"{name}.py"), *(words or PROGRAMS[name])],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
