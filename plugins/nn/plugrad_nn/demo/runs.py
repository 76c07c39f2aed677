"""The folders of runs: each run has its own, with a number, and can be resumed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import plugrad

CHECKPOINT = "checkpoint.safetensors"


class RunError(Exception):
    """A run cannot be started or resumed; the message says why and what to do."""


def new_folder(runs: Path, task: str, name: str | None) -> Path:
    """Makes the folder of a run: `NAME`, or the task's name with the next number.

    Raises:
        RunError: the name exists already.
    """
    runs.mkdir(parents=True, exist_ok=True)
    if name is not None:
        folder = runs / name
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            raise RunError(
                f"{folder} exists already: choose another --name, or continue with --resume"
            ) from None
        return folder
    number = max(_numbered(runs, task), default=0) + 1
    while True:  # another process may take the number meanwhile
        folder = runs / f"{task}-{number}"
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
        else:
            return folder


def resumed(runs: Path, task: str, name: str | None) -> Path:
    """The folder of the run to take up: `NAME`, or the newest of the task.

    Raises:
        RunError: there is none, or it has not finished an epoch.
    """
    if name is not None:
        folder = runs / name
    else:
        numbers = _numbered(runs, task)
        if not numbers:
            raise RunError(f"there is no run to resume: {runs / task}-1 would be the first")
        folder = runs / f"{task}-{max(numbers)}"
    if not (folder / CHECKPOINT).exists():
        raise RunError(f"there is nothing to resume in {folder}: it has no {CHECKPOINT}")
    return folder


def keep(folder: Path, state: Mapping[str, Any]) -> None:
    """Write the state after an epoch; the file is replaced only when all is written."""
    plugrad.save(state, folder / CHECKPOINT)


def kept(folder: Path) -> dict[str, Any]:
    """The state after a run's last epoch, on the CPU."""
    state: dict[str, Any] = plugrad.load(folder / CHECKPOINT, map_location="cpu")
    return state


def _numbered(runs: Path, task: str) -> list[int]:
    if not runs.is_dir():
        return []
    pattern = re.compile(rf"{re.escape(task)}-(\d+)")
    found = (pattern.fullmatch(path.name) for path in runs.iterdir())
    return [int(match[1]) for match in found if match]
