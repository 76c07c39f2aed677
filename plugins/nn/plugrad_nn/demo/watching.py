"""What a run shows while it trains: a bar on a terminal, else a line for each epoch."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from plugrad_nn.demo.training import Curves, Recipe, Task


class Silent:
    """Shows nothing."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *exc_info: object) -> None:
        pass

    def __call__(self, epoch: int, curves: Curves, done: bool) -> None:
        pass


class Lines(Silent):
    """A line for each epoch, for files, pipes and the logs of other machines."""

    def __init__(self, task: Task, recipe: Recipe, console: Console) -> None:
        self._task = task
        self._epochs = recipe.epochs
        self._console = console

    def __call__(self, epoch: int, curves: Curves, done: bool) -> None:
        if done:
            width = len(str(self._epochs))
            self._console.print(
                f"epoch {epoch:>{width}}/{self._epochs}  loss {curves.recent_loss:.4f}  "
                f"{self._task.told(curves.scores[-1])}  {curves.steps_per_second:.0f} steps/s",
                soft_wrap=True,
            )


class Bar(Silent):
    """Steps done, loss, score and steps per second; draws ten times a second."""

    def __init__(self, task: Task, recipe: Recipe, console: Console) -> None:
        self._task = task
        self._recipe = recipe
        self._id: TaskID | None = None
        self._progress = Progress(
            TextColumn("epoch {task.fields[epoch]:>2}/{task.fields[epochs]}"),
            BarColumn(bar_width=None),
            TextColumn("loss {task.fields[loss]}"),
            TextColumn("{task.fields[score]}"),
            TextColumn("{task.fields[speed]} steps/s"),
            console=console,
            expand=True,
        )

    def __enter__(self) -> Bar:
        self._progress.start()
        self._id = self._progress.add_task(
            "",
            total=self._recipe.epochs * self._task.steps(self._recipe),
            epoch=1,
            epochs=self._recipe.epochs,
            loss="-",
            score="",
            speed="-",
        )
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._progress.stop()

    def __call__(self, epoch: int, curves: Curves, done: bool) -> None:
        assert self._id is not None
        self._progress.update(
            self._id,
            completed=len(curves.losses),
            epoch=epoch,
            loss=f"{curves.recent_loss:.4f}",
            score=self._task.told(curves.scores[-1]) if curves.scores else "",
            speed=f"{curves.steps_per_second:.0f}",
        )


def watcher(task: Task, recipe: Recipe, console: Console) -> Silent:
    """The display that suits the output."""
    if console.quiet:
        return Silent()
    return (Bar if console.is_terminal else Lines)(task, recipe, console)
