"""Turns a schema into Python parameters, and into the conversions that a public function needs."""

from __future__ import annotations

import keyword
from dataclasses import dataclass

from plugrad.codegen.model import Entry
from plugrad.dispatch.binding import DTYPE_NAMES
from plugrad.dispatch.schema import Argument, SchemaType

# Schema type -> (converter in plugrad.tensor.calls.arguments, its type in stubs).
_SCALAR_TYPES = {
    "Tensor": ("tensor", "Tensor"),
    "Scalar": ("scalar", "Number"),
    "int": ("int", "builtins.int"),
    "float": ("float", "builtins.float"),
    "bool": ("bool", "builtins.bool"),
    "str": ("str", "str"),
    "ScalarType": ("dtype", "DType"),
    "Device": ("device", "DeviceLike"),
    "Generator": ("generator", "Generator"),
    "MemoryFormat": ("memory_format", "MemoryFormat"),
}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a public function.

    Attributes:
        name: the parameter's name; `input` for the schema's `self`.
        default: source of its default, or "" if it has none.
        kwarg_only: whether it comes after `*`.
        stub_type: its annotation in stubs.
        converter: function that checks and normalises it.
        argument: the schema argument behind it.
    """

    name: str
    default: str
    kwarg_only: bool
    stub_type: str
    converter: str
    argument: Argument


# (function, argument) -> its name in Python, where PyTorch has another one than in the schema.
_PYTHON_NAMES = {("copy_", "src"): "other"}


def python_parameter(argument: Argument, function: str = "") -> Parameter:
    name = "input" if argument.name == "self" else argument.name
    name = _PYTHON_NAMES.get((function, name), name)
    if keyword.iskeyword(name):
        name += "_"
    return Parameter(
        name,
        default_source(argument) if argument.has_default else "",
        argument.kwarg_only,
        stub_type(argument.type),
        ("" if argument.default != () else "defaulted_") + converter(argument.type),
        argument,
    )


def parameters(entry: Entry) -> list[Parameter]:
    name = entry.python_name
    return [python_parameter(argument, name) for argument in entry.schema.arguments]


def default_source(argument: Argument) -> str:
    """Source text of a default; `int[2] stride=1` means one 1 per element."""
    default = argument.default
    size = argument.type.list_size
    if argument.type.base == "ScalarType" and isinstance(default, str):
        return f"dtype_by_name({DTYPE_NAMES.get(default, default)!r})"
    if argument.type.base == "MemoryFormat" and isinstance(default, str):
        return f"memory_format_by_name({default!r})"
    if argument.type.is_list and size is not None and isinstance(default, int):
        return repr((default,) * size)
    if isinstance(default, float) and default in (float("inf"), float("-inf")):
        return f"float({str(default)!r})"
    return repr(default)


def converter(type: SchemaType) -> str:
    """Name of the function in `tensor/calls/arguments.py` that checks a value of a schema type."""
    base = _SCALAR_TYPES.get(type.base, ("any", "object"))[0]
    name = base + ("_list" if type.is_list else "") + "_argument"
    if type.element_optional:
        return "optional_" + base + "_list_argument"
    return ("optional_" if type.optional else "") + name


def stub_type(type: SchemaType) -> str:
    """The annotation of a schema type in stubs."""
    base = _SCALAR_TYPES.get(type.base, ("any", "Any"))[1]
    if type.is_list:
        element = f"{base} | None" if type.element_optional else base
        base = f"Sequence[{element}]"
        if type.base == "int" and type.list_size is not None:
            base = f"builtins.int | {base}"
    return f"{base} | None" if type.optional else base


def has_python_type(type: SchemaType) -> bool:
    """Whether stubs have a type for a schema type."""
    return type.base in _SCALAR_TYPES


def native_type(type: SchemaType) -> str:
    """The annotation inside generated code: native for tensors, loose for values that are passed
    on."""
    if type.base != "Tensor":
        return "Any"
    if type.is_list:
        element = "TensorBase | None" if type.element_optional else "TensorBase"
        return f"list[{element}]"
    return "TensorBase | None" if type.optional else "TensorBase"


def takes_varargs(entry: Entry) -> Argument | None:
    """The leading `int[]` argument that may be given as separate integers, if there is one."""
    arguments = [a for a in entry.schema.arguments if a.name != "self"]
    if not arguments or arguments[0].kwarg_only:
        return None
    first = arguments[0]
    if first.type.base != "int" or not first.type.is_list or first.type.list_size is not None:
        return None
    if any(not argument.kwarg_only for argument in arguments[1:]):
        return None
    return first


def return_stub(entry: Entry) -> str:
    returns = entry.schema.returns
    if not returns:
        return "None"
    if len(returns) > 1:
        return f"tuple[{', '.join(_return_type(item.type) for item in returns)}]"
    return _return_type(returns[0].type)


def _return_type(type: SchemaType) -> str:
    if type.base == "Tensor" and type.is_list:
        return "tuple[Tensor, ...]"
    return _SCALAR_TYPES.get(type.base, ("any", "Any"))[1]


def takes_out(entry: Entry) -> bool:
    """Whether the public function takes `out=`: a tensor, or a tuple of one for each result."""
    tensors = all(item.type.base == "Tensor" for item in entry.schema.returns)
    return "out" in entry.variants and tensors


def returns_one_tensor(entry: Entry) -> bool:
    returns = entry.schema.returns
    return len(returns) == 1 and returns[0].type.base == "Tensor" and not returns[0].type.is_list


def returns_tensors(entry: Entry) -> bool:
    """Whether it gives any number of tensors, ``Tensor[]``."""
    returns = entry.schema.returns
    return len(returns) == 1 and returns[0].type.base == "Tensor" and returns[0].type.is_list
