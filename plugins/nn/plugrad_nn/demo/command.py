"""The `plugrad demo` command: options, progress bar, and the files it leaves behind."""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

import plugrad
from plugrad.plugins.selection import Choice, choose_device, how_to_choose
from plugrad_nn.demo import processes as _processes

if TYPE_CHECKING:
    from plugrad_nn.demo.processes import Ranks
    from plugrad_nn.demo.training import Curves, Evaluation, Recipe

NEEDS_EXTRAS = "the demo needs scikit-learn and matplotlib: pip install 'plugrad-nn[demo]'"


class ModelName(StrEnum):
    """The models of `plugrad_nn.demo.models`, here without importing it."""

    CNN = "cnn"
    MLP = "mlp"


def demo(
    backend: Annotated[
        str | None,
        typer.Option(help="Backend or device to train on, such as cpu or cuda:0.", metavar="NAME"),
    ] = None,
    model: Annotated[ModelName, typer.Option(help="What to train.")] = ModelName.CNN,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training data.")] = 15,
    batch_size: Annotated[int, typer.Option(min=2, help="Images per step.")] = 32,
    lr: Annotated[float, typer.Option(help="Initial learning rate of AdamW.")] = 3e-3,
    seed: Annotated[int, typer.Option(help="Decides split, weights, order and dropout.")] = 0,
    processes: Annotated[
        int, typer.Option(min=1, help="How many processes share each batch, over MPI.")
    ] = 1,
    eager: Annotated[
        bool, typer.Option("--eager", help="Compile no step, even where the backend can.")
    ] = False,
    name: Annotated[
        str | None, typer.Option(help="Folder of this run; by default that of the model.")
    ] = None,
    runs: Annotated[Path, typer.Option(help="Where the folders of runs are.")] = Path("runs"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the metrics as JSON and nothing else.")
    ] = False,
) -> None:
    """Train a small network on real data, and show what came of it.

    Writes model.safetensors, metrics.json, curves.png and misclassified.png to runs/NAME.
    """
    if processes > 1 and not _processes.is_rank():
        _check_processes(processes, batch_size)
        options = _options_of(locals())
        raise typer.Exit(_processes.start(processes, options))
    choice = _choose(backend)
    # Asked for before anything is printed, so that an unknown backend is all that is talked about.
    plugrad.empty(0, device=choice.device)
    try:
        import matplotlib  # noqa: F401  # asked for before training rather than after it
        import sklearn  # noqa: F401
    except ImportError:
        typer.secho(f"Error: {NEEDS_EXTRAS}", err=True, fg="red")
        raise typer.Exit(2) from None

    from plugrad_nn.demo.training import Recipe

    folder = runs / (name or f"digits-{model.value}")
    recipe = Recipe(epochs, batch_size, lr, seed, captured=not eager)
    several = _processes.joined() if processes > 1 else nullcontext()
    with choice.device, several as ranks:
        first = ranks is None or ranks.rank == 0
        console = Console(quiet=as_json or not first, highlight=False)
        console.print(f"{choice} {how_to_choose()}", soft_wrap=True)
        if first:
            folder.mkdir(parents=True, exist_ok=True)
        metrics = _run(model.value, recipe, choice, folder if first else None, console, ranks)
    if as_json and first:
        typer.echo(json.dumps(metrics, indent=2))


def _check_processes(count: int, batch_size: int) -> None:
    """Say what is in the way of several processes, before any is started."""
    problem = ""
    if not _processes.is_installed():
        problem = "--processes needs plugrad-distributed: pip install 'plugrad-distributed[mpi]'"
    elif batch_size % count:
        problem = (
            f"--batch-size must be a multiple of the {count} processes, which share each batch, "
            f"got {batch_size}"
        )
    if problem:
        typer.secho(f"Error: {problem}", err=True, fg="red")
        raise typer.Exit(2)


def _options_of(given: dict[str, Any]) -> list[str]:
    """The options of `demo`, from its arguments, as a command line has them."""
    options = []
    for key, value in given.items():
        option = "--json" if key == "as_json" else f"--{key.replace('_', '-')}"
        if isinstance(value, bool):
            options += [option] if value else []
        elif value is not None:
            options += [option, str(value)]
    return options


def _choose(backend: str | None) -> Choice:
    choice = choose_device(backend)
    return choice if backend is None else Choice(choice.device, f"the option --backend {backend}")


