"""The command `plugrad launch`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from plugrad_distributed.launching.run import Ranks
from plugrad_distributed.launching.starter import count_of_slurm, find_starter
from plugrad_distributed.launching.supervisor import ADDRESS, PREFIX

__all__ = ["SETTINGS", "launch"]

# Everything after the program's name belongs to the program, including options.
SETTINGS = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "allow_interspersed_args": False,
}
THREADS = ("PLUGRAD_NUM_THREADS", "OMP_NUM_THREADS")


def launch(
    context: typer.Context,
    program: Annotated[str, typer.Argument(help="The program, or a module with -m.")],
    processes: Annotated[
        int | None,
        typer.Option("--processes", "-n", min=1, help="How many; in a job of SLURM, its tasks."),
    ] = None,
    module: Annotated[
        bool, typer.Option("--module", "-m", help="The program is a module: python -m.")
    ] = False,
    hostfile: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="Names the machines, as mpiexec reads it."),
    ] = None,
    hosts: Annotated[str, typer.Option(help="The machines, with commas between.")] = "",
    prefix: Annotated[bool, typer.Option(help="Begin lines of output with the rank.")] = False,
    grace: Annotated[
        float, typer.Option(min=0, help="Seconds for the others to end once a rank has failed.")
    ] = 30.0,
    mpiexec: Annotated[str, typer.Option(help="The mpiexec to use.")] = "",
) -> None:
    """Run a program as several processes.

    `plugrad.distributed` connects them.

    Each process has RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE in its environment. The exit
    code is the first failed process's.
    """
    count = processes or count_of_slurm(os.environ)
    if count is None:
        raise _fail("give the number of processes: plugrad launch -n 4 program.py")
    if not module and not Path(program).is_file():
        raise _fail(f"there is no program {program!r}; for a module, use -m")
    environment = dict(os.environ)
    machines = [host for host in hosts.split(",") if host]
    local = hostfile is None and not machines and "SLURM_JOB_ID" not in environment
    if count > 1 and (local or 0 < len(machines) < count):
        _limit_threads(environment)
    if prefix:
        environment[PREFIX] = "1"
    own = [sys.executable, "-m", "plugrad_distributed.launching.supervisor"]
    run = [sys.executable, *(["-m"] if module else []), program, *context.args]
    try:
        starter = find_starter(mpiexec)
        passed = [name for name in environment if name.startswith("PLUGRAD_")]
        variables = sorted({ADDRESS, "PYTHONPATH", *THREADS, *passed})
        command = starter.command(count, [*own, *run], hostfile, machines, variables)
    except (FileNotFoundError, ValueError) as error:
        raise _fail(str(error)) from None
    raise typer.Exit(Ranks(count, grace, _say, local=local).run(command, environment))


def _fail(problem: str) -> typer.Exit:
    """Print an error; returns the exit to raise."""
    typer.secho(f"Error: {problem}", err=True, fg="red")
    return typer.Exit(2)


def _say(text: str) -> None:
    typer.echo(f"plugrad launch: {text}", err=True)


def _limit_threads(environment: dict[str, str]) -> None:
    """Processes on one machine share its cores: each gets one thread unless the user sets a
    number."""
    absent = [name for name in THREADS if name not in environment]
    if absent:
        _say(f"{' and '.join(f'{name}=1' for name in absent)} in each process: set it for another")
    environment.update(dict.fromkeys(absent, "1"))
