"""How far a run of the kit is: a bar on a terminal, by rich or tqdm, else a line for each topic."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from plugrad.testing.conformance.kit.certificate import Count

# Seconds between two changes of a bar, and between two lines about one topic.
_BAR: Final = 0.1
_LINE: Final = 30.0


class Lines:
    """A line when a topic is done, and every half minute in between.

    Args:
        write: writes a line.
    """

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._topic = ""
        self._count = Count()
        self._began = self._told = time.monotonic()

    def step(self, topic: str, result: str) -> None:
        if topic != self._topic:
            self.end()
            self._topic, self._count = topic, Count()
            self._began = self._told = time.monotonic()
        self._count.add(result)
        if time.monotonic() - self._told > _LINE:
            self._told = time.monotonic()
            self._write(f"{self._topic}: {self._said()} so far")

    def end(self) -> None:
        if self._topic:
            seconds = time.monotonic() - self._began
            self._write(f"{self._topic}: {self._said()} in {seconds:.0f} s")
        self._topic = ""

    def _said(self) -> str:
        count = self._count
        numbers = {"passed": count.passed, "failed": count.failed, "skipped": count.skipped}
        return ", ".join(f"{number} {name}" for name, number in numbers.items() if number)


class RichBar:
    """A bar of rich's, drawn between tests: pytest redirects the terminal while they run."""

    def __init__(self, total: int) -> None:
        from rich import progress
        from rich.console import Console

        columns = (
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeRemainingColumn(),
        )
        console = Console(stderr=True)
        self._bar = progress.Progress(
            *columns, console=console, auto_refresh=False, transient=True, redirect_stdout=False
        )
        self._task = self._bar.add_task("", total=total or None)
        self._failed = 0
        self._drawn = 0.0
        self._bar.start()

    def step(self, topic: str, result: str) -> None:
        self._failed += result == "failed"
        failed = f", {self._failed} failed" if self._failed else ""
        self._bar.update(self._task, advance=1, description=topic + failed)
        if time.monotonic() - self._drawn > _BAR:
            self._drawn = time.monotonic()
            self._bar.refresh()

    def end(self) -> None:
        self._bar.stop()


class TqdmBar:
    """The same of tqdm's."""

    def __init__(self, total: int) -> None:
        tqdm: Any = importlib.import_module("tqdm").tqdm
        self._bar = tqdm(total=total or None, unit="test", leave=False, mininterval=_BAR)
        self._failed = 0

    def step(self, topic: str, result: str) -> None:
        self._failed += result == "failed"
        failed = f", {self._failed} failed" if self._failed else ""
        self._bar.set_description(topic + failed, refresh=False)
        self._bar.update()

    def end(self) -> None:
        self._bar.close()


Progress = Lines | RichBar | TqdmBar


def make_progress(total: int, write: Callable[[str], object]) -> Progress:
    """The kind of progress display for the terminal and the installed packages.

    Args:
        total: the number of tests, 0 if unknown.
    """
    if sys.stderr.isatty():
        if importlib.util.find_spec("rich") is not None:
            return RichBar(total)
        if importlib.util.find_spec("tqdm") is not None:
            return TqdmBar(total)
    return Lines(write)
