"""Makes the tests: a test function says what it runs on, and the kit generates tests from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from plugrad.testing.conformance.kit.subject import Subject
from plugrad.testing.conformance.kit.trials import Selection, Trial

F = TypeVar("F", bound=Callable[..., Any])

Values = Callable[[Subject, Selection], Iterable[Any]]


@dataclass(frozen=True)
class Item:
    """One value of a test's parameter that is not a trial.

    Attributes:
        label: its name among the tests.
        value: what the test gets.
        operator: the operator that it is about, if it is about one.
    """

    label: str
    value: Any
    operator: str = ""
    level: str = "core"


def each(name: str, values: Values) -> Callable[[F], F]:
    """Run a test for every one of `values(subject, selection)`, passed as the argument `name`."""

    def mark(function: F) -> F:
        vars(function)["plugrad_each"] = (name, values)
        return function

    return mark


def on_devices(subject: Subject, selection: Selection) -> list[Item]:
    """Every device of the backend."""
    return [Item(str(device), device) for device in subject.devices]


def in_dtypes(subject: Subject, selection: Selection) -> list[Item]:
    """Every dtype of the backend, by name."""
    return [Item(name, name) for name in subject.dtypes]


def rows(function: Callable[..., Any], subject: Subject, selection: Selection) -> list[Any]:
    """What a test function is run on: trials, lists of trials, items; or once, if it says nothing.

    A run for single operators leaves out tests that are about none.
    """
    given = vars(function).get("plugrad_each")
    if given is None:
        return [] if selection.names else [Item("", None)]
    found = list(given[1](subject, selection))
    if selection.names:
        selected = {trial.operator for trial in selection.trials}
        return [row for row in found if operator_in(row) in selected]
    return found


def operator_in(row: Any) -> str:
    """The operator that a row is about, or an empty string."""
    if isinstance(row, list):
        row = row[0]
    operator: str = row.operator
    return operator


def level_in(row: Any) -> str:
    if isinstance(row, list):
        return "core" if all(item.level == "core" for item in row) else "full"
    level: str = row.level
    return level


def reached_in(row: Any) -> tuple[str, ...]:
    """All operators that a row's call runs through."""
    if isinstance(row, list):
        return tuple({name: None for item in row for name in item.reached})
    return row.reached if isinstance(row, Trial) else ()


def label_in(row: Any) -> str:
    if isinstance(row, list):
        trial: Trial = row[0]
        return f"{trial.case.op}-{trial.dtype}"
    label: str = row.label
    return label


def value_in(row: Any) -> Any:
    return row.value if isinstance(row, Item) else row
