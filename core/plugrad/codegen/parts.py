"""What the emitters of generated modules share."""

from __future__ import annotations

import ast
from pathlib import Path

from plugrad.codegen.model import Entry, EntryError

HEADER = '''"""{title}. Generated from {origin}; not to be edited."""

# mypy: disable-error-code="no-any-return, redundant-cast, unused-ignore, misc"
# mypy: disable-error-code="overload-cannot-match"
# ruff: noqa
from __future__ import annotations

'''

# Names that expressions may use in addition to operators: Python's functions, and names that
# generated modules import. `sum`, `max` and others mean the operators.
PYTHON_NAMES = frozenset(
    {
        *("len", "tuple", "list", "range", "zip", "enumerate", "isinstance", "int"),
        *("not_implemented", "settings"),
    }
)


def defined_functions(path: Path) -> set[str]:
    """Names of the functions that a formula module defines."""
    if not path.exists():
        return set()
    tree = ast.parse(path.read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def check_forward(family: str, entries: list[Entry]) -> None:
    for entry in entries:
        if entry.derivatives and entry.forward is None:
            raise EntryError(
                f"{family}.yaml: {entry.schema}: an operator with 'derivatives:' needs a "
                "'forward:' rule"
            )
