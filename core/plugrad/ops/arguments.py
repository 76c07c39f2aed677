"""Checks and converts the arguments of a call through `plugrad.ops`, by the operator's schema."""

from __future__ import annotations

# Interpreted: such calls are few, and mostly go to kernels in Python.
from typing import Any, NoReturn

from plugrad.dispatch.operator import Operator, default_of
from plugrad.dispatch.schema import Argument, SchemaType
from plugrad.tensor.arguments import type_name
from plugrad.tensor.base import TensorBase
from plugrad.tensor.overloads import NoFit, convert


def checked_arguments(
    op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """All arguments in schema order, converted to the schema's types, defaults filled in.

    The core's operators take what they are given: their kernels know how to treat a number in
    place of a tensor.

    Raises:
        RuntimeError: they do not fit; the message names the argument and shows the schema.
    """
    if op.namespace == "plugrad":
        return op.bind(args, kwargs)
    arguments = op.schema.arguments
    positional = sum(1 for argument in arguments if not argument.kwarg_only)
    if len(args) > positional:
        raise RuntimeError(
            f"{op.qualified_name}() expected at most {positional} argument(s) but received "
            f"{len(args)} argument(s). Declaration: {_declaration(op)}"
        )
    values: list[Any] = []
    used = 0
    for position, argument in enumerate(arguments):
        if not argument.kwarg_only and position < len(args):
            if argument.name in kwargs:
                raise RuntimeError(
                    f"{op.qualified_name}() got multiple values for argument '{argument.name}'. "
                    f"Declaration: {_declaration(op)}"
                )
            values.append(_converted(op, argument, position, args[position]))
        elif argument.name in kwargs:
            used += 1
            values.append(_converted(op, argument, position, kwargs[argument.name]))
        elif argument.has_default:
            values.append(default_of(argument))
        else:
            raise RuntimeError(
                f"{op.qualified_name}() is missing value for argument '{argument.name}'. "
                f"Declaration: {_declaration(op)}"
            )
    if used < len(kwargs):
        names = {argument.name for argument in arguments}
        unknown = next(name for name in kwargs if name not in names)
        raise RuntimeError(
            f"Unknown keyword argument '{unknown}' for operator '{op.qualified_name}'. Schema: "
            f"{_declaration(op)}"
        )
    return tuple(values)


def _converted(op: Operator, argument: Argument, position: int, value: Any) -> Any:
    if argument.type.base == "Tensor" and isinstance(value, TensorBase):
        if not argument.type.is_list:
            return value
        _raise_mismatch(op, argument, position, value)
    number = _number(argument.type, value)
    if number is not None:
        return number
    try:
        found = convert(value, argument.type)
    except NoFit:
        _raise_mismatch(op, argument, position, value)
    if argument.type.base == "Tensor" and not _are_tensors(value):
        # A tensor-like of another library, which only public functions know what to do with.
        _raise_mismatch(op, argument, position, value)
    return found


def _number(type: SchemaType, value: Any) -> int | float | None:
    """What PyTorch makes of a bool or of a tensor with one element where a number is asked for."""
    if type.is_list or type.base not in ("int", "float"):
        return None
    if isinstance(value, TensorBase):
        if value.numel() != 1 or value.dtype.is_complex:
            return None
    elif not isinstance(value, bool):
        return None
    return int(value) if type.base == "int" else float(value)


def _are_tensors(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(item is None or isinstance(item, TensorBase) for item in value)
    return value is None or isinstance(value, TensorBase)


def _raise_mismatch(op: Operator, argument: Argument, position: int, value: Any) -> NoReturn:
    raise RuntimeError(
        f"{op.qualified_name}() Expected a value of type '{argument.type}' for argument "
        f"'{argument.name}' but instead found type '{type_name(value)}'.\n"
        f"Position: {position}\nValue: {value!r}\nDeclaration: {_declaration(op)}"
    )


def _declaration(op: Operator) -> str:
    return f"{op.namespace}::{op.schema_text.removeprefix(op.namespace + '::')}"
