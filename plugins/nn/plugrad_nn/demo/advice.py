"""The advice of a finished run: what to open and to try next, as far as it works here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from plugrad.plugins import get_manager

if TYPE_CHECKING:
    from plugrad_nn.demo.outcome import Outcome
    from plugrad_nn.demo.training import Training

VIEWER = "pip install plugrad-viewer"


def has_viewer() -> bool:
    """Whether `plugrad.viewer`, which records replays, is installed."""
    return get_manager().namespace("viewer") is not None


def closing(same: str, training: Training, folder: Path, outcome: Outcome, recorded: bool) -> str:
    """What to open, and what to try next; `same` is the command that repeats the training."""
    files = {str(folder / name): what for name, what in outcome.files.items()}
    if recorded:
        files[str(folder / "replay.html")] = "a step, replayed in the browser"
    tries = _tries(same, training, recorded)
    return "\n".join(["Open:", *_columns(files), "Try next:", *_columns(tries)])


def _columns(rows: dict[str, str]) -> list[str]:
    width = max(map(len, rows))
    return [f"  {left:<{width}}  {right}" for left, right in rows.items()]


def _tries(same: str, training: Training, recorded: bool) -> dict[str, str]:
    """Commands, and what each does."""
    tries = {}
    if training.task.name == "text":
        tries["plugrad demo"] = "digits, and those that it got wrong"
    else:
        tries["plugrad demo text"] = "a transformer that learns to write Python"
    tries[f"{same} --resume --epochs {2 * training.recipe.epochs}"] = "train this one for longer"
    if "jax" in get_manager().discovered():
        tries[f"{same} --compare cpu,jax"] = "the same on another backend, in a table"
    else:
        tries["pip install plugrad-jax"] = f"then {same} --compare cpu,jax"
    if not has_viewer():
        tries[VIEWER] = f"then {same} --record: watch the backward pass in the browser"
    elif not recorded:
        tries[f"{same} --record"] = "watch dispatch and the backward pass in the browser"
    return tries
