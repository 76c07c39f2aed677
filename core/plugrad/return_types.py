"""`plugrad.return_types`: the classes of several named results, such as the results of `max`."""

from __future__ import annotations

# Interpreted: a function that is compiled does not become a method of a class made at run time.
from collections import namedtuple
from typing import Any, Final

from plugrad._printed_name import printed_name
from plugrad.dispatch.families import load_family_of
from plugrad.dispatch.operator import Operator, all_operators, declared_operators

_classes: Final[dict[tuple[str, tuple[str, ...]], Any]] = {}

# mypy requires the literal names of a namedtuple; these come from schemas.
_namedtuple: Final[Any] = namedtuple


def result_type_of(op: Operator) -> Any:
    """The class of an operator's named results; None for one result, or without names."""
    names = [item.name for item in op.schema.returns if item.name is not None]
    if len(names) < max(len(op.schema.returns), 2) or op.name.startswith(("_", "native_")):
        return None
    return result_type(op.name, tuple(names))


def result_type(name: str, fields: tuple[str, ...]) -> Any:
    """The class of that name and these fields: the same one every time."""
    found = _classes.get((name, fields))
    if found is None:
        found = _classes.setdefault((name, fields), _new_class(name, fields))
    return found


def _new_class(name: str, fields: tuple[str, ...]) -> Any:
    plain = _namedtuple(name, fields)
    count = len(fields)

    def new(cls: Any, *results: Any) -> Any:
        """Named results from one sequence, or one argument for each."""
        if len(results) == count:
            return tuple.__new__(cls, results)
        if len(results) == 1 and hasattr(results[0], "__iter__"):
            given = tuple(results[0])
            if len(given) == count:
                return tuple.__new__(cls, given)
        raise TypeError(
            f"plugrad.return_types.{name}() takes a sequence of {count} results, or that many "
            f"arguments; got {', '.join(type(item).__name__ for item in results) or 'none'}"
        )

    def text(self: Any) -> str:
        """The results one below the other, as PyTorch prints them."""
        inside = ",\n".join(f"{field}={value!r}" for field, value in zip(fields, self, strict=True))
        return f"{printed_name()}.return_types.{name}(\n{inside})"

    def reduced(self: Any) -> Any:
        return (_rebuild, (name, fields, tuple(self)))

    body = {
        "__module__": __name__,
        "__qualname__": name,
        "__slots__": (),
        "__new__": new,
        "__repr__": text,
        "__reduce__": reduced,
        "n_fields": count,
        "n_sequence_fields": count,
        "n_unnamed_fields": 0,
    }
    return type(name, (plain,), body)


def _rebuild(name: str, fields: tuple[str, ...], results: tuple[Any, ...]) -> Any:
    """What pickle and copy call."""
    return result_type(name, fields)(results)


def __getattr__(name: str) -> Any:
    load_family_of(f"plugrad::{name}")
    for op in declared_operators():
        if op.name == name and op.namespace == "plugrad":
            found = result_type_of(op)
            if found is not None:
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    kinds = [result_type_of(op) for op in all_operators() if op.namespace == "plugrad"]
    return sorted({kind.__name__ for kind in kinds if kind is not None})
