"""Emits stubs: the exact signatures that type checkers and editors see."""

from __future__ import annotations

from plugrad.codegen.groups import Group
from plugrad.codegen.methods import UNARY_DUNDERS, dunders
from plugrad.codegen.model import Entry
from plugrad.codegen.signature import parameters, return_stub, returns_one_tensor, takes_varargs
from plugrad.codegen.source import Source


def emit_function_stubs(out: Source, groups: list[Group]) -> None:
    for group in groups:
        entries = [entry for entry in group.entries if entry.is_function]
        for entry in entries:
            if len(entries) > 1:
                out.line("@overload")
            out.line(f"def {group.name}({_signature(entry, False)}) -> {return_stub(entry)}: ...")


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
        text = f"{parameter.name}: {parameter.stub_type}"
        if parameter.default:
            text += " = ..." if "(" in parameter.default else f" = {parameter.default}"
        if varargs is not None and parameter.argument is varargs:
            positional.append("*args: builtins.int | Sequence[builtins.int]")
            keyword_only.append(f"{parameter.name}: Sequence[builtins.int] | None = None")
        elif parameter.kwarg_only:
            keyword_only.append(text)
        else:
            positional.append(text)
    if not method and "out" in entry.variants and returns_one_tensor(entry):
        keyword_only.append("out: Tensor | None = None")
    if entry.takes_requires_grad:
        keyword_only.append("requires_grad: builtins.bool = False")
    if keyword_only and varargs is None:
        positional.append("*")
    first = ["self"] if method else []
    return ", ".join(first + positional + keyword_only)
