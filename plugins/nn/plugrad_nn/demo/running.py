"""Runs of the demo: one, with its folder and its report, or one for each backend and a table."""

from __future__ import annotations

import importlib
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console

import plugrad
from plugrad.plugins.selection import Choice, how_to_choose
from plugrad_nn.demo import advice, runs
from plugrad_nn.demo.defaults import EPOCHS
from plugrad_nn.demo.digits import DigitsTask
from plugrad_nn.demo.outcome import outcome
from plugrad_nn.demo.processes import Ranks
from plugrad_nn.demo.text import TextTask
from plugrad_nn.demo.training import Recipe, Task, Training, one_step, time_steps
from plugrad_nn.demo.watching import watcher

# The figures of a run that has ended.
METRICS: Final = "metrics.json"


@dataclass(frozen=True)
class Run:
    """The command's options; `epochs` is None if not given."""

    program: str
    model: str
    epochs: int | None
    batch_size: int
    lr: float
    seed: int
    captured: bool
    resume: bool
    record: bool
    name: str | None
    runs: Path
    quiet: bool

    def train(
        self, choice: Choice, ranks: Ranks | None = None, brief: bool = False
    ) -> dict[str, Any]:
        """Train on a device, and leave the files in the run's folder; `brief` leaves out advice.

        Raises:
            RunError: the folder of the run already exists, or there is none to resume.
        """
        first = ranks is None or ranks.rank == 0
        console = Console(quiet=self.quiet or not first, highlight=False)
        with choice.device:
            return _Running(self, choice, console, first, ranks, brief).train()

    def recipe(self, before: dict[str, Any] | None) -> Recipe:
        """How to train: as before if a run is resumed, except for the requested epochs."""
        if before is not None:
            return Recipe(
                **{**before["recipe"], "epochs": self.epochs or before["recipe"]["epochs"]}
            )
        epochs = self.epochs or EPOCHS[self.program]
        return Recipe(epochs, self.batch_size, self.lr, self.seed, self.captured)

    def command(self) -> str:
        """The command that repeats the training."""
        words = ["plugrad demo"]
        words += ["text"] if self.program == "text" else []
        words += ["--model mlp"] if self.program == "digits" and self.model == "mlp" else []
        words += [f"--runs {self.runs}"] if self.runs != Path("runs") else []
        return " ".join(words)

    def task_name(self) -> str:
        return TextTask.name if self.program == "text" else f"digits-{self.model}"

    def task(self, seed: int) -> Task:
        return TextTask(seed) if self.program == "text" else DigitsTask(self.model, seed)


