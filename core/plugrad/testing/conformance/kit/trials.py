"""Trials: one sample of one operator, with its results on the CPU."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import plugrad
from plugrad.dispatch.operator import Operator, find_operator
from plugrad.errors import OperatorNotFoundError
from plugrad.testing.cases import (
    D,
    OpCase,
    OpError,
    OpSample,
    T,
    all_cases,
    cases_of,
    flatten,
    resolve,
    seed_of,
)
from plugrad.testing.conformance.kit.subject import DeviceArguments, Subject, by_own_kernels


@dataclass(frozen=True)
class Trial:
    """One call to make on a backend and on the CPU.

    Attributes:
        label: its name among the tests.
        operator: the operator that it is about.
        operators: all that the function calls itself, by qualified name.
        reached: all that are called in the course of it on the CPU.
        results: names of the dtypes of its results, where it is run in float64.
        dtype: a dtype's name, instead of the backend's widest floating point dtype.
    """

    case: OpCase
    sample: OpSample
    label: str
    operator: str
    operators: tuple[str, ...]
    reached: tuple[str, ...] = field(repr=False)
    results: tuple[str, ...] = field(default=(), repr=False)
    dtype: str | None = None

    @property
    def level(self) -> str:
        return level_of(*self.operators)

    @property
    def fixed_dtypes(self) -> set[str]:
        """The dtypes that the sample itself names."""
        return set(_dtypes_in((self.sample.args, self.sample.kwargs)))

    @property
    def has_leaf(self) -> bool:
        """Whether an argument of the dtype under test requires grad."""
        return any(spec.requires_grad and spec.dtype is None for spec in self.tensors())

    @property
    def goes_to_host(self) -> bool:
        """Whether its result is on the CPU, wherever its arguments are."""
        given = (self.sample.args, self.sample.kwargs)
        return self.case.op == "Tensor.cpu" or any(leaf == "cpu" for leaf in _leaves_in(given))

    def tensors(self) -> list[T]:
        """The descriptors of its tensors."""
        return [
            spec
            for spec in _leaves_in((self.sample.args, self.sample.kwargs))
            if isinstance(spec, T)
        ]

    def in_dtype(self, dtype: str) -> Trial:
        return replace(self, dtype=dtype, label=f"{self.label}-{dtype}")

    def seed(self) -> int:
        return seed_of(self.case, self.sample)

    def run(self, made: DeviceArguments) -> tuple[Any, Any]:
        """The result, and the arguments it was computed with."""
        args = made.make(tuple(self.sample.args))
        kwargs = made.make(dict(self.sample.kwargs))
        with warnings.catch_warnings(), made.device:
            warnings.simplefilter("ignore")
            return resolve(self.case.op)(*args, **kwargs), (args, kwargs)

    def arguments(self, subject: Subject, **options: Any) -> DeviceArguments:
        return DeviceArguments(
            self.dtype or subject.floating, self.seed(), subject.device, **options
        )

    def expected_arguments(self, subject: Subject, **options: Any) -> DeviceArguments:
        return DeviceArguments(self.dtype or subject.floating, self.seed(), "cpu", **options)


def namespace_of(operator: str) -> str:
    """The namespace of an operator's qualified name."""
    namespace, separator, _ = operator.partition("::")
    return namespace if separator else "plugrad"


def level_of(*operators: str) -> str:
    """ "core" if all these operators are of that level, else "full"."""
    found = [find_operator(name) for name in operators]
    return "core" if all(op is None or op.level == "core" for op in found) else "full"


class Selection:
    """The cases of a run.

    Args:
        level: "core" leaves out operators of other levels.
        operators: names of operators; none means all.
        foreign: namespaces whose operators are left out when all operators are selected.

    Attributes:
        problems: cases that could not be tried, and why.
    """

    def __init__(
        self,
        level: str | None = None,
        operators: Iterable[str] = (),
        foreign: Iterable[str] = (),
    ) -> None:
        self.level = level
        self.names = tuple(operators)
        self.foreign = frozenset(foreign)
        self.problems: list[str] = []

    @functools.cached_property
    def cases(self) -> list[OpCase]:
        if not self.names:
            return [case for case in all_cases() if namespace_of(case.op) not in self.foreign]
        found = {id(case): case for name in self.names for case in cases_of(name)}
        return list(found.values())

    @functools.cached_property
    def trials(self) -> list[Trial]:
        """Every sample of every case, tried on the CPU, where all of them work."""
        found: list[Trial] = []
        with by_own_kernels():
            for case in self.cases:
                trials, problems = tried(case)
                found += trials
                self.problems += problems
        wanted = [trial for trial in found if self.level != "core" or trial.level == "core"]
        return _with_labels_of_their_own(wanted)

    def trials_on(self, subject: Subject) -> list[Trial]:
        """Those that a backend claims to be able to do."""
        return [
            trial
            for trial in self.trials
            if subject.has(*trial.operators)
            and trial.fixed_dtypes | set(trial.results) - {"float64"} <= set(subject.dtypes)
            and not (trial.goes_to_host and subject.name != "cpu")
            and (bool(self.names) or namespace_of(trial.operator) not in subject.foreign)
        ]

    def in_each_dtype(self, subject: Subject) -> Iterator[list[Trial]]:
        """For each case and each dtype except the widest, its trials."""
        for group in grouped(self.trials_on(subject)):
            for dtype in group[0].case.dtypes:
                if dtype in subject.dtypes and dtype != subject.floating:
                    yield [trial.in_dtype(dtype) for trial in group]

    def errors(self, subject: Subject) -> Iterator[tuple[str, OpCase, OpError, str]]:
        """Calls that must fail: label, case, error, operator."""
        known = {id(trial.case): trial.operator for trial in self.trials_on(subject)}
        for case in self.cases:
            operator = known.get(id(case))
            if operator is None:
                continue
            for index, error in enumerate(case.errors):
                named = set(_dtypes_in((error.sample.args, error.sample.kwargs)))
                if named <= set(subject.dtypes):
                    label = f"{case.op}-{error.sample.name or index}"
                    yield label, case, error, operator


