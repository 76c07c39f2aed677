"""Costs of collectives: closed forms of algorithms, fits to given lines, files, measurements."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import plugrad.distributed as dist
from plugrad.distributed.simulate import (
    Costs,
    Line,
    Overheads,
    Point,
    fastest,
    fit_line,
    measure_collectives,
    measure_contention,
)
from plugrad_distributed.planning.costs import ALGORITHMS
from plugrad_distributed.planning.measuring_overheads import measure_layers, measure_overheads
from plugrad_distributed.planning.overheads import middle
from tests.distributed.under_mpi import needs_mpi, run

LATENCY, BANDWIDTH = 3e-6, 2e9
SIZES = [10.0**n for n in range(2, 8)]


@pytest.mark.parametrize("ranks", [2, 3, 8, 1000])
def test_long_sums_go_round_a_ring_or_by_halves(ranks: int) -> None:
    size = 1e9
    call = Costs.of(LATENCY, BANDWIDTH).call("all_reduce", ranks, size)
    steps = min(2 * (ranks - 1), 2 * math.ceil(math.log2(ranks)))
    by_volume = 2 * (ranks - 1) / ranks * size / BANDWIDTH
    assert call.bandwidth == pytest.approx(by_volume)
    # Between two ranks, one exchange of everything is as long.
    assert call.latency == pytest.approx((1 if ranks == 2 else steps) * LATENCY)


def test_short_sums_double() -> None:
    call = Costs.of(LATENCY, BANDWIDTH).call("all_reduce", 64, 4)
    assert call.latency == pytest.approx(6 * LATENCY)
    assert call.bandwidth == pytest.approx(6 * 4 / BANDWIDTH)


def test_a_gather_and_a_scatter_cost_a_sum() -> None:
    costs = Costs.of(LATENCY, BANDWIDTH)
    parts = [costs.call(name, 16, 1e8).seconds for name in ("reduce_scatter", "all_gather")]
    assert sum(parts) == pytest.approx(costs.call("all_reduce", 16, 1e8).seconds)


def test_one_rank_pays_nothing() -> None:
    assert Costs.of(LATENCY, BANDWIDTH).call("all_reduce", 1, 1e9).seconds == 0.0


@pytest.mark.parametrize("collective", ALGORITHMS)
def test_a_fit_finds_the_line_that_was_given(collective: str) -> None:
    costs = Costs.of(LATENCY, BANDWIDTH)
    points = [
        Point(ranks, size, costs.call(collective, ranks, size).seconds)
        for ranks in (2, 3, 4)
        for size in SIZES
    ]
    line = fit_line(collective, points)
    assert line.latency == pytest.approx(LATENCY)
    assert line.per_byte == pytest.approx(1 / BANDWIDTH)


def test_a_fit_weighs_errors_by_the_time() -> None:
    # Absolute errors of the long message would hide the latency.
    points = [Point(2, size, LATENCY + size / BANDWIDTH) for size in SIZES[:-1]]
    points.append(Point(2, SIZES[-1], 1.5 * (LATENCY + SIZES[-1] / BANDWIDTH)))
    assert fit_line("send", points).latency == pytest.approx(LATENCY, rel=0.2)


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        # Faster where it should be slower: neither part is below zero.
        ([Point(2, 1e2, 2.0), Point(2, 1e6, 1.0)], "per_byte"),
        ([Point(2, 1e2, 1.0), Point(2, 1e3, 20.0)], "latency"),
    ],
)
def test_no_part_of_a_line_is_below_zero(points: list[Point], expected: str) -> None:
    line = fit_line("send", points)
    assert getattr(line, expected) == 0.0
    assert min(line) >= 0.0


def test_measured_groups_of_one_machine_are_taken_as_measured() -> None:
    measured = {
        name: [Point(2, s, 1e-3 + s * 1e-9) for s in SIZES]
        + [Point(4, s, 4 * (2e-3 + s * 1e-9)) for s in SIZES]
        for name in ALGORITHMS
    }
    costs = Costs.fitted(measured, cores=2, contention=1.0, copy=0.0, overlap=1.0)
    assert costs.near["send"] == pytest.approx(Line(1e-3, 1e-9))
    assert costs.call("send", 4, 1e6).seconds == pytest.approx(4 * 3e-3)
    # With a network in between the measurements say nothing.
    far = costs.with_network(1e-2, 1e9).call("send", 4, 1e6, far=True)
    assert far.seconds == pytest.approx(1e-2 + 1e-3)


def test_groups_that_share_a_network_have_a_part_of_it() -> None:
    costs = Costs.of(0.0, 1e9).with_network(0.0, 1e6)
    alone = costs.call("all_gather", 4, 1e6, far=True).seconds
    assert costs.call("all_gather", 4, 1e6, far=True, share=8).seconds == pytest.approx(8 * alone)


@pytest.mark.parametrize(
    ("ranks", "expected"), [(1, 1.0), (2, 1 + 0.3 / 3), (4, 1.3), (8, 2 * 1.3)]
)
def test_ranks_slow_each_other_down(ranks: int, expected: float) -> None:
    costs = Costs.of(0.0, 1e9, cores=4, contention=1.3)
    assert costs.slowdown(ranks) == pytest.approx(expected)


def test_costs_are_kept_in_files(tmp_path: Path) -> None:
    points = [Point(2, size, LATENCY + size / BANDWIDTH) for size in SIZES]
    measured = dict.fromkeys(ALGORITHMS, points)
    costs = Costs.fitted(measured, cores=2, contention=1.1, copy=1e-10, overlap=0.5, about="here")
    costs = costs.with_network(1e-6, 1e10)
    costs.save(tmp_path / "costs.json")
    assert Costs.load(tmp_path / "costs.json") == costs


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fit_line("alltoall", []), "collective must be one of all_reduce"),
        (lambda: fit_line("send", [Point(2, 1.0, 1.0)]), "points must have two sizes or more"),
        (
            lambda: fit_line("send", [Point(1, 1.0, 1.0), Point(2, 2.0, 1.0)]),
            "of 2 ranks or more",
        ),
        (lambda: Costs({}), "near must have a line for each collective"),
        (lambda: Costs.of(1e-6, 1e9, cores=0), "cores must be at least 1, got 0"),
        (lambda: Costs.of(1e-6, 1e9, overlap=2.0), "overlap must be at most 1, got 2.0"),
        (
            lambda: replace(Costs.of(1e-6, 1e9), late=-1.0),
            r"late must not be below 0, got -1\.0",
        ),
    ],
)
def test_wrong_costs_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_ranks_agree_on_what_was_measured() -> None:
    found = dist.run_ranks(lambda: measure_collectives((100, 3000), rounds=2), 3)
    assert found[0] == found[1] == found[2]
    assert {p.ranks for p in found[0].measured["send"]} == {2, 3}
    assert all(p.seconds > 0 for points in found[0].measured.values() for p in points)
    assert found[0].overlap <= 1 <= found[0].contention
    assert 0 <= found[0].waiting <= 1
    assert found[0].late >= 0
    overheads = found[0].overheads
    assert min(overheads.sent, overheads.received, overheads.moved, overheads.updated) > 0


def test_ranks_agree_on_how_they_slow_each_other_down() -> None:
    calls: list[int] = []
    found = dist.run_ranks(lambda: measure_contention(lambda: calls.append(1)), 2)
    assert found[0] == found[1] >= 1.0
    assert calls


def test_ways_to_spread_a_model_take_time() -> None:
    # DTensors take several calls of Python for each of a plain tensor; so do units.
    (found,) = dist.run_ranks(lambda: measure_overheads(dist.group.WORLD), 1)
    assert found.updated > 0
    for layers in dist.run_ranks(lambda: measure_layers(dist.group.WORLD), 2):
        assert layers.layer > 0
        assert layers.unit + layers.gathered > 0


def test_the_least_of_two_measurements_counts() -> None:
    one = replace(Costs.of(1e-6, 1e9), overheads=Overheads(layer=1.0, unit=2.0), add=1.0)
    other = replace(Costs.of(1e-6, 1e9), overheads=Overheads(layer=2.0, unit=1.0), add=2.0)
    points = {"send": [Point(2, 1.0, 3.0), Point(2, 2.0, 2.0)]}
    later = {"send": [Point(2, 1.0, 2.0), Point(2, 2.0, 3.0)]}
    lines = dict.fromkeys(ALGORITHMS, points["send"])
    laters = dict.fromkeys(ALGORITHMS, later["send"])
    one = replace(one, measured=lines, cores=2)
    found = fastest(one, replace(other, measured=laters, cores=2))
    # They are differences.
    assert found.overheads == other.overheads
    assert found.add == 1.0
    assert [p.seconds for p in found.measured["send"]] == [2.0, 2.0]


def test_the_middle_of_measured_overheads_counts() -> None:
    found = middle([Overheads(layer=layer, unit=9 - layer) for layer in (1.0, 2.0, 5.0)])
    assert found == Overheads(layer=2.0, unit=7.0)


def test_ranks_that_communicate_often_compute_in_turns() -> None:
    costs = replace(Costs.of(0.0, 1e30, cores=2, contention=1.5), waiting=0.25)
    assert costs.slowdown_in_turns(2) == costs.slowdown(2) == 1.5
    # The first two while two sleep, the others while two wait.
    assert costs.slowdown_in_turns(4) == 1.5 + 1.5 * 1.25
    # The last one shares memory with half a rank: two that wait.
    assert costs.slowdown_in_turns(3) == 1.5 + 1.25


def test_overheads_below_zero_are_refused() -> None:
    with pytest.raises(ValueError, match=r"unit must not be below 0, got -1\.0"):
        Overheads(unit=-1.0)


def test_one_process_has_nothing_to_measure() -> None:
    with pytest.raises(ValueError, match="needs 2 processes or more"):
        dist.run_ranks(measure_collectives, 1)


PROGRAM = """
import plugrad.distributed as dist
from plugrad.distributed.simulate import Costs, measure_collectives
from tests.distributed.under_mpi import report

dist.init_process_group()
costs = measure_collectives((100, 10_000), rounds=2)
report([len(points) for points in costs.measured.values()])
dist.destroy_process_group()
"""


@needs_mpi
def test_processes_of_mpi_are_measured(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    outcome = run(program, 2, folder=tmp_path)
    assert outcome.code == 0, outcome.err
    assert outcome.value(0) == outcome.value(1) == [2] * 5
