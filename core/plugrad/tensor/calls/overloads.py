"""Choosing among an operator's overloads at run time, as PyTorch's argument parser does.

Each overload's signature is tried in order; the first that all arguments fit is called. If none
fits, the error lists them all.
"""

from __future__ import annotations

import operator
from typing import Any, Final

from plugrad.device import Device, as_device
from plugrad.dispatch.binding import default_of
from plugrad.dispatch.operator import Operator
from plugrad.dispatch.schema import Argument, FunctionSchema, SchemaType
from plugrad.dtype import DType
from plugrad.memory_format import MemoryFormat
from plugrad.tensor.aliasing.overlap import check_out
from plugrad.tensor.base import TensorBase, ndim_of, needs_grad
from plugrad.tensor.calls.arguments import (
    MISSING,
    OVERFLOW,
    check_scalar_size,
    dtype_argument,
    float_argument,
    is_index,
    is_length,
    is_too_large,
    require_grad,
    type_name,
)
from plugrad.tensor.calls.memory_options import check_memory
from plugrad.tensor.calls.outputs import compute_into
from plugrad.tensor.calls.overridable import (
    OVERRIDES,
    PROCEED,
    accept_foreign,
    override_overloaded,
    stand_in,
)
from plugrad.tensor.calls.promotion import is_scalar

# What functions that make tensors take besides the arguments of their operators.
_OPTIONS: Final = ("layout", "pin_memory", "requires_grad")


class NoFit(Exception):
    """An argument does not fit a parameter."""


def overload_table(parts: list[Any]) -> tuple[tuple[Operator, Any], ...]:
    """Operators with the functions that call them, from a list of both in turns: for a tuple of
    tuples mypyc writes several lines of C per value."""
    return tuple(zip(parts[::2], parts[1::2], strict=True))


def call_overload(
    name: str,
    overloads: tuple[tuple[Operator, Any], ...],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    method: bool = False,
) -> Any:
    """Call the first overload that the arguments fit.

    With `method`, the call is of a Tensor's method, and `args[0]` is the tensor.

    Raises:
        TypeError: none does; the message lists the given types and the signatures.
    """
    out = kwargs.pop("out", None) if "out" in kwargs else None
    options = {key: kwargs.pop(key) for key in _OPTIONS if key in kwargs}
    for attempt in range(2):
        # In the second attempt, tensors without dimensions can be numbers.
        loose = attempt == 1
        if loose and not any(isinstance(one, TensorBase) for one in (*args, *kwargs.values())):
            break
        for op, call in overloads:
            if options and not _makes_tensors(op.schema):
                continue
            if len(args) > 1 and _is_ruled_out(op.schema, args[1]):
                continue
            try:
                values = bind(op.schema, args, kwargs, loose)
            except NoFit:
                continue
            if not options:
                return _call(name, op, call, values, args, kwargs, out, method)
            check_memory(name, options.get("layout"), options.get("pin_memory"))
            recorded = options.get("requires_grad", False)
            if not isinstance(recorded, bool):
                raise TypeError(
                    f"{name}(): argument 'requires_grad' must be bool, not {type_name(recorded)}"
                )
            result = _call(name, op, call, values, args, kwargs | options, out, method)
            if recorded and isinstance(result, TensorBase):
                require_grad(result)
            return result
    kwargs = kwargs | options
    given = [type_name(value) for value in (args[1:] if method else args)]
    given.extend(f"{key}={type_name(value)}" for key, value in kwargs.items())
    expected = "\n".join([f" * ({_signature(op.schema, method)})" for op, _ in overloads])
    raise TypeError(
        f"{name}() received an invalid combination of arguments - got ({', '.join(given)}), but "
        f"expected one of:\n{expected}"
    )


def _is_ruled_out(schema: FunctionSchema, second: Any) -> bool:
    """Whether the second positional argument cannot fit an overload, like the number in `x.max(1)`
    and the dtype in `x.to(plugrad.float64)`. Trying such an overload would end in an exception,
    which takes longer than many kernels."""
    if schema.positional < 2:
        return False
    wanted = schema.arguments[1].type
    if wanted.is_list:
        return False
    if type(second) is int or type(second) is float:
        return wanted.base == "Tensor"
    if isinstance(second, DType):
        return wanted.base != "ScalarType"
    return isinstance(second, Device) and wanted.base != "Device"


