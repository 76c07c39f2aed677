"""Writes the modules of families that are loaded on demand: those in `ops/on_demand`.

Such a family is interpreted, so it adds nothing to compile time or to the import of plugrad.
`_generated/on_demand.py` lists its names; the first use of one loads the family.
"""

from __future__ import annotations

from pathlib import Path

from plugrad.codegen import forward
from plugrad.codegen.groups import Group
from plugrad.codegen.methods import emit_methods
from plugrad.codegen.model import Entry
from plugrad.codegen.parts import HEADER, PYTHON_NAMES, check_forward, defined_functions
from plugrad.codegen.source import Source

# The folder of their YAML files.
ON_DEMAND = "on_demand"

LENIENT = '# mypy: disable-error-code="index, var-annotated, unreachable"'

FUNCTIONS_LATER = """
def __getattr__(name: str) -> Any:
    \"\"\"A function of a family on demand, which is loaded now.\"\"\"
    import importlib

    from plugrad._generated import on_demand

    family = on_demand.FUNCTIONS.get(name)
    if family is None:
        raise AttributeError(f"plugrad has no function {name!r}")
    from plugrad.dispatch.families import load_family

    load_family("plugrad._generated." + family)
    return getattr(importlib.import_module("plugrad._generated." + family), name)

"""


def family_files(source: Path) -> list[Path]:
    """The YAML files of all families, those on demand last."""
    return sorted(source.glob("*.yaml")) + sorted((source / ON_DEMAND).glob("*.yaml"))


def made_later(
    text: str, source: Path, family: str, entries: list[Entry], groups: list[Group]
) -> str:
    """The module of a family on demand: interpreted, with its forward rules and methods."""
    mark = "from __future__ import annotations\n"
    # What only code that is compiled needs.
    text = text.replace("# ruff: noqa", f"{LENIENT}\n# ruff: noqa", 1)
    text = text.replace(
        mark, f"{mark}\n# Interpreted: it is loaded on first use of one of its operators.", 1
    )
    out = Source()
    places: dict[str, str] = {}
    for folder in ("formulas", "tangents"):
        functions = defined_functions(source / ON_DEMAND / folder / f"{family}.py")
        if functions:
            out.line(f"from plugrad.ops.{ON_DEMAND}.{folder} import {family} as {folder}_{family}")
        places.update({name: f"{folder}_{family}.{name}" for name in functions})
    out.lines(forward.IMPORTS)

    def qualify(_: Entry, name: str) -> str:
        return places.get(name, name if name in PYTHON_NAMES else f"F.{name}")

    check_forward(family, entries)
    forward.emit_forward(out, entries, qualify, "OP_{}")
    out.line()
    out.line()
    with out.block("class Methods(TensorBase):"):
        out.docstring("The methods of this family's operators, which Tensor takes over.")
        emit_methods(out, groups, here=True)
    return text + out.text()


def on_demand_module(by_family: dict[str, list[Group]]) -> str:
    """Names, each with the family that is loaded when it is first used."""
    operators: dict[str, str] = {}
    functions: dict[str, str] = {}
    methods: dict[str, str] = {}
    elementwise: list[str] = []
    for family, groups in by_family.items():
        for entry in [entry for group in groups for entry in group.entries]:
            for name in (entry.schema.name, entry.schema.full_name):
                operators[f"plugrad::{name}"] = f"plugrad._generated.{family}"
            if entry.structure in ("unary", "binary", "binary_alpha") and not entry.functional:
                elementwise.append(f"plugrad::{entry.schema.full_name}")
        for group in groups:
            if any(entry.is_function for entry in group.entries):
                functions[group.name] = family
            if any(entry.is_method for entry in group.entries):
                methods[group.name] = family
    out = Source()
    out.line("# Interpreted: it is nothing but names.")
    out.line("from typing import Final")
    for name, table in (("OPERATORS", operators), ("FUNCTIONS", functions), ("METHODS", methods)):
        out.line()
        out.line(f"{name}: Final[dict[str, str]] = {{")
        for key, value in table.items():
            out.line(f"    {key!r}: {value!r},")
        out.line("}")
    out.line()
    out.line(f"ELEMENTWISE: Final[tuple[str, ...]] = {tuple(elementwise)!r}")
    header = HEADER.format(title="Operators that are loaded on demand", origin="ops/on_demand")
    return header + out.text()
