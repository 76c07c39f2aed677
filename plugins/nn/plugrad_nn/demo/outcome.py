"""The outcome of a run: its files, its figures, and which file to open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plugrad import device as Device
from plugrad_nn.demo import pictures
from plugrad_nn.demo.digits import DigitsTask
from plugrad_nn.demo.text import PROMPT, TextTask, write
from plugrad_nn.demo.training import Task, Training

WRITTEN_CHARACTERS = 600


@dataclass(frozen=True)
class Outcome:
    """The report of a run.

    Attributes:
        metrics: further figures for metrics.json.
        headline: the result in a sentence.
        files: further files besides the model and the figures, each with a description.
    """

    metrics: dict[str, Any]
    headline: str
    files: dict[str, str]


def outcome(training: Training, folder: Path | None, device: Device) -> Outcome:
    """The outcome of a run; draws and writes into its folder, if this process has one."""
    return _OUTCOMES[type(training.task)](training.task, training, folder, device)


def _of_digits(
    task: DigitsTask, training: Training, folder: Path | None, device: Device
) -> Outcome:
    evaluation = task.evaluation(training.model, device)
    scores = training.curves.scores
    if folder is not None:
        percent = [100 * score for score in scores]
        title = "Accuracy on held-out digits"
        pictures.draw_curves(training.curves, percent, title, "%", folder / "curves.png")
        pictures.draw_mistakes(evaluation, task.held_out, folder / "misclassified.png")
    wrong = len(evaluation.mistakes)
    metrics = {
        "accuracy": round(evaluation.accuracy, 6),
        "held_out": len(evaluation.labels),
        "mistakes": [
            {
                "index": index,
                "label": evaluation.labels[index],
                "predicted": evaluation.predicted[index],
                "confidence": round(evaluation.confidence[index], 4),
            }
            for index in evaluation.mistakes
        ],
        "accuracy_by_epoch": [round(score, 6) for score in scores],
    }
    return Outcome(
        metrics,
        f"{100 * evaluation.accuracy:.2f} % of the held-out digits are right ({wrong} wrong)",
        {"misclassified.png": "the digits that it got wrong", "curves.png": "how it learnt"},
    )


def _of_text(task: TextTask, training: Training, folder: Path | None, device: Device) -> Outcome:
    scores = training.curves.scores
    sample = write(training.model, device, PROMPT, WRITTEN_CHARACTERS, training.recipe.seed)
    if folder is not None:
        title = "Held-out text"
        path = folder / "curves.png"
        pictures.draw_curves(training.curves, scores, title, "bits a character", path)
        (folder / "written.txt").write_text(sample.lstrip("\n") + "\n", encoding="utf-8")
    metrics = {
        "bits_a_character": round(scores[-1], 4),
        "bits_of_zlib": round(task.bits_of_zlib, 4),
        "characters": task.characters,
        "bits_by_epoch": [round(score, 4) for score in scores],
        "written": sample,
    }
    return Outcome(
        metrics,
        f"{scores[-1]:.2f} bits for a character that it has not seen "
        f"(zlib needs {task.bits_of_zlib:.2f})",
        {"written.txt": "the Python that it writes", "curves.png": "how it learnt"},
    )


_OUTCOMES: dict[type[Task], Callable[[Any, Training, Path | None, Device], Outcome]] = {
    DigitsTask: _of_digits,
    TextTask: _of_text,
}
