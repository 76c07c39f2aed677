"""Checks and conversions of public functions' arguments, with PyTorch's error messages."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast, final

import numpy as np
from mypy_extensions import i64

from plugrad.device import Device, as_device
from plugrad.dispatch.caller import is_given_by_keyword, warn_at_caller
from plugrad.dtype import BOOL, INTEGER, DType, bool_, complex128, float64, int64
from plugrad.memory_format import MemoryFormat
from plugrad.tensor.base import TensorBase, materialize_meta, ndim_of, numel_of
from plugrad.tensor.calls.overridable import accept_foreign, stand_in
from plugrad.tensor.calls.promotion import is_scalar

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


@final
class _Missing:
    def __repr__(self) -> str:
        return "<required>"


MISSING: Final = _Missing()


# Classes that are made by a `class` statement; Python writes their names without the module.
_HEAP_TYPE: Final = 1 << 9
# Functions that take one int for all sides, but no list of one.
_OF_ALL_SIDES: Final = ("reflection_pad", "replication_pad")
_PUBLIC_NAMES: Final[dict[str, str]] = {
    "DType": "plugrad.dtype",
    "Device": "plugrad.device",
    "device": "plugrad.device",
    "Size": "plugrad.Size",
    "MemoryFormat": "plugrad.memory_format",
}


def type_name(value: object) -> str:
    """The name that messages use for a value's type."""
    if isinstance(value, TensorBase):
        return "Tensor"
    kind: Any = type(value)
    name: str = kind.__name__
    module: object = getattr(kind, "__module__", "builtins")
    if module == "builtins" or not isinstance(module, str):
        return name
    if module.startswith("plugrad"):
        return _PUBLIC_NAMES.get(name, name)
    return name if kind.__flags__ & _HEAP_TYPE else f"{module}.{name}"


def place_of(function: str, name: str, position: int) -> str:
    """The beginning of messages about an argument. Keyword-only arguments have position 0; no
    position is shown for these and for arguments given by keyword."""
    where = ""
    if position > 0 and not is_given_by_keyword(name):
        where = f" (position {position})"
    return f"{function}(): argument '{name}'{where}"


# PyTorch has overloads for tensors here; these are its messages for tensors that are not numbers.
_NO_NUMBER: Final = {
    **{
        (function, name): f"{function} only supports 0-dimensional start and end tensors, but got "
        f"{name} with {{}} dimension(s)."
        for function in ("linspace", "logspace")
        for name in ("start", "end")
    },
    ("narrow", "start"): "start must be an 0-dim integral Tensor.",
}


def raise_argument_error(
    function: str, name: str, position: int, expected: str, value: object
) -> NoReturn:
    if isinstance(value, TensorBase) and (function, name) in _NO_NUMBER:
        raise RuntimeError(_NO_NUMBER[function, name].format(ndim_of(value)))
    raise TypeError(
        f"{place_of(function, name, position)} must be {expected}, not {type_name(value)}"
    )


OVERFLOW: Final = "Overflow when unpacking long long"


def is_too_large(number: int) -> bool:
    """Whether an int is none of 64 bits. The first compare is all that most need: mypyc keeps such
    ints unboxed."""
    if -4611686018427387904 <= number <= 4611686018427387903:
        return False
    return number > 9223372036854775807 or number < -9223372036854775808


def any_argument(value: Any, function: str, name: str, position: int) -> Any:
    return value


def tensor_argument(value: Any, function: str, name: str, position: int) -> Tensor:
    if isinstance(value, TensorBase):
        return value  # type: ignore[return-value]  # every public tensor has the methods
    if accept_foreign(value):
        return stand_in()
    raise_argument_error(function, name, position, "Tensor", value)


def optional_tensor_argument(
    value: Any, function: str, name: str, position: int
) -> TensorBase | None:
    if value is None:
        return None
    return tensor_argument(value, function, name, position)


def tensor_list_argument(value: Any, function: str, name: str, position: int) -> list[TensorBase]:
    if not isinstance(value, (list, tuple)):
        raise_argument_error(function, name, position, "tuple of Tensors", value)
    found: list[TensorBase] = []
    for index, item in enumerate(value):
        if not isinstance(item, TensorBase):
            if accept_foreign(item):
                found.append(stand_in())
                continue
            raise TypeError(
                f"expected Tensor as element {index} in argument {position - 1}, but got "
                f"{type_name(item)}"
            )
        found.append(item)
    return found


