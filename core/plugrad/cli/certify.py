"""`plugrad certify`: the conformance kit, run by pytest."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import Annotated

import typer

from plugrad.cli.output import fail
from plugrad.dispatch.backends.active import find_backend


def certify(
    context: typer.Context,
    backend: Annotated[str, typer.Argument(help="The backend to certify.", metavar="BACKEND")],
    level: Annotated[
        str,
        typer.Option(
            "--level",
            help="The level that must be reached: core, what every backend can do, or full.",
            metavar="LEVEL",
        ),
    ] = "",
    report: Annotated[
        list[str] | None,
        typer.Option(help="Write the certificate to a .json or .html file.", metavar="PATH"),
    ] = None,
) -> None:
    """Run the conformance kit on a backend, and print its certificate.

    Other arguments go to pytest: `plugrad certify foo -x -k exp`.
    """
    if level not in ("", "core", "full"):
        raise fail(f"--level must be core or full, got {level!r}")
    if importlib.util.find_spec("pytest") is None:
        raise fail("plugrad certify needs pytest: pip install 'plugrad[testing]'", code=1)
    find_backend(backend)  # or a message, not pytest's
    options = [f"--plugrad-backend={backend}"]
    options += [f"--plugrad-level={level}"] if level else []
    options += [f"--plugrad-report={path}" for path in report or []]
    kit = ["-p", "plugrad_pytest", "--pyargs", "plugrad.testing.conformance", "-q"]
    command = [sys.executable, "-m", "pytest", *kit, *options, *context.args]
    raise typer.Exit(subprocess.run(command, check=False).returncode)
