"""`torch.utils.benchmark`: the time that a statement takes."""

from __future__ import annotations

import statistics
import time
import timeit
from collections.abc import Callable
from typing import Any

import plugrad

__all__ = ["Measurement", "Timer", "timer"]


def timer() -> float:
    """The time in seconds, read after GPUs have finished."""
    if plugrad.cuda.is_available() and plugrad.cuda.is_initialized():
        plugrad.cuda.synchronize()
    return time.perf_counter()


class Measurement:
    """What a `Timer` measured: the seconds of blocks of runs.

    Attributes:
        number_per_run: how often the statement ran in a block.
        raw_times: the seconds of each block.
        times: the seconds of one statement, by block.
    """

    def __init__(self, number_per_run: int, raw_times: list[float], title: str) -> None:
        self.number_per_run, self.raw_times, self.title = number_per_run, raw_times, title

    @property
    def times(self) -> list[float]:
        """Seconds per run, by block."""
        return [seconds / self.number_per_run for seconds in self.raw_times]

    @property
    def median(self) -> float:
        """The median of `times`."""
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        """The mean of `times`."""
        return statistics.mean(self.times)

    @property
    def iqr(self) -> float:
        """From the first quartile of `times` to the third."""
        if len(self.times) < 2:
            return 0.0
        first, _, third = statistics.quantiles(self.times, n=4, method="inclusive")
        return third - first

    def __repr__(self) -> str:
        return (
            f"{self.title}\n  Median: {self.median * 1e6:.2f} us, IQR: {self.iqr * 1e6:.2f} us, "
            f"{len(self.times)} blocks of {self.number_per_run} runs"
        )


class Timer:
    """Measures a statement, on one thread by default.

    >>> found = Timer("x + 1", globals={"x": 1}).timeit(10)
    >>> found.number_per_run, found.median >= 0
    (10, True)
    """

    def __init__(
        self,
        stmt: str | Callable[[], Any] = "pass",
        setup: str | Callable[[], Any] = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Any = "python",
    ) -> None:
        if str(getattr(language, "name", language)).lower() not in ("python", "py"):
            raise ValueError(f"language={language!r}: only Python can be measured here")
        self._inside = timeit.Timer(stmt, setup, timer, globals)
        self._threads = num_threads
        self._title = label or (stmt if isinstance(stmt, str) else getattr(stmt, "__name__", ""))

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """The time of one block of `number` runs."""
        return self._measured(number, 1)

    def blocked_autorange(self, callback: Any = None, min_run_time: float = 0.2) -> Measurement:
        """Measure blocks for `min_run_time` seconds; the number of runs in a block depends on the
        statement."""
        number = 1
        while (spent := self._measured(number, 1).raw_times[0]) < min_run_time / 100:
            number *= 10
        return self._measured(number, max(1, round(min_run_time / max(spent, 1e-9))))

    adaptive_autorange = blocked_autorange

    def _measured(self, number: int, blocks: int) -> Measurement:
        before = plugrad.get_num_threads()
        plugrad.set_num_threads(self._threads)
        try:
            times = [self._inside.timeit(number) for _ in range(blocks)]
        finally:
            plugrad.set_num_threads(before)
        return Measurement(number, times, str(self._title))