def optional_tensor_list_argument(
    value: Any, function: str, name: str, position: int
) -> list[TensorBase | None]:
    """A `Tensor?[]`: a list with None for a missing tensor."""
    if not isinstance(value, (list, tuple)):
        raise_argument_error(function, name, position, "tuple of Tensors", value)
    found: list[TensorBase | None] = []
    for index, item in enumerate(value):
        if item is not None and not isinstance(item, TensorBase):
            if accept_foreign(item):
                found.append(stand_in())
                continue
            raise TypeError(
                f"expected Tensor or None as element {index} in argument {position - 1}, but got "
                f"{type_name(item)}"
            )
        found.append(item)
    return found


def check_scalar_size(number: int) -> None:
    """RuntimeError for a number that no integer dtype has."""
    if is_too_large(number) and not 0 < number <= 18446744073709551615:
        raise RuntimeError("value cannot be converted to type int64_t without overflow")


def scalar_argument(
    value: Any, function: str, name: str, position: int, or_tensor: bool = False
) -> Any:
    """A Python number; NumPy numbers and 0-dim tensors are converted."""
    if isinstance(value, (int, float, complex)):
        if isinstance(value, int):
            check_scalar_size(value)
        return value
    if isinstance(value, TensorBase) and not or_tensor and ndim_of(value) == 0:
        return value.item()  # type: ignore[attr-defined]  # public tensors have it
    if is_scalar(value):
        return value.item()
    if or_tensor and accept_foreign(value):
        return 0
    expected = "Tensor" if or_tensor else "Number"
    raise_argument_error(function, name, position, expected, value)


def optional_scalar_argument(value: Any, function: str, name: str, position: int) -> Any:
    return None if value is None else scalar_argument(value, function, name, position)


def scalar_list_argument(value: Any, function: str, name: str, position: int) -> Any:
    if not isinstance(value, (list, tuple)):
        raise_argument_error(function, name, position, "tuple of Scalars", value)
    return tuple([scalar_argument(item, function, name, position) for item in value])


def int_argument(value: Any, function: str, name: str, position: int) -> Any:
    if type(value) is int:
        if is_too_large(value):
            raise ValueError(OVERFLOW)
        return value
    if not is_index(value):
        raise_argument_error(function, name, position, "int", value)
    return int_argument(operator.index(value), function, name, position)


def is_index(value: Any) -> bool:
    """Whether a value can be used as an int; a bool cannot. Exceptions from its conversion pass
    through."""
    if isinstance(value, TensorBase):
        return ndim_of(value) == 0 and value.dtype.category == INTEGER
    if isinstance(value, (bool, float, np.ndarray)):
        return False
    return hasattr(type(value), "__index__")


def is_whole_number(value: Any) -> bool:
    """Whether a value is a tensor of one integer, whatever its dimensions."""
    if not isinstance(value, TensorBase):
        return False
    return value.dtype.category == INTEGER and numel_of(value) == 1


def is_length(value: Any) -> bool:
    """Whether a value can be one of several ints: a tensor of one element can, with any dimensions;
    a bool tensor only without dimensions."""
    if isinstance(value, TensorBase):
        return is_whole_number(value) or (value.dtype.category == BOOL and ndim_of(value) == 0)
    return is_index(value)


def optional_int_argument(value: Any, function: str, name: str, position: int) -> Any:
    return None if value is None else int_argument(value, function, name, position)


def float_argument(value: Any, function: str, name: str, position: int) -> Any:
    if isinstance(value, (float, int)):
        try:
            return float(value)
        except OverflowError:
            raise ValueError(OVERFLOW) from None
    kind = type(value)
    if (
        isinstance(value, (complex, str))
        or (isinstance(value, TensorBase) and ndim_of(value) > 0)
        or not (hasattr(kind, "__float__") or hasattr(kind, "__index__"))
    ):
        raise_argument_error(function, name, position, "float", value)
    try:
        return float(value)
    except TypeError:  # an array of an object, say
        raise_argument_error(function, name, position, "float", value)


def optional_float_argument(value: Any, function: str, name: str, position: int) -> Any:
    return None if value is None else float_argument(value, function, name, position)


