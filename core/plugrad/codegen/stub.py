"""Emits stubs: the exact signatures that type checkers and editors see."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from plugrad.codegen.groups import Group, group_entries
from plugrad.codegen.methods import UNARY_DUNDERS, dunders
from plugrad.codegen.model import Entry, parse_entries
from plugrad.codegen.signature import (
    parameters,
    return_stub,
    returns_one_tensor,
    takes_out,
    takes_varargs,
)
from plugrad.codegen.source import Source

FAMILIES = """# Generated from operators' YAML files by plugrad.codegen.stubs; not to be edited.
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

    It goes beside the module, as ``special.pyi``. Named results have a class `<name>_results`.
    """
    import yaml

    out = Source()
    for file in files:
        path = Path(file)
        entries = parse_entries(path.stem, yaml.safe_load(path.read_text()))
        for entry in entries:
            returns = entry.schema.returns
            if entry.is_function and len(returns) > 1 and all(item.name for item in returns):
                out.line()
                with out.block(f"class {entry.identifier}_results(NamedTuple):"):
                    for item in returns:
                        out.line(f"{item.name}: Tensor")
        out.line()
        emit_function_stubs(out, group_entries(entries), named_results=True)
    return FAMILIES + out.text()


def emit_function_stubs(out: Source, groups: list[Group], named_results: bool = False) -> None:
    for group in groups:
        entries = [entry for entry in group.entries if entry.is_function]
        for entry in entries:
            if len(entries) > 1:
                out.line("@overload")
            returned = return_stub(entry)
            if named_results and returned.startswith("tuple["):
                returned = f"{entry.identifier}_results"
            out.line(f"def {group.name}({_signature(entry, False)}) -> {returned}: ...")


def emit_method_stubs(out: Source, groups: list[Group]) -> None:
    for group in groups:
        entries = [entry for entry in group.entries if entry.is_method]
        for entry in entries:
            if len(entries) > 1:
                out.line("@overload")
            out.line(f"def {group.name}({_signature(entry, True)}) -> {return_stub(entry)}: ...")
    for name in sorted(dunders(groups)):
        if name in UNARY_DUNDERS:
            out.line(f"def __{name}__(self) -> Tensor: ...")
        else:
            ignore = "  # type: ignore[override]" if name in ("eq", "ne") else ""
            out.line(f"def __{name}__(self, other: Tensor | Number) -> Tensor: ...{ignore}")


def _signature(entry: Entry, method: bool) -> str:
    positional: list[str] = []
    keyword_only: list[str] = []
    varargs = takes_varargs(entry)
    for parameter in parameters(entry):
        if method and parameter.name == "input":
            continue
        numbers = entry.numbers and len(entry.tensor_arguments()) > 1
        kind = "Tensor | Number" if numbers and parameter.stub_type == "Tensor" else ""
        text = f"{parameter.name}: {kind or parameter.stub_type}"
        if parameter.default:
            text += " = ..." if "(" in parameter.default else f" = {parameter.default}"
        if varargs is not None and parameter.argument is varargs:
            positional.append("*args: builtins.int | Sequence[builtins.int]")
            keyword_only.append(f"{parameter.name}: Sequence[builtins.int] | None = None")
        elif parameter.kwarg_only:
            keyword_only.append(text)
        else:
            positional.append(text)
    if not method and takes_out(entry):
        kind = "Tensor" if returns_one_tensor(entry) else "tuple[Tensor, ...]"
        keyword_only.append(f"out: {kind} | None = None")
    if entry.takes_requires_grad:
        keyword_only.append("requires_grad: builtins.bool = False")
    if keyword_only and varargs is None:
        positional.append("*")
    first = ["self"] if method else []
    return ", ".join(first + positional + keyword_only)
