"""Emits TensorMethods: the native class with every operator as a method, and the dunders."""

from __future__ import annotations

from plugrad.codegen.documentation import method_text
from plugrad.codegen.function import (
    emit_conversions,
    emit_override,
    emit_result,
    emit_typing,
    python_header,
)
from plugrad.codegen.groups import Group
from plugrad.codegen.model import Entry
from plugrad.codegen.signature import parameters, returns_one_tensor, takes_varargs
from plugrad.codegen.source import Source

UNARY_DUNDERS = ("neg", "pos", "abs", "invert")

# The method that the override protocol gives for an infix operator, where it is not the dunder.
METHOD_OF_DUNDER = {
    "neg": "neg",
    "pos": "positive",
    "abs": "abs",
    "add": "add",
    "radd": "add",
    "sub": "sub",
    "mul": "mul",
    "rmul": "mul",
    "truediv": "div",
    "mod": "remainder",
    "matmul": "matmul",
    "rand": "bitwise_and",
    "ror": "bitwise_or",
    "rxor": "bitwise_xor",
    "ne": "ne",
    "lt": "lt",
    "le": "le",
    "gt": "gt",
    "ge": "ge",
    "iadd": "add_",
    "isub": "sub_",
    "imul": "mul_",
    "itruediv": "div_",
    "ifloordiv": "floor_divide_",
    "imod": "remainder_",
}


def emit_methods(out: Source, groups: list[Group], here: bool = False) -> None:
    """All methods of all groups, in the body of the class.

    Args:
        here: whether the class is in the module of the groups' family.
    """
    for group in groups:
        methods = [entry for entry in group.entries if entry.is_method]
        if methods:
            _emit_method(out, group, "" if here else f"{group.first.family}.")
    for name, group in sorted(dunders(groups).items()):
        _emit_dunder(out, name, group)


def _emit_method(out: Source, group: Group, module: str) -> None:
    entry = group.first
    out.line()
    # Final, so that compiled code calls the method itself and not whatever a subclass has.
    chosen = f"call_overload({group.name!r}, {module}OVERLOADS_{group.name}, (self, *args), "
    by_dtype = takes_sizes_or_dtype(group)
    if group.kind == "overloaded" and not by_dtype:
        out.line("@final")
        with out.block(f"def {group.name}(self, *args: Any, **kwargs: Any) -> Any:"):
            out.docstring(method_text(group))
            out.line(f"return {chosen}kwargs, True)")
        return
    header = python_header(entry, group, False, True)
    others = ", ".join(part for part in header.text.split(", ") if not part.startswith("input:"))
    values = ", ".join(["self", *(value for value in header.values if value != "input")])
    returned = "Tensor" if returns_one_tensor(entry) else "Any"
    signature = f"self, {others}" if others else "self"
    if by_dtype:
        signature += ", dtype: Any = None"
    emit_typing(out, group.name, signature, returned)
    out.line("@final")
    with out.block(f"def {group.name}({signature}) -> Any:"):
        out.docstring(method_text(group))
        if by_dtype:
            size = parameters(entry)[1].name
            given = (
                f"{{'dtype': dtype}} if {size} is None else {{{size!r}: {size}, 'dtype': dtype}}"
            )
            with out.block(
                "if args and type(args[0]) is not int and isinstance(args[0], (DType, type)):"
            ):
                out.line(f"return {chosen}{{}} if dtype is None else {{'dtype': dtype}}, True)")
            with out.block("if dtype is not None:"):
                out.line(f"return {chosen}{given}, True)")
        for line in header.before:
            out.line(line)
        emit_conversions(out, entry, group, skip=("input",))
        index = [parameter.name for parameter in parameters(entry)].index("input")
        emit_override(out, f"override_method({group.name!r}, ({values},))")
        out.line(f"a{index} = self")
        emit_result(out, entry, group, False, module)


def takes_sizes_or_dtype(group: Group) -> bool:
    """Whether it is `view`. Calls with sizes are so frequent that searching for the overload would
    be noticeable, and a dtype is easy to distinguish from sizes."""
    if len(group.entries) != 2:
        return False
    first, second = group.entries
    return takes_varargs(first) is not None and [
        argument.type.base for argument in second.schema.arguments
    ] == ["Tensor", "ScalarType"]


def dunders(groups: list[Group]) -> dict[str, Group]:
    """Dunder name without underscores -> the group that serves it."""
    found: dict[str, Group] = {}
    for group in groups:
        for entry in group.entries:
            for name in entry.dunder:
                found[name] = group
    return found


def _emit_dunder(out: Source, name: str, group: Group) -> None:
    entry = next(item for item in group.entries if name in item.dunder)
    out.line()
    method = METHOD_OF_DUNDER.get(name, f"__{name}__")
    if name in UNARY_DUNDERS:
        emit_typing(out, f"__{name}__", "self", "Tensor")
        out.line("@final")
        with out.block(f"def __{name}__(self) -> Any:"):
            emit_override(out, f"override_method({method!r}, (self,))")
            out.line(f"return {entry.family}.call_{entry.identifier}(self)")
        return
    out.line("@final")
    ignore = "  # type: ignore[override]" if name in ("eq", "ne") else ""
    with out.block(f"def __{name}__(self, other: Any) -> Any:{ignore}"):
        emit_override(out, f"override_operator({method!r}, self, other)")
        _emit_binary_dunder(out, name, group, entry, method)


def _emit_binary_dunder(out: Source, name: str, group: Group, entry: Entry, method: str) -> None:
    family = entry.family
    tensor = _overload(group, name, "Tensor")
    scalar = _overload(group, name, "Scalar")
    if tensor is not None:
        pair = "other, self" if name == "rmatmul" else "self, other"
        with out.block("if isinstance(other, TensorBase):"):
            out.line(f"return {family}.call_{tensor.identifier}({pair})")
    if scalar is not None:
        first = scalar.schema.arguments[0]
        arguments = "other, self" if first.type.base == "Scalar" else "self, other"
        with out.block("if is_scalar(other):"):
            out.line(f"return {family}.call_{scalar.identifier}({arguments})")
    if name.startswith("i") and group.kind != "single":
        out.line(f"return {family}.{group.name}(self, operand_of_array(self, other))")
        return
    out.line(f"return foreign_operand({method!r}, self, other)")


def _overload(group: Group, dunder: str, base: str) -> Entry | None:
    """The overload for an `other` of a type, among those the dunder was given for."""
    for entry in group.entries:
        arguments = entry.schema.arguments
        if len(arguments) < 2 or not entry.dunder or dunder not in entry.dunder:
            continue
        bases = [argument.type.base for argument in arguments[:2]]
        if base == "Scalar" and "Scalar" in bases:
            return entry
        if base == "Tensor" and bases == ["Tensor", "Tensor"]:
            return entry
    return None
