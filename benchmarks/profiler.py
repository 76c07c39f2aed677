"""The cost of profiling: a training step with and without, and a label without a profiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.libraries import libraries
from benchmarks.measure import PLUGRAD, TORCH, Budget, Effort, Row, interleave
from benchmarks.mlp_step import Problem, library_step

UNPROFILED = "unprofiled"
# Steps in one profile, so that its start and end do not matter.
STEPS = 4


def profiled(
    module: Any, step: Callable[[], object], steps: int, **options: bool
) -> Callable[[], object]:
    """`steps` steps in one profile. Events are built from records later, on demand."""
    profile = module.autograd.profiler.profile

    def run() -> None:
        with profile(**options):
            for _ in range(steps):
                step()

    return run


def repeated(step: Callable[[], object], steps: int) -> Callable[[], object]:
    def run() -> None:
        for _ in range(steps):
            step()

    return run


def run(effort: Effort) -> list[Row]:
    (own,) = [library for library in libraries() if library.name == PLUGRAD]
    rows: list[Row] = []
    for widths, batch, options, limit in (
        ((256, 512, 512, 10), 256, {}, 1.5),
        ((256, 512, 512, 10), 256, {"record_shapes": True, "profile_memory": True}, 1.5),
        ((256, 512, 512, 10), 256, {"with_stack": True}, None),
        ((4, 8, 8, 2), 8, {}, None),
    ):
        step = library_step(own, Problem.random(widths, batch))
        found = interleave(
            {
                PLUGRAD: profiled(own.module, step, STEPS, **options),
                UNPROFILED: repeated(step, STEPS),
            },
            effort,
            units=STEPS,
        )
        name = f"{'-'.join(map(str, widths))}, batch {batch}"
        chosen = f" with {', '.join(options)}" if options else ""
        rows.append(
            Row(
                "profiler",
                f"{name}, profiled{chosen}",
                "us per step",
                found,
                None if limit is None else Budget(limit, UNPROFILED),
            )
        )
    return [*rows, record_function_row(effort)]


def record_function_row(effort: Effort) -> Row:
    """An empty block, without a profiler."""
    blocks = 100
    contestants: dict[str, Callable[[], object]] = {}
    for library in libraries():
        if library.name in (PLUGRAD, TORCH):
            label = library.module.autograd.profiler.record_function

            def enter(label: Any = label) -> None:
                for _ in range(blocks):
                    with label("block"):
                        pass

            contestants[library.name] = enter
    return Row(
        "profiler",
        "record_function, nobody listens",
        "us per block",
        interleave(contestants, effort, units=blocks),
    )