def _makes_tensors(schema: FunctionSchema) -> bool:
    """Whether a function of PyTorch's with this schema takes `layout` and the like."""
    names = [argument.name for argument in schema.arguments]
    if "dtype" not in names or "device" not in names or schema.is_view:
        return False
    no_tensor = all(argument.type.base != "Tensor" for argument in schema.arguments)
    return no_tensor or schema.name.endswith("_like") or schema.name.startswith("new_")


def _call(
    name: str,
    op: Operator,
    call: Any,
    values: list[Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    out: Any,
    method: bool,
) -> Any:
    """Call an overload, or what overrides it; write to `out` where that is given."""
    if OVERRIDES.active:
        given_out = {} if out is None else {"out": out}
        handled = override_overloaded(op.namespace, name, method, args, kwargs | given_out)
        if handled is not PROCEED:
            return handled
    if out is None:
        result = call(*values)
        # Operators give a list of tensors, functions and methods a tuple.
        return tuple(result) if isinstance(result, list) else result
    if op.full_name == "nonzero.as_tuple" and values[1]:
        if not isinstance(out, TensorBase):
            raise TypeError(f"nonzero(): argument 'out' must be Tensor, not {type_name(out)}")
        raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
    given = tuple(values)
    check_out(op.full_name, out, given, op.structure != "")
    return compute_into(name, out, call, given, ())


# PyTorch's names of the types, where they are not the schema's.
_TYPE_NAMES: Final[dict[str, str]] = {
    "Scalar": "Number",
    "ScalarType": "plugrad.dtype",
    "Device": "plugrad.device",
    "Generator": "plugrad.Generator",
    "Layout": "plugrad.layout",
    "MemoryFormat": "plugrad.memory_format",
}


def _signature(schema: FunctionSchema, method: bool) -> str:
    """The parameters of an overload, as PyTorch writes them."""
    parts: list[str] = []
    for argument in schema.arguments[1:] if method else schema.arguments:
        if argument.kwarg_only and "*" not in parts:
            parts.append("*")
        base = argument.type.base
        words = _TYPE_NAMES.get(base, base)
        if argument.type.is_list:
            words = f"tuple of {words}s"
        name = "input" if argument.name == "self" and base == "Tensor" else argument.name
        default = f" = {argument.default}" if argument.has_default else ""
        parts.append(f"{words} {name}{default}")
    return ", ".join(parts)


def bind(
    schema: FunctionSchema, args: tuple[Any, ...], kwargs: dict[str, Any], loose: bool = False
) -> list[Any]:
    """The arguments in schema order, converted; `NoFit` if they do not fit.

    Args:
        loose: whether a tensor without dimensions is a number, as for functions of one signature.
    """
    if not kwargs and not loose and len(args) <= schema.positional and not schema.takes_all:
        return _bind_in_order(schema.arguments, args)
    arguments = schema.arguments
    positional = [argument for argument in arguments if not argument.kwarg_only]
    if len(args) > len(positional) or _are_all_tensors(positional, args, kwargs):
        args = _fold_varargs(positional, args)
    values: list[Any] = []
    used = 0
    for index, argument in enumerate(arguments):
        value: Any = MISSING
        if not argument.kwarg_only and index < len(args):
            value = args[index]
        key = _keyword(argument, kwargs)
        if key is not None:
            if value is not MISSING:
                raise NoFit
            value = kwargs[key]
            used += 1
        if value is MISSING:
            if not argument.has_default:
                raise NoFit
            values.append(default_of(argument))
        elif value is None and argument.default == ():
            values.append(())
        else:
            number = _number_of(value, argument.type) if loose else value
            values.append(convert(number, argument.type))
    if used < len(kwargs):
        raise NoFit
    return values


def _bind_in_order(arguments: tuple[Argument, ...], args: tuple[Any, ...]) -> list[Any]:
    """The result of `bind` for positional arguments, the usual case."""
    values: list[Any] = []
    given = len(args)
    for index, argument in enumerate(arguments):
        if index < given:
            value = args[index]
            if value is None and argument.default == ():
                values.append(())
            else:
                values.append(convert(value, argument.type))
        elif argument.has_default:
            values.append(default_of(argument))
        else:
            raise NoFit
    return values


def _keyword(argument: Argument, kwargs: dict[str, Any]) -> str | None:
    """The keyword under which an argument was given: its own, `input` for self, NumPy's names."""
    name = argument.name
    if name in kwargs:
        return name
    if name == "self" and "input" in kwargs:
        return "input"
    if name == "dim" and "axis" in kwargs:
        return "axis"
    if name == "keepdim" and "keepdims" in kwargs:
        return "keepdims"
    return None


def _are_all_tensors(
    positional: list[Argument], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> bool:
    """Whether the one `Tensor[]` of `meshgrid(x)` or `meshgrid()` was passed as separate
    tensors."""
    if len(positional) != 1 or positional[0].name in kwargs:
        return False
    only = positional[0].type
    if only.base != "Tensor" or not only.is_list:
        return False
    return not args or isinstance(args[0], TensorBase)


def _fold_varargs(positional: list[Argument], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """`x.permute(0, 2, 1)`: what trails are the elements of a last `int[]` or `Tensor[]`."""
    if not positional:
        raise NoFit
    last = positional[-1]
    start = len(positional) - 1
    if last.type.base not in ("int", "Tensor") or not last.type.is_list or last.type.list_size:
        raise NoFit
    return (*args[:start], tuple(args[start:]))


def _number_of(value: Any, type: SchemaType) -> Any:
    """The number in a tensor, where one is requested: one without dimensions; for sizes and
    dimensions any of one element."""
    if not isinstance(value, TensorBase) or needs_grad(value):
        return value
    public: Any = value
    if type.base == "Scalar" and not type.is_list:
        return public.item() if ndim_of(value) == 0 else value
    if type.base == "float" and not type.is_list:
        return float(public) if ndim_of(value) == 0 else value
    return int(public) if type.base == "int" and type.is_list and is_length(value) else value


def convert(value: Any, type: SchemaType) -> Any:
    """A value converted to a schema's type; `NoFit` if it does not fit."""
    if value is None:
        if type.optional:
            return None
        raise NoFit
    if type.is_list:
        return _convert_list(value, type)
    return _convert_one(value, type.base)


def _convert_list(value: Any, type: SchemaType) -> Any:
    if not isinstance(value, (list, tuple)):
        if type.base == "int" and not isinstance(value, (bool, float, TensorBase)):
            return (_convert_int(value),) * (type.list_size or 1)
        raise NoFit
    found: list[Any] = []
    for item in value:
        if item is None and type.element_optional:
            found.append(None)
        elif type.base == "int" and (
            is_length(item) if isinstance(item, TensorBase) else found and isinstance(item, bool)
        ):
            found.append(int(item))
        else:
            found.append(_convert_one(item, type.base))
    return found if type.base == "Tensor" else tuple(found)


def _convert_one(value: Any, base: str) -> Any:
    if base == "Tensor":
        if isinstance(value, TensorBase):
            return value
        if accept_foreign(value):
            return stand_in()
    elif base == "Scalar":
        if isinstance(value, (int, float, complex)):
            if isinstance(value, int):
                check_scalar_size(value)
            return value
        if isinstance(value, TensorBase):
            raise NoFit
        if is_scalar(value):
            return value.item()
    elif base == "int":
        return _convert_int(value)
    elif base == "float":
        if isinstance(value, (int, float)):  # A bool, too.
            return float_argument(value, "", "", 0)
        number = value.item() if is_scalar(value) and hasattr(value, "item") else None
        if isinstance(number, (int, float)):
            return float(number)
    elif base == "bool":
        if isinstance(value, bool):
            return value
        if type(value).__name__ in ("bool", "bool_"):
            return bool(value)
    elif base == "str":
        if isinstance(value, str):
            return value
    elif base == "ScalarType":
        if isinstance(value, (DType, type)):
            return dtype_argument(value, "", "dtype", 0)
    elif base == "Device":
        if isinstance(value, (Device, str)) or (
            isinstance(value, int) and not isinstance(value, bool)
        ):
            return as_device(value)
    elif base == "Generator":
        if hasattr(value, "manual_seed"):
            return value
    elif base == "MemoryFormat":
        if isinstance(value, MemoryFormat):
            return value
    else:
        return value
    raise NoFit


def _convert_int(value: Any) -> int:
    if not is_index(value):
        raise NoFit
    number: int = operator.index(value)
    if is_too_large(number):
        raise ValueError(OVERFLOW)
    return number
