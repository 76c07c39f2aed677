"""Random stress tests of the installed packages, until time is up: `make torture MINUTES=5`.

Prints a program for each finding. The exit code is 1 if there was one, except with `--report`.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.torture.families import Family, all_families
from tests.torture.runner import Group, Runner, core_kind


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    add = parser.add_argument
    add("--minutes", type=float, default=5.0, help="how long, in all (default: 5)")
    add("--cases", type=int, default=0, help="so many cases of each family, however long it takes")
    add("--seed", type=int, default=None, help="repeats a run; by default a new one")
    add("--only", nargs="+", metavar="FAMILY", default=[], help="only these families")
    add("--case", metavar="FAMILY:SEED", help="one case, in this process")
    add("--jobs", type=int, default=os.cpu_count() or 1, help="worker processes (default: cores)")
    add(
        "--report", nargs="+", metavar="FAMILY", default=[],
        help="show findings of these families, but do not fail for them, unless a process ends",
    )  # fmt: skip
    add("--log", type=Path, help="a file for findings and figures, one JSON object a line")
    return parser.parse_args(arguments)


def chosen(names: Sequence[str]) -> list[Family]:
    families = all_families()
    unknown = sorted(set(names) - {family.name for family in families})
    if unknown:
        known = ", ".join(family.name for family in families)
        sys.exit(f"--only {' '.join(unknown)}: expected some of {known}")
    return [family for family in families if not names or family.name in names]


def one_case(text: str) -> int:
    name, _, seed = text.partition(":")
    (family,) = chosen([name])
    finding = family.run_case(int(seed))
    print("no finding" if finding is None else f"{finding.summary}\n\n{finding.program}")
    return finding is not None


class Report:
    """Prints findings and progress; writes the log."""

    def __init__(self, log: Path | None) -> None:
        self.log = log.open("a") if log else None
        self.terminal = sys.stdout.isatty()
        self.started = self.last = time.monotonic()

    def note(self, **values: object) -> None:
        if self.log:
            print(json.dumps(values), file=self.log, flush=True)

    def show(self, group: Group) -> None:
        finding = group.finding
        line = "\r\033[K" if self.terminal else ""
        print(f"{line}==> finding: {finding.summary}")
        print(f"    (case {group.family.name}:{group.seed})")
        print("".join(f"    | {text}\n" for text in finding.program.splitlines()), flush=True)
        self.note(
            family=group.family.name,
            seed=group.seed,
            group=finding.key,
            summary=finding.summary,
            program=finding.program,
        )

    def tick(self, runner: Runner) -> None:
        now = time.monotonic()
        if now - self.last < (0.5 if self.terminal else 30.0):
            return
        self.last = now
        cases = ", ".join(f"{t.family.name} {t.cases}" for t in runner.tallies if t.cases)
        text = f"{now - self.started:4.0f} s  findings {len(runner.groups)}  cases: {cases}"
        print(f"\r\033[K{text}" if self.terminal else text, end="" if self.terminal else "\n")
        sys.stdout.flush()

    def summary(self, runner: Runner) -> None:
        print("\r\033[K" if self.terminal else "", end="")
        for tally in runner.tallies:
            rate = tally.cases / tally.seconds if tally.seconds else 0.0
            counts = ", ".join(f"{name} {number}" for name, number in tally.counts.items())
            found = f"{len(tally.groups)} groups of findings" if tally.groups else "no finding"
            more = f" ({counts})" if counts else ""
            done = f"{tally.cases:9} cases, {rate:.0f} a second of one core"
            print(f"{tally.family.name:14} {done}: {found}{more}")
            self.note(
                family=tally.family.name,
                cases=tally.cases,
                seconds=round(tally.seconds, 1),
                counts=tally.counts,
                groups=tally.groups,
            )


def main() -> int:
    options = parse()
    if options.case:
        return one_case(options.case)
    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    families = chosen(options.only)
    report = Report(options.log)
    import plugrad

    print(f"torture: plugrad {plugrad.__version__}, {core_kind()} core, SEED={seed}", flush=True)
    report.note(seed=seed, core=core_kind(), minutes=options.minutes, cases=options.cases)
    for family in families:
        if family.missing:
            print(f"{family.name}: left out, {', '.join(family.missing)} is not installed")
    usable = [family for family in families if not family.missing]
    runner = Runner(usable, seed, options.jobs, show=report.show, tick=report.tick)
    try:
        runner.run(options.minutes, options.cases)
    except KeyboardInterrupt:
        print("interrupted")
    report.summary(runner)
    if runner.groups:
        print(f"{len(runner.groups)} findings; SEED={seed} repeats the run")
    reported = {family.name for family in chosen(options.report)} if options.report else set()
    return any(
        group.family.name not in reported or group.finding.ends_process
        for group in runner.groups.values()
    )


if __name__ == "__main__":
    sys.exit(main())
