"""Asks for values that no option gave if there is a terminal, else uses the defaults."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import typer

from plugrad.cli.new.names import ScaffoldError
from plugrad.cli.output import print_line

Check = Callable[[str], object]


def is_terminal() -> bool:
    """Whether there is a terminal to ask in."""
    return sys.stdin.isatty()


@dataclass(frozen=True)
class Questions:
    """The sources of answers: options first, then the user, then the defaults.

    Attributes:
        asking: whether the user is asked.
    """

    asking: bool

    def answer(
        self, given: str | None, option: str, question: str, default: str | None, check: Check
    ) -> str:
        """What an option gave, or else the answer to a question; `check` raises for a wrong one.

        Raises:
            ScaffoldError: what was given is wrong, or nothing was, and there is no default.
        """
        if given is None and self.asking:
            return self._ask(question, default, check)
        value = default if given is None else given
        if value is None:
            raise ScaffoldError(
                f"{option} is missing, and there is no terminal to ask in: give {option}"
            )
        check(value)
        return value

    def _ask(self, question: str, default: str | None, check: Check) -> str:
        while True:
            value = str(typer.prompt(question, default=default)).strip()
            try:
                check(value)
            except ScaffoldError as error:
                print_line(f"  {error}", style="red")
            else:
                return value

    def confirm(self, question: str) -> None:
        """On a terminal, ask the user, and abort unless they agree; elsewhere, go on."""
        if self.asking:
            typer.confirm(question, default=True, abort=True)


def git_author() -> str:
    """Name and address from git's configuration, ``Ada Lovelace <ada@example.org>``; empty without
    git."""
    if shutil.which("git") is None:
        return ""
    name, address = (_git_config(key) for key in ("user.name", "user.email"))
    return f"{name} <{address}>" if name and address else name


def _git_config(key: str) -> str:
    command = ["git", "config", "--get", key]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