# Cases that were tried on the CPU in this process, by identity; kept, so that it stays theirs.
_tried: dict[int, tuple[OpCase, list[Trial], list[str]]] = {}


def tried(case: OpCase) -> tuple[list[Trial], list[str]]:
    """A case's samples, run on the CPU, and the errors of those that cannot run."""
    if id(case) not in _tried:
        found: list[Trial] = []
        problems: list[str] = []
        for index, sample in enumerate(case.all_samples()):
            label = f"{case.op}-{sample.name or index}"
            try:
                found.append(try_out(label, case, sample))
            except OperatorNotFoundError as error:
                problems.append(f"{label}: the CPU, which is compared with, lacks it: {error}")
            except Exception as error:
                problems.append(f"{label}: {type(error).__name__} on the CPU: {error}")
        _tried[id(case)] = (case, found, problems)
    _, trials, problems = _tried[id(case)]
    return trials, problems


def try_out(label: str, case: OpCase, sample: OpSample) -> Trial:
    """Run a sample on the CPU in float64, and note which operators it calls."""
    trial = Trial(case, sample, label, "", (), ())
    made = DeviceArguments("float64", trial.seed(), "cpu")
    args, kwargs = made.make(tuple(sample.args)), made.make(dict(sample.kwargs))
    function = resolve(case.op)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with by_own_kernels(), plugrad.record_dispatch_trace() as events:
            result = function(*args, **kwargs)
    calls = [event for event in events if event.kind == "call"]
    direct = tuple(dict.fromkeys(event.op for event in calls if event.depth == 0))
    reached = tuple(dict.fromkeys(event.op for event in events))
    dtypes = tuple({tensor.dtype.name: None for tensor in tensors_of(result)})
    return replace(
        trial,
        operator=_subject_of(case, direct),
        operators=direct,
        reached=reached,
        results=dtypes,
    )


def grouped(trials: Iterable[Trial]) -> list[list[Trial]]:
    """Trials by case."""
    groups: dict[int, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(id(trial.case), []).append(trial)
    return list(groups.values())


def operator_of(trial: Trial) -> Operator | None:
    return find_operator(trial.operator)


def specs_replaced(sample: OpSample, change: Callable[[T], T]) -> OpSample:
    """The sample with every tensor's descriptor changed."""

    def walk(value: Any) -> Any:
        if isinstance(value, T):
            return change(value)
        if isinstance(value, (list, tuple)):
            return type(value)([walk(item) for item in value])
        if isinstance(value, dict):
            return {key: walk(item) for key, item in value.items()}
        return value

    return OpSample(walk(tuple(sample.args)), walk(dict(sample.kwargs)), sample.name)


def _with_labels_of_their_own(trials: Iterable[Trial]) -> list[Trial]:
    """A number distinguishes trials of several cases of one operator."""
    seen: dict[str, int] = {}
    made = []
    for trial in trials:
        count = seen[trial.label] = seen.get(trial.label, 0) + 1
        made.append(trial if count == 1 else replace(trial, label=f"{trial.label}.{count}"))
    return made


def _subject_of(case: OpCase, operators: tuple[str, ...]) -> str:
    """Which of the operators a case is about: the one of its name, else the first."""
    name = case.op.rpartition("::")[2].rpartition(".")[2]
    for qualified in operators:
        if qualified.partition("::")[2].partition(".")[0] == name:
            return qualified
    return operators[0] if operators else case.op


def _leaves_in(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves_in(item)
    else:
        yield value


def _dtypes_in(value: Any) -> Iterator[str]:
    for leaf in _leaves_in(value):
        if isinstance(leaf, (T, D)):
            name = leaf.dtype if isinstance(leaf, T) else leaf.name
            if name is not None:
                yield name


def tensors_of(result: Any) -> list[Any]:
    """The tensors of a result, in order."""
    return [leaf for leaf in flatten(result) if isinstance(leaf, plugrad.Tensor)]
