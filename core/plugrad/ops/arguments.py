"""Checks and converts the arguments of a call through `plugrad.ops`, by the operator's schema."""

from __future__ import annotations

# Interpreted: such calls are few, and mostly go to kernels in Python.
from typing import Any, Final, NoReturn

from plugrad.dispatch.binding import default_of
from plugrad.dispatch.operator import Operator, find_operator
from plugrad.dispatch.schema import Argument, SchemaType
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.arguments import type_name
from plugrad.tensor.calls.kernel_failures import explained
from plugrad.tensor.calls.overloads import NoFit, convert
from plugrad.tensor.calls.promotion import is_scalar
from plugrad.tensor.creation.from_data import tensor

# PyTorch's names of the types, where they are not the schema's. A dtype is a number there.
_TYPE_NAMES: Final = {
    "Scalar": "number",
    "ScalarType": "int",
    "Layout": "int",
    "MemoryFormat": "int",
}


class ArgumentMismatch(Exception):
    """The arguments do not fit the schema."""


def checked_arguments(
    op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """All arguments in schema order, converted to the schema's types, defaults filled in.

    An operator that promotes its operands takes a number in place of a tensor.

    Raises:
        RuntimeError: they do not fit; the message names the argument and shows the schema.
    """
    try:
        return fit_arguments(op, args, kwargs, True)
    except ArgumentMismatch as error:
        raise RuntimeError(str(error)) from None


def fit_arguments(
    op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], numbers: bool
) -> tuple[Any, ...]:
    """`checked_arguments`, with numbers for tensors only if `numbers` is true.

    Raises:
        ArgumentMismatch: they do not fit.
    """
    arguments = op.schema.arguments
    positional = sum(1 for argument in arguments if not argument.kwarg_only)
    if len(args) > positional:
        raise ArgumentMismatch(
            f"{_name(op)}() expected at most {positional} argument(s) but received "
            f"{len(args)} argument(s). Declaration: {_declaration(op)}"
        )
    values: list[Any] = []
    used = 0
    for position, argument in enumerate(arguments):
        if not argument.kwarg_only and position < len(args):
            if argument.name in kwargs:
                raise ArgumentMismatch(
                    f"{_name(op)}() got multiple values for argument '{argument.name}'. "
                    f"Declaration: {_declaration(op)}"
                )
            values.append(_converted(op, argument, position, args[position], numbers))
        elif argument.name in kwargs:
            used += 1
            values.append(_converted(op, argument, position, kwargs[argument.name], numbers))
        elif argument.has_default:
            values.append(default_of(argument))
        else:
            raise ArgumentMismatch(
                f"{_name(op)}() is missing value for argument '{argument.name}'. "
                f"Declaration: {_declaration(op)}"
            )
    if used < len(kwargs):
        names = {argument.name for argument in arguments}
        unknown = next(name for name in kwargs if name not in names)
        raise ArgumentMismatch(
            f"Unknown keyword argument '{unknown}' for operator '{_name(op)}'. Schema: "
            f"{_declaration(op)}"
        )
    return tuple(values)


def call_with_numbers(op: Operator, values: tuple[Any, ...]) -> Any:
    """Call an operator with arguments from `checked_arguments`, which may have numbers for
    tensors."""
    arguments = op.schema.arguments
    for argument, value in zip(arguments, values, strict=True):
        if argument.type.base == "Tensor" and is_scalar(value):
            break
    else:
        try:
            return op.call(values)
        except (TypeError, AssertionError) as error:
            found = explained(op, values, error) if op.namespace == "plugrad" else None
            if found is None:
                raise
            raise found from None
    scalar = find_operator(f"{op.namespace}::{op.name}.Scalar")
    if scalar is not None and len(scalar.schema.arguments) == len(values):
        pairs = list(zip(scalar.schema.arguments, values, strict=True))
        if all(isinstance(v, TensorBase) == (a.type.base == "Tensor") for a, v in pairs[:2]):
            return scalar.call(values)
    return op.call(
        tuple(
            tensor(value) if argument.type.base == "Tensor" and is_scalar(value) else value
            for argument, value in zip(arguments, values, strict=True)
        )
    )


def _converted(op: Operator, argument: Argument, position: int, value: Any, numbers: bool) -> Any:
    type = argument.type
    if type.base == "Tensor" and not type.is_list:
        if isinstance(value, TensorBase) or (value is None and type.optional):
            return value
        if value is None:
            raise ArgumentMismatch(
                "Expected a proper Tensor but got None (or an undefined Tensor in C++) for "
                f"argument #{position} '{argument.name}'"
            )
        if numbers and op.structure.startswith("binary") and is_scalar(value):
            return value
        _raise_mismatch(op, argument, position, value)
    if type.is_list and type.base in ("int", "float", "bool") and isinstance(value, list | tuple):
        value = [_number(type.base, item) for item in value]
        if type.base == "bool" and type.list_size and len(value) != type.list_size:
            raise ArgumentMismatch(
                f"Tried to convert a List with {len(value)} elements to a fixed-size array of size "
                f"{type.list_size}"
            )
    elif not type.is_list:
        value = _number(type.base, value)
    try:
        found = convert(value, type)
    except NoFit:
        _raise_mismatch(op, argument, position, value)
    except ValueError:
        if isinstance(value, int | list | tuple):
            _raise_mismatch(op, argument, position, value)
        raise
    if type.base == "Tensor" and not _are_tensors(value):
        # A tensor-like of another library; only public functions accept it.
        _raise_mismatch(op, argument, position, value)
    return found


def _number(base: str, value: Any) -> Any:
    """What PyTorch makes of a bool or of a tensor with one element where a number is requested."""
    if base not in ("int", "float", "bool"):
        return value
    if isinstance(value, TensorBase):
        if value.numel() != 1 or value.dtype.is_complex:
            return value
    elif not isinstance(value, bool) and not (base == "bool" and isinstance(value, int)):
        return value
    return {"int": int, "float": float, "bool": bool}[base](value)


def _are_tensors(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(item is None or isinstance(item, TensorBase) for item in value)
    return value is None or isinstance(value, TensorBase)


def type_words(type: SchemaType) -> str:
    """A schema's type as PyTorch names it in errors."""
    name = _TYPE_NAMES.get(type.base, type.base)
    if type.element_optional:
        name = f"Optional[{name}]"
    if type.is_list:
        name = f"List[{name}]"
    return f"Optional[{name}]" if type.optional else name


def _raise_mismatch(op: Operator, argument: Argument, position: int, value: Any) -> NoReturn:
    raise ArgumentMismatch(
        f"{_name(op)}() Expected a value of type '{type_words(argument.type)}' for argument "
        f"'{argument.name}' but instead found type '{type_name(value)}'.\n"
        f"Position: {position}\nValue: {_shown(value)}\nDeclaration: {_declaration(op)}"
    )


def _shown(value: Any) -> str:
    """A value's text, which may be long, or fail."""
    try:
        text = repr(value)
    except Exception as error:
        return f"<{type(error).__name__} in repr>"
    return text if len(text) < 1000 else f"{text[:1000]}..."


def _name(op: Operator) -> str:
    return f"{op.namespace}::{op.name}"


def _declaration(op: Operator) -> str:
    return f"{op.namespace}::{op.schema_text.removeprefix(op.namespace + '::')}"
