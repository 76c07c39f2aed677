"""The results of a run of the kit for a backend: counts by operator, topic and level."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import plugrad
from plugrad.dispatch.operator import all_operators
from plugrad.plugins import get_manager
from plugrad.plugins.kernels.conflicts import kernels_of_others
from plugrad.testing.conformance.kit.subject import Subject
from plugrad.testing.conformance.kit.trials import Selection

# The beginning of the reason for skipping a test of a missing operator.
MISSING: Final = "missing: "
LEVELS: Final = ("core", "full")

# Without one of these a run was one in part.
TOPICS: Final = (
    "operators", "values", "gradients", "double gradients", "forward mode", "layouts", "in place",
    "views", "errors", "conversions", "dlpack", "generators", "queues", "threads", "memory",
    "training", "printing",
)  # fmt: skip
FORMAT: Final = 1


@dataclass(frozen=True)
class Outcome:
    """One test: its subject and its result.

    Attributes:
        result: "passed", "failed" or "skipped".
        reason: why it failed or was skipped, in one line.
    """

    test: str
    topic: str
    operator: str
    level: str
    reached: tuple[str, ...]
    result: str
    reason: str = ""
    seconds: float = 0.0


@dataclass
class Count:
    """How many tests went how."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def add(self, result: str) -> None:
        setattr(self, result, getattr(self, result) + 1)

    @property
    def total(self) -> int:
        return self.passed + self.failed + self.skipped


@dataclass
class OperatorRecord:
    """One operator on the backend.

    Attributes:
        kind: "native", "derived", "decomposed" or "missing", as `plugrad ops` says.
        needs: the kernels that would make a missing one available.
        count: the outcomes of its own tests.
        within: the number of other operators' tests that used it.
    """

    name: str
    level: str
    kind: str
    needs: tuple[str, ...] = ()
    count: Count = field(default_factory=Count)
    within: int = 0


