"""Times several contestants alternately, so that a busy machine affects all of them equally."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

PLUGRAD = "plugrad"
TORCH = "PyTorch"
NUMPY = "NumPy"
JAX = "JAX by hand"
EAGER = "plugrad, eager"
XLA = "plugrad by XLA"
LOOP = "a loop"

ROUND_SECONDS = 0.02


@dataclass(frozen=True)
class Sample:
    """The rounds of one contestant, in the unit of its row."""

    median: float
    minimum: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Sample:
        return cls(statistics.median(values), min(values))


@dataclass(frozen=True)
class Budget:
    """The limit of plugrad's median: as a ratio, or in the row's unit if `against` is None."""

    limit: float
    against: str | None = None


@dataclass
class Row:
    """One line of the report.

    Attributes:
        plain: the ratio to PyTorch in a run without the packages of fast kernels.
    """

    benchmark: str
    case: str
    unit: str
    samples: Mapping[str, Sample]
    budget: Budget | None = None
    ratios: dict[str, Sample] = field(default_factory=dict)
    plain: Sample | None = None

    def __post_init__(self) -> None:
        for name, other in self.samples.items():
            if name != PLUGRAD:
                self.compare(name, other)

    def compare(self, name: str, other: Sample) -> None:
        """Record plugrad's ratio to another sample."""
        own = self.samples[PLUGRAD]
        self.ratios[name] = Sample(own.median / other.median, own.minimum / other.minimum)

    def budget_figure(self) -> float | None:
        """The figure that the budget limits; None if that contestant is missing."""
        if self.budget is None:
            return None
        if self.budget.against is None:
            return self.samples[PLUGRAD].median
        ratio = self.ratios.get(self.budget.against)
        return None if ratio is None else ratio.median


@dataclass(frozen=True)
class Effort:
    """How long to measure: enough for a report, or just enough to check that it runs."""

    smoke: bool
    # Longest time to spend on one contestant of one case.
    most: float = 3.0

    @property
    def rounds(self) -> int:
        return 2 if self.smoke else 25

    @property
    def seconds(self) -> float:
        """Longest time to spend on one contestant of one case."""
        return 0.1 if self.smoke else self.most


def power(number: int) -> str:
    """1000 as 1e3."""
    return f"{number:.0e}".replace("e+0", "e")


def clock(action: Callable[[], object], repeats: int) -> float:
    """Seconds per call over `repeats` calls."""
    start = time.perf_counter()
    for _ in range(repeats):
        action()
    return (time.perf_counter() - start) / repeats


def interleave(
    contestants: Mapping[str, Callable[[], object]],
    effort: Effort,
    *,
    units: int = 1,
    pause: float = 0.0,
) -> dict[str, Sample]:
    """Microseconds per unit of work for each contestant; one call does `units` units.

    The garbage collector stays on, because a training loop pays for it, too.

    Args:
        pause: seconds of rest before each contestant, so that threads of the one before, which may
            wait for more work without sleeping, leave it their core.
    """
    repeats: dict[str, int] = {}
    rounds = effort.rounds
    for name, action in contestants.items():
        action()
        once = clock(action, 1)
        repeats[name] = max(1, round(ROUND_SECONDS / max(once, 1e-9)))
        rounds = min(rounds, max(3, round(effort.seconds / max(once * repeats[name], 1e-9))))
    if effort.smoke:
        repeats = dict.fromkeys(repeats, 1)
    values: dict[str, list[float]] = {name: [] for name in contestants}
    order = list(contestants)
    for turn in range(rounds):
        gc.collect()
        for name in order[turn % len(order) :] + order[: turn % len(order)]:
            if pause:
                time.sleep(pause)
            values[name].append(clock(contestants[name], repeats[name]) * 1e6 / units)
    return {name: Sample.of(found) for name, found in values.items()}