class _Running:
    """One run."""

    def __init__(
        self,
        run: Run,
        choice: Choice,
        console: Console,
        first: bool,
        ranks: Ranks | None,
        brief: bool,
    ) -> None:
        self._run = run
        self._brief = brief
        self._choice = choice
        self._console = console
        self._ranks = ranks
        self._before: dict[str, Any] | None = None
        self._reported = False
        # Only the first of several processes has a folder.
        self._folder: Path | None = None
        if run.resume:
            folder = runs.resumed(run.runs, run.task_name(), run.name)
            self._before = runs.kept(folder)
            # A run may be stopped after its last epoch, and before this.
            self._reported = (folder / METRICS).exists()
            self._folder = folder if first else None
        elif first:
            self._folder = runs.new_folder(run.runs, run.task_name(), run.name)

    def train(self) -> dict[str, Any]:
        recipe = self._run.recipe(self._before)
        task = self._run.task(recipe.seed)
        self._say(str(self._choice) if self._brief else f"{self._choice} {how_to_choose()}")
        training = self._prepared(task, recipe)
        started = time.perf_counter()
        with watcher(task, recipe, self._console) as watch:
            folder = self._folder
            keep = None if folder is None else lambda state: runs.keep(folder, state)
            training.run(watch, self._choice.device, self._ranks, keep)
        seconds = time.perf_counter() - started
        return self._report(training, seconds)

    def _prepared(self, task: Task, recipe: Recipe) -> Training:
        plugrad.manual_seed(recipe.seed)
        # The first weights are drawn on the CPU: every backend starts from the same ones.
        with plugrad.device("cpu"):
            model = task.make_model()
        model.to(self._choice.device)
        training = Training(task, model, recipe)
        count = sum(parameter.numel() for parameter in model.parameters())
        together = f" on {self._ranks.count} processes" if self._ranks is not None else ""
        if self._before is not None:
            training.take_up(self._before)
            if training.done >= recipe.epochs and self._reported:
                raise runs.RunError(
                    f"{self._folder} is finished, with {_epochs(training.done)}: "
                    f"--epochs {2 * training.done} goes on"
                )
        self._say(
            f"Training {task.name} ({count:,} parameters){together}: {_epochs(recipe.epochs)} of "
            f"{task.steps(recipe)} steps, seed {recipe.seed}, into {self._folder}/"
        )
        if self._before is not None:
            self._say(f"Going on after epoch {training.done}")
        return training

    def _report(self, training: Training, seconds: float) -> dict[str, Any]:
        device, folder = self._choice.device, self._folder
        found = outcome(training, folder, device)
        captured, eager = time_steps(training, device)
        metrics = {
            "model": training.task.name.removeprefix("digits-"),
            **found.metrics,
            **_figures(training, self._choice),
            "seconds": round(seconds, 3),
            "ms_per_step": {
                "captured": None if captured is None else round(1000 * captured, 4),
                "eager": round(1000 * eager, 4),
            },
        }
        if self._ranks is not None:
            metrics["processes"] = self._ranks.count
        if folder is None:
            return metrics
        metrics["folder"] = str(folder)
        described = {"task": training.task.name, "seed": str(training.recipe.seed)}
        model = folder / "model.safetensors"
        plugrad.save(training.model.state_dict(), model, metadata=described)
        (folder / METRICS).write_text(json.dumps(metrics, indent=2) + "\n")
        if self._run.record:
            self._record(training, folder / "replay.html")
        self._say(f"[bold]{found.headline}[/], after {seconds:.1f} s of training")
        self._say(_step_line(captured, eager, self._choice))
        self._say(f"Wrote the model and its figures to {folder}/")
        if not self._brief:
            same = self._run.command()
            text = advice.closing(same, training, folder, found, self._run.record)
            self._console.print(text, soft_wrap=True)
        return metrics

    def _record(self, training: Training, path: Path) -> None:
        """Record one step, eager: its calls and its backward pass, one by one."""
        step, batch = one_step(training, self._choice.device)
        step(*batch)
        viewer: Any = importlib.import_module("plugrad.viewer")
        with viewer.record() as recording:
            step(*batch)
        recording.save(path)

    def _say(self, line: str) -> None:
        self._console.print(line, soft_wrap=not self._console.is_terminal)


def compared(run: Run, choices: list[Choice]) -> list[dict[str, Any]]:
    """Train on each device in turn, and print a table; each has its own folder."""
    console = Console(quiet=run.quiet, highlight=False)
    found = []
    for choice in choices:
        found.append(run.train(choice, brief=True))
        console.print()
    score = "accuracy" if run.program == "digits" else "bits_a_character"
    rows = [("device", score.replace("_", " "), "seconds", "ms a step", "eager", "folder")]
    for one in found:
        steps = one["ms_per_step"]
        captured = "-" if steps["captured"] is None else f"{steps['captured']:.2f}"
        rows.append(
            (
                *(one["device"], f"{one[score]:.4f}", f"{one['seconds']:.1f}"),
                *(captured, f"{steps['eager']:.2f}", one["folder"]),
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        console.print("  ".join(cells).rstrip(), soft_wrap=True)
    return found


def _epochs(count: int) -> str:
    return f"{count} epoch{'s' * (count != 1)}"


def _step_line(captured: float | None, eager: float, choice: Choice) -> str:
    where = f"'{choice.device}'"
    if captured is None:
        return f"A step takes {1000 * eager:.2f} ms eager; {where} compiles no steps"
    times = f"{1000 * captured:.2f} ms captured and {1000 * eager:.2f} ms eager"
    return f"A step takes {times}, on {where}"


def _figures(training: Training, choice: Choice) -> dict[str, Any]:
    recipe, curves = asdict(training.recipe), training.curves
    recipe.pop("captured")
    return {
        "final_loss": curves.losses[-1],
        "steps": len(curves.losses),
        "steps_per_second": round(curves.steps_per_second, 1),
        "parameters": sum(parameter.numel() for parameter in training.model.parameters()),
        **recipe,
        "device": str(choice.device),
        "device_source": choice.source,
        "plugrad": plugrad.__version__,
    }
