"""The `plugrad demo` command: its options, and checks of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

import plugrad
from plugrad.plugins.selection import Choice, choose_device
from plugrad_nn.demo import advice
from plugrad_nn.demo import processes as _processes
from plugrad_nn.demo.defaults import BATCH_SIZES, EPOCHS
from plugrad_nn.demo.runs import RunError

NEEDS_EXTRAS = "the demo needs {}: pip install 'plugrad-nn[demo]'"


class Program(StrEnum):
    """The task to learn."""

    DIGITS = "digits"
    TEXT = "text"


class ModelName(StrEnum):
    """The models of `plugrad_nn.demo.models`, here without importing it."""

    CNN = "cnn"
    MLP = "mlp"


def _by_program(values: Mapping[str, int]) -> str:
    return f"[default: {values['digits']}, for text {values['text']}]"


def demo(
    program: Annotated[
        Program,
        typer.Argument(
            help="digits: classify handwritten digits. text: write Python, by a transformer that "
            "reads the standard library; at most 2 minutes."
        ),
    ] = Program.DIGITS,
    backend: Annotated[
        str | None,
        typer.Option(help="Backend or device to train on, such as cpu or cuda:0.", metavar="NAME"),
    ] = None,
    model: Annotated[
        ModelName | None,
        typer.Option(help="What to train on digits.  [default: cnn]", show_default=False),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, help=f"How often to go over the data.  {_by_program(EPOCHS)}"),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=2, help=f"Samples per step.  {_by_program(BATCH_SIZES)}")
    ] = None,
    lr: Annotated[float, typer.Option(help="Initial learning rate of AdamW.")] = 3e-3,
    seed: Annotated[int, typer.Option(help="Decides split, weights, order and dropout.")] = 0,
    processes: Annotated[
        int, typer.Option(min=1, help="How many processes share each batch, over MPI.")
    ] = 1,
    eager: Annotated[
        bool, typer.Option("--eager", help="Compile no step, even where the backend can.")
    ] = False,
    compare: Annotated[
        str | None,
        typer.Option(help="Train on each of these backends: a table.", metavar="NAME,NAME"),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the newest run, or the run of --name.")
    ] = False,
    record: Annotated[
        bool,
        typer.Option("--record", help="Record a step as a page that replays it; plugrad-viewer."),
    ] = False,
    name: Annotated[
        str | None,
        typer.Option(
            help="Folder of this run.  [default: what is trained, with the next number]",
            metavar="NAME",
        ),
    ] = None,
    runs: Annotated[
        Path, typer.Option(help="Where the folders of runs are.", metavar="FOLDER")
    ] = Path("runs"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the figures as JSON and nothing else.")
    ] = False,
) -> None:
    """Train a small network on real data, and show the results.

    Each run has a folder of its own, such as runs/digits-cnn-1, with the model, its figures and
    pictures. Ctrl-C stops a run; --resume takes it up again.
    """
    if batch_size is None:
        batch_size = BATCH_SIZES[program]
    options = locals()
    _check(options)
    if processes > 1 and not _processes.is_rank():
        raise typer.Exit(_processes.start(processes, _words(options)))
    names = compare.split(",") if compare else [backend]
    choices = [_choose(one, "compare" if compare else "backend") for one in names]
    # Looked up before anything is printed, so that an unknown backend gives only its own error.
    for choice in choices:
        plugrad.empty(0, device=choice.device)
    from plugrad_nn.demo.running import Run, compared  # scikit-learn takes a second to import

    made = Run(
        program=program.value,
        model=(model or ModelName.CNN).value,
        epochs=epochs,
        batch_size=batch_size,
        lr=lr,
        seed=seed,
        captured=not eager,
        resume=resume,
        record=record,
        name=name,
        runs=runs,
        quiet=as_json,
    )
    several = _processes.joined() if processes > 1 else nullcontext()
    try:
        with several as ranks:
            figures: Any = (
                compared(made, choices) if compare else made.train(choices[0], ranks=ranks)
            )
    except RunError as error:
        raise _fail(str(error)) from None
    except KeyboardInterrupt:
        typer.echo("Stopped. --resume goes on after the last whole epoch.", err=True)
        raise typer.Exit(130) from None
    if as_json and (ranks is None or ranks.rank == 0):
        typer.echo(json.dumps(figures, indent=2))


def _check(options: dict[str, Any]) -> None:
    """Report problems before anything starts."""
    missing = [name for name in ("sklearn", "matplotlib", "threadpoolctl") if not _has(name)]
    problem = ""
    if missing:
        problem = NEEDS_EXTRAS.format(" and ".join(missing).replace("sklearn", "scikit-learn"))
    elif options["program"] is Program.TEXT and options["model"] is not None:
        problem = "--model is for digits; text has one model"
    elif options["record"] and not advice.has_viewer():
        problem = f"--record needs plugrad-viewer: {advice.VIEWER}"
    elif options["compare"]:
        against = [one for one in ("backend", "resume", "record", "name") if options[one]]
        against += ["processes"] if options["processes"] > 1 else []
        if against:
            problem = f"--compare cannot be combined with --{against[0]}"
        elif "" in options["compare"].split(","):
            problem = f"--compare takes names with commas between, got {options['compare']!r}"
    elif options["processes"] > 1:
        problem = _in_the_way_of_processes(options)
    if problem:
        raise _fail(problem)


def _in_the_way_of_processes(options: dict[str, Any]) -> str:
    count, batch_size = options["processes"], options["batch_size"]
    if not _processes.is_installed():
        return "--processes needs plugrad-distributed: pip install 'plugrad-distributed[mpi]'"
    if batch_size % count:
        return (
            f"--batch-size must be a multiple of the {count} processes, which share each batch, "
            f"got {batch_size}"
        )
    if options["program"] is Program.TEXT:
        return "--processes is for digits"
    return "--processes cannot be combined with --record" if options["record"] else ""


def _has(module: str) -> bool:
    try:
        __import__(module)
    except ImportError:
        return False
    return True


def _fail(problem: str) -> typer.Exit:
    typer.secho(f"Error: {problem}", err=True, fg="red")
    return typer.Exit(2)


def _words(options: dict[str, Any]) -> list[str]:
    """The arguments of `demo` as a command line has them."""
    words = [str(options["program"])]
    for key, value in options.items():
        option = "--json" if key == "as_json" else f"--{key.replace('_', '-')}"
        if isinstance(value, bool):
            words += [option] if value else []
        elif value is not None and key != "program":
            words += [option, str(value)]
    return words


def _choose(backend: str | None, option: str) -> Choice:
    choice = choose_device(backend)
    return choice if backend is None else Choice(choice.device, f"the option --{option} {backend}")
