"""Emits the classes of settings, and functions that pack arguments into them or unpack them."""

from __future__ import annotations

from plugrad.codegen.model import Entry
from plugrad.codegen.settings import NAME, Settings, settings_classes
from plugrad.codegen.signature import native_type
from plugrad.codegen.source import Source
from plugrad.dispatch.schema import SchemaType

IMPORTS = """from typing import TYPE_CHECKING, Any, Final, final

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

# For each operator that has settings, by its full name, what makes of its arguments those of its
# functions.
GATHERED: Final[dict[str, Any]] = {}
"""


def emit_classes(out: Source) -> None:
    """A native class for each line of the table."""
    for kind in settings_classes().values():
        typed = [(member.name, _field_type(member.type)) for member in kind.members]
        names = [member.name for member in kind.members]
        out.line()
        out.line()
        out.line("@final")
        with out.block(f"class {kind.name}:"):
            out.docstring(kind.doc)
            out.line()
            parameters = ", ".join(f"{name}: {type}" for name, type in typed)
            with out.block(f"def __init__(self, {parameters}) -> None:"):
                for name in names:
                    out.line(f"self.{name} = {name}")
            out.line()
            with out.block(f"def copy(self) -> {kind.name}:"):
                out.docstring("Another object, whose members may be set.")
                out.line(f"return {kind.name}({', '.join(f'self.{name}' for name in names)})")
            out.line()
            with out.block("def values(self) -> tuple[object, ...]:"):
                out.docstring("The members, in the order in which raw kernels get them.")
                out.line(f"return ({', '.join(f'self.{name}' for name in names)},)")


def _field_type(type: SchemaType) -> str:
    one = f"tuple[{type.base}, ...]" if type.is_list else type.base
    return f"{one} | None" if type.optional else one


def emit_adapters(out: Source, entry: Entry, settings: Settings) -> None:
    """The functions around an entry's own, which take the operator's arguments one by one."""
    arguments = entry.schema.arguments
    # What is called checks the types.
    typed = ", ".join(f"{a.name}: Any" for a in arguments)
    gathered = ", ".join(settings.in_place(arguments, settings.source()))
    for part, function in _functions(entry):
        out.line()
        out.line()
        with out.block(f"def {part}_{entry.identifier}({typed}) -> Any:"):
            out.line(f"return {function}({gathered})")
    out.line()
    out.line()
    with out.block(f"def gathered_{entry.identifier}({typed}) -> tuple[Any, ...]:"):
        out.line(f"return ({gathered},)")


def _functions(entry: Entry) -> list[tuple[str, str]]:
    """What the entry names, as the beginning of an adapter's name and the function's source."""
    found = [
        ("prepare", "prepare", entry.prepare),
        ("composite", "composite", entry.composite),
        ("explicit", "composite", entry.explicit),
    ]
    return [(part, f"{module}.{name}") for part, module, name in found if name]


def emit_call_with(out: Source, entry: Entry, settings: Settings, returned: str) -> None:
    """The typed entry into dispatch for callers that have the settings as one object."""
    arguments = entry.schema.arguments
    types = {a.name: native_type(a.type) for a in arguments}
    types[NAME] = f"{NAME}.{settings.kind.name}"
    parameters = settings.in_place(arguments, NAME)
    typed = ", ".join(f"{name}: {types[name]}" for name in parameters)
    member_of = {value: f"{NAME}.{member}" for member, value in settings.values}
    passed = ", ".join(member_of.get(a.name, a.name) for a in arguments)
    out.line()
    out.line()
    with out.block(f"def call_{entry.identifier}_with({typed}) -> {returned}:"):
        out.line(f"return call_{entry.identifier}({passed})")
