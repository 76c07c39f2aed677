"""What communication costs: a line for each collective, and the algorithms that scale it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from plugrad_distributed.planning.overheads import NO_OVERHEADS, Overheads

__all__ = ["ALGORITHMS", "Call", "Costs", "Line", "Point", "fastest", "fit_line"]


class Line(NamedTuple):
    """Seconds of a message of some bytes: `latency + per_byte * bytes`.

    >>> from plugrad.distributed.simulate import Line
    >>> f"{Line(latency=1e-6, per_byte=1e-9).seconds(1e6):.6f} s"
    '0.001001 s'
    """

    latency: float
    per_byte: float

    def seconds(self, size: float) -> float:
        return self.latency + self.per_byte * size


class Point(NamedTuple):
    """One measurement of a collective.

    >>> from plugrad.distributed.simulate import Point, fit_line
    >>> points = [Point(ranks=2, size=size, seconds=1e-6 + 1e-9 * size) for size in (1e3, 1e6)]
    >>> f"{fit_line('send', points).latency:.1e} s"
    '1.0e-06 s'
    """

    ranks: int
    size: float
    seconds: float


class Call(NamedTuple):
    """What one collective costs, in seconds: by latency, and by bandwidth.

    >>> from plugrad.distributed.simulate import Costs
    >>> call = Costs.of(latency=1e-6, bandwidth=1e9).call("all_gather", 2, 2e6)
    >>> f"{call.seconds:.6f} s, {call.latency:.6f} s of them latency"
    '0.001001 s, 0.000001 s of them latency'
    """

    collective: str
    latency: float
    bandwidth: float

    @property
    def seconds(self) -> float:
        return self.latency + self.bandwidth


class _Algorithm(NamedTuple):
    """Messages one after the other, and the part of the bytes that goes through each rank."""

    steps: Callable[[int], float]
    volume: Callable[[int], float]


def _log(ranks: int) -> float:
    return math.ceil(math.log2(ranks))


def _others(ranks: int) -> float:
    return ranks - 1


def _share(ranks: int) -> float:
    return (ranks - 1) / ranks


def _one(ranks: int) -> float:
    return 1.0


def _twice(function: Callable[[int], float]) -> Callable[[int], float]:
    return lambda ranks: 2 * function(ranks)


# By collective; the fastest one is used. Bytes are the whole tensor's: the tensor that is reduced
# or broadcast, the result of all_gather, the input of reduce_scatter and all_to_all.
ALGORITHMS: Mapping[str, Sequence[_Algorithm]] = {
    "all_reduce": (
        _Algorithm(_twice(_others), _twice(_share)),  # ring
        _Algorithm(_log, _log),  # recursive doubling
        _Algorithm(_twice(_log), _twice(_share)),  # recursive halving, then doubling
    ),
    "all_gather": (
        _Algorithm(_others, _share),  # ring
        _Algorithm(_log, _share),  # recursive doubling
    ),
    "reduce_scatter": (
        _Algorithm(_others, _share),  # ring
        _Algorithm(_log, _share),  # recursive halving
    ),
    "broadcast": (
        _Algorithm(_log, _log),  # binomial tree
        _Algorithm(lambda n: _log(n) + n - 1, _twice(_share)),  # scatter, then ring
    ),
    "send": (_Algorithm(_one, _one),),
}


def _cost(collective: str, line: Line, ranks: int, size: float) -> Call:
    """The fastest algorithm for so many ranks and bytes."""
    calls = [
        Call(collective, a.steps(ranks) * line.latency, a.volume(ranks) * size * line.per_byte)
        for a in ALGORITHMS[collective]
    ]
    return min(calls, key=lambda call: call.seconds)


def _least_squares(rows: Iterable[tuple[float, float, float]]) -> Line:
    """Fit a line to rows (steps, bytes, seconds) by least squares of relative errors. Latency and
    bandwidth are not negative."""
    # Divided by the time: steps / t * latency + bytes / t * per_byte = 1.
    scaled = [(steps / t, size / t) for steps, size, t in rows]
    aa = sum(a * a for a, _ in scaled)
    ab = sum(a * b for a, b in scaled)
    bb = sum(b * b for _, b in scaled)
    a1, b1 = sum(a for a, _ in scaled), sum(b for _, b in scaled)
    determinant = aa * bb - ab * ab
    if determinant > 1e-12 * aa * bb:
        line = Line((a1 * bb - b1 * ab) / determinant, (b1 * aa - a1 * ab) / determinant)
        if line.latency >= 0 and line.per_byte >= 0:
            return line
        if line.latency < 0:
            return Line(0.0, b1 / bb)
    return Line(a1 / aa, 0.0)


def fit_line(collective: str, points: Sequence[Point]) -> Line:
    """Latency and seconds per byte of one message between two ranks, from measured collectives.

    Least squares of the relative errors. Each point is taken for the algorithm that is fastest
    for it, which is found by turns with the line.

    Sources: Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations
    in MPICH", 2005 (recursive doubling and halving, trees, their costs); Patarasuk and Yuan,
    "Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations", 2009 (the ring). What
    it takes to add numbers is part of the seconds per byte.

    Raises:
        ValueError: no such collective, or too few or wrong points.

    >>> from plugrad.distributed.simulate import Point, fit_line
    >>> points = [Point(2, size, 2e-6 + 1e-9 * size) for size in (100, 10_000, 1_000_000)]
    >>> line = fit_line("send", points)
    >>> f"{line.latency:.1e} {line.per_byte:.1e}"
    '2.0e-06 1.0e-09'
    """
    if collective not in ALGORITHMS:
        raise ValueError(
            f"fit_line(): collective must be one of {', '.join(ALGORITHMS)}, got {collective!r}"
        )
    if len({point.size for point in points}) < 2:
        raise ValueError(f"fit_line(): points must have two sizes or more, got {list(points)}")
    if wrong := [p for p in points if p.ranks < 2 or p.size <= 0 or p.seconds <= 0]:
        raise ValueError(
            "fit_line(): points must be of 2 ranks or more, with sizes and seconds above 0, got "
            f"{wrong[0]}"
        )
    algorithms = ALGORITHMS[collective]
    best, least = Line(0.0, 0.0), math.inf
    # Turns end in a local minimum: begin at each algorithm.
    for first in algorithms:
        chosen = [first] * len(points)
        for _ in range(20):
            line = _least_squares(
                (a.steps(p.ranks), a.volume(p.ranks) * p.size, p.seconds)
                for a, p in zip(chosen, points, strict=True)
            )
            before, chosen = chosen, [_fastest(algorithms, line, p) for p in points]
            if before == chosen:
                break
        error = sum(
            (_cost(collective, line, p.ranks, p.size).seconds / p.seconds - 1) ** 2 for p in points
        )
        if error < least:
            best, least = line, error
    return best


def _fastest(algorithms: Sequence[_Algorithm], line: Line, point: Point) -> _Algorithm:
    return min(
        algorithms,
        key=lambda a: (
            a.steps(point.ranks) * line.latency + a.volume(point.ranks) * point.size * line.per_byte
        ),
    )


@dataclass(frozen=True)
class Costs:
    """The costs of communication, and the properties of one machine.

    Attributes:
        near: by collective, the line of one message between two ranks of a machine.
        far: the same between machines; as `near` where it is missing.
        cores: of a machine. With more ranks than cores on it, each computes so much slower.
        contention: the factor by which ranks slow down when all cores compute, at least 1.
        copy: seconds per byte that is copied in memory.
        overlap: the part of a collective that runs beside kernels, at most 1. The rest stops them,
            because without a device the processor itself moves the bytes; below 0 if it takes
            longer beside kernels than alone.
        add: seconds per byte that is added to others in memory.
        overheads: what the ways to spread a model take of Python's time.
        far_overlap: as `overlap`, of groups on several machines; None for the same.
        waiting: which part of a core a rank takes from others that compute, while it waits, where
            ranks are more than cores.
        late: seconds until a rank that waits sees that a message has come, where ranks are more
            than cores: it sleeps between polls.
        measured: by collective, what was measured. Groups of a size that was measured on one
            machine are taken from these.
        about: where the figures come from.

    >>> from plugrad.distributed.simulate import Costs, Point
    >>> names = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "send")
    >>> points = [Point(2, size, 1e-6 + 1e-9 * size) for size in (1e3, 1e6)]
    >>> costs = Costs.fitted(
    ...     {name: points for name in names}, cores=4, contention=1.2, copy=1e-10, overlap=0.5
    ... )
    >>> f"{costs.call('all_reduce', 2, 1e6).seconds:.4f} s"
    '0.0010 s'
    """

    near: dict[str, Line]
    far: dict[str, Line] = field(default_factory=dict)
    cores: float = math.inf
    contention: float = 1.0
    copy: float = 0.0
    overlap: float = 1.0
    measured: dict[str, list[Point]] = field(default_factory=dict)
    about: str = ""
    add: float = 0.0
    overheads: Overheads = NO_OVERHEADS
    waiting: float = 0.0
    far_overlap: float | None = None
    late: float = 0.0

    def __post_init__(self) -> None:
        if missing := [name for name in ALGORITHMS if name not in self.near]:
            raise ValueError(f"Costs(): near must have a line for each collective, not {missing}")
        for name in ("cores", "contention"):
            if not getattr(self, name) >= 1:
                raise ValueError(f"Costs(): {name} must be at least 1, got {getattr(self, name)!r}")
        if not self.overlap <= 1:
            raise ValueError(f"Costs(): overlap must be at most 1, got {self.overlap!r}")
        if not 0 <= self.waiting <= 1:
            raise ValueError(f"Costs(): waiting must be from 0 to 1, got {self.waiting!r}")
        if not self.late >= 0:
            raise ValueError(f"Costs(): late must not be below 0, got {self.late!r}")
        fitted = {}
        for name, points in self.measured.items():
            for ranks in {point.ranks for point in points}:
                own = [point for point in points if point.ranks == ranks]
                if len({point.size for point in own}) > 1:
                    fitted[name, ranks] = fit_line(name, own)
        object.__setattr__(self, "_fitted", fitted)

    @classmethod
    def of(
        cls,
        latency: float,
        bandwidth: float,
        *,
        cores: float = math.inf,
        contention: float = 1.0,
        copy: float = 0.0,
        overlap: float = 1.0,
        about: str = "",
    ) -> Costs:
        """The same for all collectives: seconds of a message, and bytes per second.

        >>> from plugrad.distributed.simulate import Costs
        >>> call = Costs.of(1e-6, 1e9).call("all_reduce", 4, 1e6)
        >>> f"{call.latency:.1e} s and {call.bandwidth:.1e} s"
        '4.0e-06 s and 1.5e-03 s'
        """
        near = {name: Line(latency, 1 / bandwidth) for name in ALGORITHMS}
        return cls(near, {}, cores, contention, copy, overlap, {}, about)

    @classmethod
    def fitted(
        cls,
        measured: dict[str, list[Point]],
        *,
        cores: int,
        contention: float,
        copy: float,
        overlap: float,
        about: str = "",
        add: float = 0.0,
        overheads: Overheads = NO_OVERHEADS,
        waiting: float = 0.0,
        late: float = 0.0,
    ) -> Costs:
        """Costs with lines that are fitted to measurements on one machine: to groups with a core
        for each rank, or to groups of two ranks if there is only one core."""
        near = {
            name: fit_line(name, [p for p in points if p.ranks <= max(cores, 2)])
            for name, points in measured.items()
        }
        found = cls(
            near, {}, cores, contention, copy, overlap, measured, about, add, overheads, waiting
        )
        return replace(found, late=late)

    def with_network(self, latency: float, bandwidth: float, overlap: float = 1.0) -> Costs:
        """With a network between machines: seconds of a message, bytes per second of a machine, and
        which part of a collective runs beside kernels: all of it where a card moves the bytes.

        >>> from plugrad.distributed.simulate import Costs
        >>> costs = Costs.of(1e-6, 1e10).with_network(latency=1e-5, bandwidth=1e9)
        >>> for far in (False, True):
        ...     print(f"{costs.call('all_reduce', 2, 1e6, far=far).seconds:.6f} s")
        0.000101 s
        0.001010 s
        """
        far = {name: Line(latency, 1 / bandwidth) for name in ALGORITHMS}
        return replace(self, far=far, far_overlap=overlap)

    def beside(self, *, far: bool) -> float:
        """`overlap` of a group, by whether its ranks are on several machines.

        >>> from plugrad.distributed.simulate import Costs
        >>> costs = Costs.of(1e-6, 1e10, overlap=0.5).with_network(1e-5, 1e9, overlap=1.0)
        >>> costs.beside(far=False), costs.beside(far=True)
        (0.5, 1.0)
        """
        return self.overlap if not far or self.far_overlap is None else self.far_overlap

    def call(
        self, collective: str, ranks: int, size: float, *, far: bool = False, share: float = 1.0
    ) -> Call:
        """What a collective costs.

        Args:
            size: bytes of the whole tensor.
            far: whether the ranks are on several machines.
            share: how many groups use a machine's network at the same time.

        >>> from plugrad.distributed.simulate import Costs
        >>> costs = Costs.of(1e-6, 1e9)
        >>> for ranks in (1, 2, 8):
        ...     print(f"{ranks}: {costs.call('all_gather', ranks, 8e6).seconds:.4f} s")
        1: 0.0000 s
        2: 0.0040 s
        8: 0.0070 s
        """
        if ranks < 2:
            return Call(collective, 0.0, 0.0)
        if not far:
            fitted: dict[tuple[str, int], Line] = self._fitted  # type: ignore[attr-defined]  # made in __post_init__, no field
            line = fitted.get((collective, ranks), self.near[collective])
        else:
            line = self.far.get(collective, self.near[collective])
            line = Line(line.latency, line.per_byte * share)
        return _cost(collective, line, ranks, size)

    def slowdown(self, ranks: float, waiting: int = 0) -> float:
        """How much slower each of some ranks on a machine computes than a rank alone, while others
        wait.

        >>> from plugrad.distributed.simulate import Costs
        >>> costs = Costs.of(1e-6, 1e9, cores=4, contention=1.5)
        >>> [costs.slowdown(ranks) for ranks in (1, 4, 8)]
        [1.0, 1.5, 3.0]
        """
        ranks += self.waiting * waiting
        busy = min(ranks, self.cores)
        shared = 0.0 if self.cores <= 1 or math.isinf(self.cores) else (busy - 1) / (self.cores - 1)
        return max(1.0, ranks / self.cores) * (1 + (self.contention - 1) * shared)

    def slowdown_in_turns(self, ranks: int) -> float:
        """As `slowdown`, of ranks that communicate so often that those of a machine compute one
        after the other between two collectives. Those that have computed wait for the others.

        >>> from dataclasses import replace
        >>> from plugrad.distributed.simulate import Costs
        >>> costs = replace(Costs.of(1e-6, 1e9, cores=2), waiting=0.125)
        >>> [costs.slowdown_in_turns(ranks) for ranks in (1, 2, 4)]
        [1.0, 1.0, 2.125]
        """
        if ranks <= self.cores:
            return self.slowdown(ranks)
        cores = int(self.cores)
        return math.fsum(
            self.slowdown(min(cores, ranks - done), done) for done in range(0, ranks, cores)
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write them as JSON.

        >>> import os, tempfile
        >>> from plugrad.distributed.simulate import Costs
        >>> costs = Costs.of(1e-6, 1e9, cores=4)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "costs.json")
        ...     costs.save(path)
        ...     print(Costs.load(path) == costs)
        True
        """
        Path(path).write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Costs:
        """What `save` wrote."""
        held = json.loads(Path(path).read_text(encoding="utf-8"))
        for name in ("near", "far"):
            held[name] = {key: Line(*line) for key, line in held[name].items()}
        held["measured"] = {
            key: [Point(*point) for point in points] for key, points in held["measured"].items()
        }
        held["overheads"] = Overheads(**held.get("overheads", {}))
        return cls(**held)


