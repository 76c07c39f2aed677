"""Emits stubs: the exact signatures that type checkers and editors see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from plugrad.codegen.documentation import function_text, method_text
from plugrad.codegen.groups import Group, group_entries
from plugrad.codegen.methods import UNARY_DUNDERS, dunders
from plugrad.codegen.model import Entry, EntryError, parse_entries
from plugrad.codegen.signature import (
    has_python_type,
    parameters,
    return_stub,
    returns_one_tensor,
    takes_out,
    takes_varargs,
)
from plugrad.codegen.source import Source

FAMILIES = """# Generated from operators' YAML files by `plugrad stub`; not to be edited.
# ruff: noqa
# fmt: off
import builtins
from collections.abc import Sequence
from typing import Any, NamedTuple, overload

from plugrad import Generator, Tensor, device, dtype

Number = builtins.int | builtins.float | builtins.complex
DeviceLike = device | str
DType = dtype
"""


def stubs(files: Iterable[str | Path]) -> str:
    """The stub of a module that shows the functions of YAML files, for type checkers and editors.

    It goes next to the module, as ``special.pyi``. Named results have a class `<name>_results`.

    Raises:
        EntryError: an argument or result has a type that Python has none for.
    """
    import yaml

    out = Source()
    for file in files:
        path = Path(file)
        entries = parse_entries(path.stem, yaml.safe_load(path.read_text()))
        groups = group_entries(entries)
        check_typed(groups)
        for name, fields in named_results(groups).items():
            emit_result_class(out, f"{name}_results", fields)
        out.line()
        emit_function_stubs(out, groups, "{}_results")
    return FAMILIES + out.text()


def check_typed(groups: Iterable[Group]) -> None:
    """Check that what users call has a type for each argument and result.

    Raises:
        EntryError: a type of the schema has no counterpart in Python.
    """
    for group in groups:
        for entry in group.entries:
            if not (entry.is_function or entry.is_method):
                continue
            types = {f"argument {item.name!r}": item.type for item in entry.schema.arguments}
            types |= {f"result {n}": item.type for n, item in enumerate(entry.schema.returns)}
            for what, type in types.items():
                if not has_python_type(type):
                    raise EntryError(
                        f"{entry.family}.yaml: {entry.schema.full_name}: {what} has the type "
                        f"{type}, which type checkers cannot check"
                    )


def named_results(groups: Iterable[Group]) -> dict[str, list[str]]:
    """The names of the results of operators with several named results, as in `return_types`."""
    found: dict[str, list[str]] = {}
    for group in groups:
        for entry in group.entries:
            names = [item.name for item in entry.schema.returns if item.name]
            public = not group.name.startswith(("_", "native_"))
            if public and len(names) == len(entry.schema.returns) > 1:
                found[group.name] = names
    return found


def emit_result_class(out: Source, name: str, fields: list[str]) -> None:
    out.line()
    with out.block(f"class {name}(NamedTuple):"):
        for field in fields:
            out.line(f"{field}: Tensor")


def emit_function_stubs(out: Source, groups: list[Group], results: str) -> None:
    """Emit public functions; `results` is how the class of an operator's results is called."""
    for group in groups:
        if any(entry.is_function for entry in group.entries):
            named = group.name in named_results([group])
            signatures = _signatures(group, False, results.format(group.name) if named else "")
            _emit_definition(out, group.name, signatures, function_text(group))


def emit_method_stubs(out: Source, groups: list[Group], results: str) -> None:
    """Emit methods and dunders of Tensor."""
    for group in groups:
        if any(entry.is_method for entry in group.entries):
            named = group.name in named_results([group])
            signatures = _signatures(group, True, results.format(group.name) if named else "")
            _emit_definition(out, group.name, signatures, method_text(group))
    for name in sorted(dunders(groups)):
        if name in UNARY_DUNDERS:
            out.line(f"def __{name}__(self) -> Tensor: ...")
        else:
            ignore = "  # type: ignore[override]" if name in ("eq", "ne") else ""
            operand = "Tensor | Number | NDArray[Any]"
            out.line(f"def __{name}__(self, other: {operand}) -> Tensor: ...{ignore}")


def _emit_definition(out: Source, name: str, signatures: list[str], text: str) -> None:
    """All overloads of a function. The first one has the text, which editors show for all."""
    for position, signature in enumerate(signatures):
        if len(signatures) > 1:
            out.line("@overload")
        if position:
            out.line(f"def {name}{signature}: ...")
        else:
            with out.block(f"def {name}{signature}:"):
                out.docstring(text)


def _signatures(group: Group, method: bool, named: str) -> list[str]:
    """The arguments and results of the function or method of a group, one signature each."""
    entries = [
        entry for entry in group.entries if (entry.is_method if method else entry.is_function)
    ]
    if group.kind == "scalar_or_tensor" and len(entries) > 1:
        # One function of Python serves both, and `out=`.
        entries = [group.by_type("Tensor")]
        wider = {group.position: "Tensor | Number"}
    else:
        wider = {}
    found: list[str] = []
    for entry in entries:
        returned = named if named and len(entry.schema.returns) > 1 else return_stub(entry)
        has_out = not method and _has_out(entry, group)
        found.append(f"({_signature(entry, method, has_out, wider)}) -> {returned}")
        second = entry.tensor_arguments()[1:2]
        if entry.number_first and not (method or entry.schema.is_inplace) and second:
            changed = {0: "Number"}
            found.append(f"({_signature(entry, method, has_out, changed)}) -> {returned}")
    return list(dict.fromkeys(found))


def _has_out(entry: Entry, group: Group) -> bool:
    """Whether `out=` is taken: also of a number, if the overload for a tensor takes it."""
    names = [argument.name for argument in entry.schema.arguments]
    return any(
        takes_out(other) and names == [argument.name for argument in other.schema.arguments]
        for other in group.entries
    )


def _signature(entry: Entry, method: bool, has_out: bool, wider: Mapping[int, str]) -> str:
    """The parameters; `wider` gives the types of those at some positions."""
    positional: list[str] = []
    keyword_only: list[str] = []
    varargs = takes_varargs(entry)
    for position, parameter in enumerate(parameters(entry)):
        if method and parameter.name == "input":
            continue
        numbers = entry.numbers and len(entry.tensor_arguments()) > 1
        kind = wider.get(position, parameter.stub_type)
        if numbers and kind == "Tensor":
            kind = "Tensor | Number"
        text = f"{parameter.name}: {kind}"
        if parameter.default:
            text += " = ..." if "(" in parameter.default else f" = {parameter.default}"
        if varargs is not None and parameter.argument is varargs:
            positional.append("*args: builtins.int | Sequence[builtins.int]")
            keyword_only.append(f"{parameter.name}: Sequence[builtins.int] | None = None")
        elif parameter.kwarg_only:
            keyword_only.append(text)
        else:
            positional.append(text)
    if has_out:
        kind = "Tensor" if returns_one_tensor(entry) else "tuple[Tensor, ...]"
        keyword_only.append(f"out: {kind} | None = None")
    if entry.takes_requires_grad:
        keyword_only.append("layout: str | None = None")
        keyword_only.append("pin_memory: builtins.bool | None = None")
        keyword_only.append("requires_grad: builtins.bool = False")
    if keyword_only and varargs is None:
        positional.append("*")
    first = ["self"] if method else []
    return ", ".join(first + positional + keyword_only)