def _run(
    model_name: str,
    recipe: Recipe,
    choice: Choice,
    folder: Path | None,
    console: Console,
    ranks: Ranks | None,
) -> dict[str, Any]:
    """Train, and leave the files in the folder, if there is one for this process."""
    from plugrad_nn.demo import digits, models, pictures, training

    plugrad.manual_seed(recipe.seed)
    training_data, held_out = digits.load(recipe.seed)
    # The first weights are drawn on the CPU: every backend starts from the same ones.
    with plugrad.device("cpu"):
        model = models.MODELS[model_name]()
    model.to(choice.device)
    samples = len(training_data.labels)
    count = sum(parameter.numel() for parameter in model.parameters())
    together = f" on {ranks.count} processes" if ranks is not None else ""
    console.print(
        f"Training {model_name} ({count:,} parameters) on {samples} digits{together}, "
        f"{len(held_out.labels)} held out, seed {recipe.seed}",
        soft_wrap=True,
    )
    started = time.perf_counter()
    with nullcontext() if console.quiet else _Bar(recipe, samples, console) as bar:
        watch = bar.show if bar is not None else _do_not_watch
        curves = training.train(model, training_data, held_out, recipe, watch, choice.device, ranks)
    seconds = time.perf_counter() - started
    evaluation = training.evaluate(
        model, digits.Digits(*(part.to(choice.device) for part in held_out))
    )
    captured, eager = training.time_steps(model, training_data, recipe, choice.device)
    step_times = (None if captured is None else round(1000 * captured, 4), round(1000 * eager, 4))

    metrics = _metrics(model_name, recipe, choice, curves, evaluation)
    metrics |= {
        "parameters": count,
        "seconds": round(seconds, 3),
        "ms_per_step": dict(zip(("captured", "eager"), step_times, strict=True)),
    }
    if ranks is not None:
        metrics["processes"] = ranks.count
    if folder is None:
        return metrics
    described = {key: str(metrics[key]) for key in ("model", "seed", "epochs", "accuracy")}
    plugrad.save(model.state_dict(), folder / "model.safetensors", metadata=described)
    (folder / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n")
    pictures.draw_curves(curves, folder / "curves.png")
    pictures.draw_mistakes(evaluation, held_out, folder / "misclassified.png")

    wrong = len(evaluation.mistakes)
    console.print(
        f"[bold]{100 * evaluation.accuracy:.2f} %[/] of the held-out digits are right "
        f"({wrong} wrong), after {seconds:.1f} s of training",
        soft_wrap=True,
    )
    console.print(_step_line(*step_times, choice), soft_wrap=True)
    files = ("model.safetensors", "metrics.json", "curves.png", "misclassified.png")
    console.print(f"Wrote {', '.join(files)} to {folder}/", soft_wrap=True)
    return metrics


def _step_line(captured: float | None, eager: float, choice: Choice) -> str:
    if captured is None:
        return f"A step takes {eager:.2f} ms eager; '{choice.device}' compiles no steps"
    return f"A step takes {captured:.2f} ms captured and {eager:.2f} ms eager, on '{choice.device}'"


def _metrics(
    model_name: str, recipe: Recipe, choice: Choice, curves: Curves, evaluation: Evaluation
) -> dict[str, Any]:
    return {
        "model": model_name,
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
        "accuracy_by_epoch": [round(accuracy, 6) for accuracy in curves.accuracies],
        "final_loss": curves.losses[-1],
        "steps": len(curves.losses),
        "steps_per_second": round(curves.steps_per_second, 1),
        "epochs": recipe.epochs,
        "batch_size": recipe.batch_size,
        "lr": recipe.lr,
        "seed": recipe.seed,
        "device": str(choice.device),
        "device_source": choice.source,
        "plugrad": plugrad.__version__,
    }


def _do_not_watch(epoch: int, curves: Curves) -> None:
    """What watches a quiet run."""


class _Bar:
    """The progress bar: steps done, loss, held-out accuracy and steps per second."""

    def __init__(self, recipe: Recipe, samples: int, console: Console) -> None:
        self._epochs = recipe.epochs
        self._total = recipe.steps(samples)
        self._task: TaskID | None = None
        self._progress = Progress(
            TextColumn("epoch {task.fields[epoch]:>2}/{task.fields[epochs]}"),
            BarColumn(),
            TextColumn("{task.completed:.0f}/{task.total:.0f} steps"),
            TextColumn("loss {task.fields[loss]}"),
            TextColumn("accuracy {task.fields[accuracy]}"),
            TextColumn("{task.fields[speed]} steps/s"),
            console=console,
        )

    def __enter__(self) -> _Bar:
        self._progress.start()
        self._task = self._progress.add_task(
            "", total=self._total, epoch=1, epochs=self._epochs, loss="-", accuracy="-", speed="-"
        )
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._progress.stop()

    def show(self, epoch: int, curves: Curves) -> None:
        """Draws the state after a step; the bar itself draws only ten times a second."""
        assert self._task is not None
        recent = curves.losses[-20:]
        self._progress.update(
            self._task,
            completed=len(curves.losses),
            epoch=epoch,
            loss=f"{sum(recent) / len(recent):.4f}",
            accuracy=f"{100 * curves.accuracies[-1]:.1f} %" if curves.accuracies else "-",
            speed=f"{curves.steps_per_second:.0f}",
        )