def fastest(one: Costs, other: Costs) -> Costs:
    """The smaller of each figure in two measurements of the same machine, because other programs
    only add to them. Ratios and differences are the second one's, because a smaller one is not
    better: `contention`, `overlap`, `waiting`, `late` and `overheads`.

    >>> from plugrad.distributed.simulate import Costs, Point, fastest
    >>> names = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "send")
    >>> def measured(disturbance):
    ...     points = [Point(2, size, disturbance * (1e-6 + 1e-9 * size)) for size in (1e3, 1e6)]
    ...     return Costs.fitted(
    ...         {name: points for name in names}, cores=4, contention=1.0, copy=1e-10, overlap=1.0
    ...     )
    >>> f"{fastest(measured(1.0), measured(1.7)).near['send'].latency:.1e} s"
    '1.0e-06 s'
    """
    measured = {
        name: [
            Point(a.ranks, a.size, min(a.seconds, b.seconds))
            for a, b in zip(points, other.measured[name], strict=True)
        ]
        for name, points in one.measured.items()
    }
    return Costs.fitted(
        measured,
        cores=int(one.cores),
        contention=other.contention,
        copy=min(one.copy, other.copy),
        overlap=other.overlap,
        about=one.about,
        add=min(one.add, other.add),
        overheads=other.overheads,
        waiting=other.waiting,
        late=other.late,
    )