@dataclass
class Certificate:
    """The results for one backend at the end of a run.

    Attributes:
        facts: name, distribution, version, capabilities and so on, to be shown.
        whole: whether all tests of the kit were run; a part of them certifies nothing.
        level: the level that was requested; "full" if nothing was left out.
    """

    backend: str
    facts: dict[str, Any]
    level: str
    selected: tuple[str, ...]
    operators: dict[str, OperatorRecord]
    topics: dict[str, Count] = field(default_factory=dict)
    levels: dict[str, Count] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    whole: bool = False

    @classmethod
    def begin(cls, subject: Subject, selection: Selection) -> Certificate:
        """One without any test counted yet."""
        operators = {}
        for op in sorted(all_operators(), key=lambda op: op.qualified_name):
            if op.namespace in subject.foreign and not selection.names:
                continue
            known = subject.availability[op.qualified_name]
            operators[op.qualified_name] = OperatorRecord(
                op.qualified_name, op.level, known.kind, tuple(known.missing)
            )
        return cls(
            subject.name,
            _facts(subject),
            "core" if selection.level == "core" else "full",
            selection.names,
            operators,
            levels={level: Count() for level in LEVELS},
        )

    def count(self, outcome: Outcome) -> None:
        """Take in how a test went."""
        self.outcomes.append(outcome)
        self.topics.setdefault(outcome.topic, Count()).add(outcome.result)
        self.levels[outcome.level].add(outcome.result)
        record = self.operators.get(outcome.operator)
        if record is not None:
            record.count.add(outcome.result)
            if outcome.result == "skipped" and outcome.reason.startswith(MISSING):
                # Its decomposition reaches an operator that was not listed as part of it.
                record.kind = "missing"
                record.needs = (outcome.reason.removeprefix(MISSING).removeprefix("plugrad::"),)
        for name in outcome.reached:
            if name != outcome.operator and name in self.operators:
                self.operators[name].within += 1

    def decide(self, *, whole: bool) -> None:
        """The run is over; `whole` if nothing of it was left out."""
        self.whole = whole and not self.selected and set(TOPICS) <= set(self.topics)

    def missing(self, level: str) -> list[str]:
        """Operators of plugrad, up to a level, that the backend cannot compute."""
        return [
            name
            for name, record in self.operators.items()
            if record.kind == "missing"
            and name.startswith("plugrad::")
            and (level == "full" or record.level == "core")
        ]

    def certified(self, level: str) -> bool:
        """Whether a level is reached: all of it was tried, nothing failed, nothing is missing."""
        if not self.whole or (level == "full" and self.level != "full"):
            return False
        levels = LEVELS[: LEVELS.index(level) + 1]
        return not self.missing(level) and not any(self.levels[name].failed for name in levels)

    def verdict(self, level: str) -> str:
        """ "certified", or why not."""
        if self.certified(level):
            return "certified"
        if not self.whole:
            return "not certified: not all tests were run"
        if level == "full" and self.level != "full":
            return "not tried"
        failed = sum(self.levels[name].failed for name in LEVELS[: LEVELS.index(level) + 1])
        missing = len(self.missing(level))
        reasons = []
        if failed:
            reasons.append(f"{failed} {'test' if failed == 1 else 'tests'} failed")
        if missing:
            noun = "operator is" if missing == 1 else "operators are"
            reasons.append(f"{missing} {noun} missing")
        return f"not certified: {', '.join(reasons)}"

    @property
    def total(self) -> Count:
        """All tests."""
        return _sum(self.topics.values())

    def failures(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.result == "failed"]

    def skips(self) -> dict[str, int]:
        """Why tests were skipped, and how many for each reason, most first."""
        found: dict[str, int] = {}
        for outcome in self.outcomes:
            if outcome.result == "skipped":
                found[outcome.reason] = found.get(outcome.reason, 0) + 1
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON values; `format` counts up when a reader would have to change."""
        return {
            "format": FORMAT,
            **self.facts,
            "complete": self.whole,
            "selected_operators": list(self.selected),
            "levels": {
                level: {
                    "verdict": self.verdict(level),
                    "certified": self.certified(level),
                    **_numbers(self.levels[level]),
                    "missing_operators": [
                        name for name in self.missing("full") if self.operators[name].level == level
                    ],
                }
                for level in LEVELS
            },
            "topics": {topic: _numbers(count) for topic, count in self.topics.items()},
            "operators": [
                {
                    "name": record.name,
                    "level": record.level,
                    "kind": record.kind,
                    "needs": list(record.needs),
                    **_numbers(record.count),
                    "within_others": record.within,
                }
                for record in self.operators.values()
            ],
            "failures": [
                {
                    "test": outcome.test,
                    "topic": outcome.topic,
                    "operator": outcome.operator,
                    "level": outcome.level,
                    "reason": outcome.reason,
                }
                for outcome in self.failures()
            ],
            "skipped": self.skips(),
        }


def _facts(subject: Subject) -> dict[str, Any]:
    plugin = get_manager().backends().get(subject.name)
    return {
        "backend": subject.name,
        "distribution": "" if plugin is None else plugin.distribution,
        "version": "" if plugin is None else plugin.version,
        "plugrad": plugrad.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "api_version": ".".join(str(part) for part in subject.backend.api_version),
        "capabilities": sorted(subject.capabilities),
        "dtypes": list(subject.dtypes),
        "devices": [str(device) for device in subject.devices],
        "array_type": _name_of(subject.backend.array_type),
        "kernels": _replaced(subject),
    }


def _replaced(subject: Subject) -> dict[str, list[str]]:
    """The core's operators that other packages' kernels compute, by package."""
    found = {
        owner: [name for name in names if "::" not in name]
        for owner, names in kernels_of_others(subject.active).items()
    }
    return {owner: names for owner, names in found.items() if names}


def _name_of(cls: Any) -> str:
    return f"{getattr(cls, '__module__', '')}.{getattr(cls, '__qualname__', cls)}"


def _numbers(count: Count) -> dict[str, int]:
    return {"passed": count.passed, "failed": count.failed, "skipped": count.skipped}


def _sum(counts: Iterable[Count]) -> Count:
    total = Count()
    for count in counts:
        total.passed += count.passed
        total.failed += count.failed
        total.skipped += count.skipped
    return total
