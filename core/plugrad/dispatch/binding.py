"""The arguments of a call, in the order of its operator's schema."""

from __future__ import annotations

from typing import Any, Final

from plugrad.device import as_device
from plugrad.dispatch.schema import Argument, FunctionSchema
from plugrad.dtype import dtype_by_name
from plugrad.memory_format import memory_format_by_name

# Schemas name default dtypes as C does.
DTYPE_NAMES: Final = {"long": "int64", "int": "int32", "float": "float32", "double": "float64"}


def default_of(argument: Argument) -> Any:
    """An argument's default as a kernel expects it: `int[2] stride=1` means (1, 1)."""
    default = argument.default
    size = argument.type.list_size
    if argument.type.is_list and size is not None and isinstance(default, int):
        return (default,) * size
    if argument.type.base == "ScalarType" and isinstance(default, str):
        return dtype_by_name(DTYPE_NAMES.get(default, default))
    if argument.type.base == "Device" and isinstance(default, str):
        return as_device(default)
    if argument.type.base == "MemoryFormat" and isinstance(default, str):
        return memory_format_by_name(default)
    return default


def bind(
    name: str,
    schema: FunctionSchema,
    schema_text: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[Any, ...]:
    """All arguments in the order of a schema, defaults filled in.

    Raises:
        TypeError: as Python would raise, with the operator's name and schema.
    """
    values: list[Any] = []
    positional = 0
    used = 0
    for argument in schema.arguments:
        if not argument.kwarg_only and positional < len(args):
            if argument.name in kwargs:
                raise TypeError(f"{name}() got multiple values for argument '{argument.name}'")
            values.append(args[positional])
            positional += 1
        elif argument.name in kwargs:
            values.append(kwargs[argument.name])
            used += 1
        elif argument.has_default:
            values.append(default_of(argument))
        else:
            raise TypeError(
                f"{name}() missing required argument '{argument.name}' (schema: {schema_text})"
            )
    if positional < len(args):
        raise TypeError(
            f"{name}() takes {positional} positional arguments but {len(args)} "
            f"were given (schema: {schema_text})"
        )
    if used < len(kwargs):
        names = {argument.name for argument in schema.arguments}
        unknown = next((given for given in kwargs if given not in names), "")
        raise TypeError(
            f"{name}() got an unexpected keyword argument '{unknown}' (schema: {schema_text})"
        )
    return tuple(values)
