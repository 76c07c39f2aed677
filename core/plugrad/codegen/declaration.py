"""Emits declarations of operators, and the tables of their kernels that `plugrad.ops.declaration`
registers."""

from __future__ import annotations

from plugrad.codegen.kernel import function_of
from plugrad.codegen.model import INPLACE_VIEW, Entry
from plugrad.codegen.source import Source
from plugrad.dispatch.schema import Argument


def emit_declaration(out: Source, entry: Entry, namespace: str) -> None:
    """`OP_mul_Tensor`, without kernels: see `emit_registrations`."""
    prepare = function_of(entry, "prepare") if entry.prepare else "None"
    out.line(f"OP_{entry.identifier}: Final = declare_new(")
    out.line(
        f"    {namespace!r}, {entry.schema.name!r}, {entry.schema.overload!r}, "
        f"{str(entry.schema)!r},"
    )
    out.line(
        f"    {entry.structure!r}, {entry.result!r}, {prepare}, "
        f"{bool(entry.derivatives) or bool(entry.composite)}, {entry.level!r},"
    )
    out.line(f"    {_one_line(entry.doc)!r},")
    out.line(")")


def emit_registrations(out: Source, entries: list[Entry], node_names: dict[str, str]) -> None:
    """The tables of kernels that do not depend on a backend; see `plugrad.ops.declaration`."""
    tables: dict[str, list[str]] = {}
    for entry in entries:
        for kind, value in _own_kernels(entry):
            tables.setdefault(kind, []).append(f"{entry.identifier}={value}")
    if tables:
        out.line("register_kernels(globals(), {")
        for kind, words in tables.items():
            _emit_table(out, f"    {kind!r}: ", words, ",")
        out.line("})")
    nodes = [entry for entry in entries if entry.derivatives and entry.node_owner is entry]
    if nodes:
        out.line("name_nodes(")
        out.line("    globals(),")
        words = [f"{entry.identifier}={node_names[entry.schema.full_name]}" for entry in nodes]
        _emit_table(out, "    ", words, ",")
        out.line(")")


def _emit_table(out: Source, start: str, words: list[str], end: str) -> None:
    out.line(f'{start}"""')
    for word in words:
        out.line(f"        {word}")
    out.line(f'    """{end}')


def _own_kernels(entry: Entry) -> list[tuple[str, str]]:
    """The kernels that an operator has on every backend: their kinds, and the function that makes
    each."""
    found: list[tuple[str, str]] = []
    if entry.is_factory:
        # Numbers, so that no schema is parsed while plugrad is imported.
        position = [argument.type.base for argument in entry.schema.arguments].index("Device")
        found.append(("backend_select", str(position)))
    elif entry.structure == INPLACE_VIEW:
        view = entry.schema.full_name.replace("_.", ".").removesuffix("_").replace(".", "_")
        found.append(("inplace_view", view))
    elif entry.schema.mutates:
        arguments = entry.schema.arguments
        written = [at for at, each in enumerate(arguments) if _is_written(each)]
        if arguments[written[0]].type.is_list:
            found.append(("list_mutation", ",".join(map(str, written))))
        else:
            found.append(("mutation", ""))
    elif entry.schema.is_view and not entry.composite:
        found.append(("view", "differentiable" if entry.derivatives else ""))
    if entry.composite:
        if entry.functional is not None:
            others = entry.functional.schema.arguments[1:]
            keywords = [argument.name for argument in others if argument.kwarg_only]
            count = len(others) - len(keywords)
            parts = [entry.functional.identifier, str(count), *keywords]
            found.append(("composite_inplace", ",".join(parts)))
        else:
            found.append(("composite", function_of(entry, "composite")))
    if entry.explicit:
        found.append(("explicit", function_of(entry, "explicit")))
    if entry.derivatives:
        found.append(("autograd", entry.identifier))
    return found


def _is_written(argument: Argument) -> bool:
    return argument.type.alias is not None and argument.type.alias.is_write


def _one_line(text: str) -> str:
    """The first paragraph."""
    return " ".join(text.partition("\n\n")[0].split())