def float_list_argument(value: Any, function: str, name: str, position: int) -> Any:
    if not isinstance(value, (list, tuple)):
        raise_argument_error(function, name, position, "tuple of floats", value)
    return tuple([float_argument(item, function, name, position) for item in value])


def optional_float_list_argument(value: Any, function: str, name: str, position: int) -> Any:
    return None if value is None else float_list_argument(value, function, name, position)


def bool_argument(value: Any, function: str, name: str, position: int) -> Any:
    if isinstance(value, bool):
        return value
    if type(value).__name__ in ("bool_", "bool"):
        return bool(value)
    raise_argument_error(function, name, position, "bool", value)


def optional_bool_argument(value: Any, function: str, name: str, position: int) -> Any:
    return None if value is None else bool_argument(value, function, name, position)


def bool_list_argument(value: Any, function: str, name: str, position: int) -> Any:
    if not isinstance(value, (list, tuple)):
        raise_argument_error(function, name, position, "tuple of bools", value)
    return tuple([bool_argument(item, function, name, position) for item in value])


def str_argument(value: Any, function: str, name: str, position: int) -> Any:
    if isinstance(value, str):
        return value
    raise_argument_error(function, name, position, "str", value)


def optional_str_argument(value: Any, function: str, name: str, position: int) -> Any:
    return None if value is None else str_argument(value, function, name, position)


def int_list_argument(
    value: Any, function: str, name: str, position: int, size: int = 0
) -> tuple[int, ...]:
    """A tuple of ints; with `size`, one int is repeated that often."""
    if type(value) is tuple and (size <= 1 or len(value) != 1):
        for item in value:
            if type(item) is not int or is_too_large(item):
                break
        else:
            return cast("tuple[int, ...]", value)
    if isinstance(value, (list, tuple)):
        found: list[int] = []
        for index, item in enumerate(value):
            if type(item) is int:
                if is_too_large(item):
                    _raise_unpacking(function, name, index, OVERFLOW)
                found.append(item)
                continue
            if not is_length(item) and not (index > 0 and isinstance(item, bool)):
                _raise_element(function, name, position, index, value)
            number = int(item)
            if is_too_large(number):
                _raise_unpacking(function, name, index, OVERFLOW)
            found.append(number)
        if size > 1 and len(found) == 1 and not function.startswith(_OF_ALL_SIDES):
            return tuple(found * size)
        return tuple(found)
    if size > 0 and is_length(value):
        number = int(value)
        if is_too_large(number):
            _raise_unpacking(function, name, 0, OVERFLOW)
        return (number,) * size
    raise_argument_error(function, name, position, "tuple of ints", value)


def defaulted_int_list_argument(
    value: Any, function: str, name: str, position: int, size: int = 0
) -> tuple[int, ...]:
    """A list with an empty default, for which None can be passed, too."""
    return () if value is None else int_list_argument(value, function, name, position, size)


def _raise_unpacking(function: str, name: str, index: int, error: str) -> NoReturn:
    raise TypeError(
        f"{function}(): argument '{name}' failed to unpack the object at pos {index + 1} with "
        f'error "{error}"'
    )


def _raise_element(function: str, name: str, position: int, index: int, items: Any) -> NoReturn:
    item = items[index]
    if index > 0:
        error = f"type must be tuple of ints,but got {type_name(item)}"
        _raise_unpacking(function, name, index, error)
    if is_given_by_keyword(name):
        raise_argument_error(function, name, 0, "tuple of ints", items)
    raise TypeError(
        f"{place_of(function, name, position)} must be tuple of ints, but found element of type "
        f"{type_name(item)} at pos {index}"
    )


def optional_int_list_argument(
    value: Any, function: str, name: str, position: int, size: int = 0
) -> tuple[int, ...] | None:
    return None if value is None else int_list_argument(value, function, name, position, size)


def gather_varargs(
    args: tuple[Any, ...], by_name: Any, function: str, name: str, default: Any
) -> Any:
    """The `int[]` that was given as one sequence, as separate integers, or by name."""
    if by_name is not None:
        if args:
            raise TypeError(f"{function}() got multiple values for argument '{name}'")
        return by_name
    if len(args) == 1 and not isinstance(args[0], int):
        only = args[0]
        if not isinstance(only, (list, tuple)) and is_length(only):
            return (only,)
        return only
    if not args and default is not MISSING:
        return default
    return args


def keyword_alias(value: Any, default: Any, given: Any, function: str, keyword: str) -> Any:
    """The value under NumPy's name for an argument (`axis` for `dim`), unless both names were
    given."""
    if value is not default and value != default:
        raise TypeError(f"{function}() got an unexpected keyword argument '{keyword}'")
    return given


def raise_missing(function: str, values: tuple[Any, ...], names: tuple[str, ...]) -> NoReturn:
    """Say which of a function's required arguments are `MISSING`."""
    missing = [name for name, value in zip(names, values, strict=True) if value is MISSING]
    quoted = ", ".join(f'"{name}"' for name in missing)
    raise TypeError(f"{function}() missing {len(missing)} required positional arguments: {quoted}")


# PyTorch reads `float` as float64 where a dtype is expected, whatever the default dtype is.
_PYTHON_TYPES: Final[dict[Any, DType]] = {
    bool: bool_,
    int: int64,
    float: float64,
    complex: complex128,
}


def dtype_argument(value: Any, function: str, name: str, position: int) -> DType:
    if isinstance(value, DType):
        return value
    found = _PYTHON_TYPES.get(value) if isinstance(value, type) else None
    if found is None:
        raise_argument_error(function, name, position, "plugrad.dtype", value)
    return found


def optional_dtype_argument(value: Any, function: str, name: str, position: int) -> DType | None:
    return None if value is None else dtype_argument(value, function, name, position)


def device_argument(value: Any, function: str, name: str, position: int) -> Device:
    if isinstance(value, (Device, str)) or (isinstance(value, int) and not isinstance(value, bool)):
        return as_device(value)
    raise_argument_error(function, name, position, "plugrad.device", value)


def optional_device_argument(value: Any, function: str, name: str, position: int) -> Device | None:
    return None if value is None else device_argument(value, function, name, position)


def generator_argument(value: Any, function: str, name: str, position: int) -> Any:
    if hasattr(value, "manual_seed"):
        return value
    raise_argument_error(function, name, position, "plugrad.Generator", value)


def optional_generator_argument(value: Any, function: str, name: str, position: int) -> Any:
    if value is None or hasattr(value, "manual_seed"):
        return value
    raise_argument_error(function, name, position, "plugrad.Generator", value)


def memory_format_argument(value: Any, function: str, name: str, position: int) -> MemoryFormat:
    if isinstance(value, MemoryFormat):
        return value
    raise_argument_error(function, name, position, "plugrad.memory_format", value)


def optional_memory_format_argument(
    value: Any, function: str, name: str, position: int
) -> MemoryFormat | None:
    return None if value is None else memory_format_argument(value, function, name, position)


def keyset_of_list(tensors: Any) -> i64:
    """The union of key sets of a list that may have None for a missing tensor."""
    keyset: i64 = 0
    for item in tensors:
        if item is not None:
            tensor: TensorBase = item
            keyset |= tensor._keyset
    return keyset


def optional_keyset(tensor: TensorBase | None) -> i64:
    return 0 if tensor is None else tensor._keyset


def require_grad(tensor: TensorBase) -> None:
    """Apply `requires_grad=True` to a new tensor."""
    if not tensor.dtype.is_differentiable:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    materialize_meta(tensor).requires_grad = True


def deprecated_order(
    function: str,
    given: tuple[Any, ...],
    orders: Sequence[tuple[str, ...]],
    names: tuple[str, ...],
    values: tuple[Any, ...],
) -> tuple[Any, ...]:
    """Values by name of arguments that were given in an order which PyTorch has deprecated.

    Args:
        given: the positional value, or `MISSING`.
        orders: the names in each order there is; they differ in length.
        names: of the values that are returned.
        values: what they are otherwise.

    Raises TypeError for a number of arguments that no order has.
    """
    found = [value for value in given if value is not MISSING]
    for order in orders:
        if len(order) == len(found):
            by_name: dict[str, Any] = dict(zip(order, found, strict=True))
            warn_at_caller(
                f"This overload of {function} is deprecated: {function}({', '.join(order)}). "
                "Give numbers by keyword, behind the tensors"
            )
            return tuple(
                [by_name.get(name, value) for name, value in zip(names, values, strict=True)]
            )
    raise TypeError(
        f"{function}() takes {len(orders[-1])} positional arguments at most but {len(found)} "
        "were given"
    )
