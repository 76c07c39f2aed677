"""Writes docs/operators.md, the operators and what backends do for them:
`python tools/operators_page.py`.

Run it again, after `tools/needs.py`, when operators, their kernels or decompositions have changed;
a test fails until then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import yaml

import plugrad
from plugrad.codegen import Entry, parse_entries
from plugrad.codegen.on_demand import family_files
from plugrad.dispatch.backends.active import (
    ActiveBackend,
    activate_backend,
    deactivate_backend,
    find_backend,
)
from plugrad.dispatch.backends.availability import Availability, availability, needs_of, short_name
from plugrad.dispatch.backends.backend import Backend
from plugrad.dispatch.backends.primitives import core_primitives, is_primitive
from plugrad.dispatch.operator import Operator, all_operators, find_operator
from plugrad_cuda.kernels import array_kernels
from plugrad_cuda.kernels.namespace import CupyNamespace

PAGE = Path(__file__).resolve().parents[1] / "docs" / "operators.md"
OPS = Path(plugrad.__file__).parent / "ops"

INTRODUCTION = """\
# Operators and backends

Every operator of plugrad, {count} including in-place variants, and how backends provide it.
`python tools/operators_page.py` writes this page from the registry; `plugrad ops` shows the same
for the installed backends.

* *in-place*: there is a variant that writes into its first argument, `name_`.
* *gradient*: the result has a gradient; `by parts` means that it follows from the gradients of the
  operators that it is made of.
* *level*: `core` is what every backend must support, `full` what the CPU supports.
* *cpu*, *jax*, *cuda*: plugrad's own backends. *array API*: a backend from a namespace of the array
  API standard, here NumPy's. *core only*: a backend that has kernels only for the core primitives.
  `native` is a kernel, `derived` an in-place operator made from the functional one and a copy,
  `decomposed` made of operators that the backend can compute in turn. Otherwise the column lists
  the missing kernels.
* *made of*: the direct calls of the decomposition, for real numbers; a dash if there are none, but
  arrays are copied to or from the host. *Primitives*, {primitives} of them, have no decomposition;
  {core} are of level core.
"""


class _Kernels(Backend):
    """A backend with kernels of these names, used only for its list of kernels."""

    def __init__(self, name: str, kernels: Iterable[str]) -> None:
        super().__init__(name, array_type=np.ndarray)
        self._kernels = dict.fromkeys(kernels, np.asarray)

    def kernels(self) -> dict[str, Any]:
        return self._kernels


def _cuda_kernels() -> Iterable[str]:
    """The kernels of plugrad-cuda; its backend has none without a GPU."""
    return array_kernels(CupyNamespace())


@contextmanager
def _backends() -> Iterator[dict[str, ActiveBackend]]:
    others = {
        "cuda": _Kernels("cuda_page", _cuda_kernels()),
        "array API": Backend.from_array_namespace(np, "array_api_page"),
        "core only": _Kernels("core_only", [op.full_name for op in core_primitives()]),
    }
    installed = {name: find_backend(name) for name in ("cpu", "jax")}
    yield installed | {title: activate_backend(backend) for title, backend in others.items()}
    for backend in others.values():
        deactivate_backend(backend.name)


def _families() -> dict[str, list[Entry]]:
    return {
        file.stem: parse_entries(file.stem, yaml.safe_load(file.read_text("utf-8")))
        for file in family_files(OPS)
    }


def _operator(entry: Entry) -> Operator:
    found = find_operator(f"plugrad::{entry.schema.full_name}")
    assert found is not None, entry.schema.full_name
    return found


def _word(known: Availability, op: Operator) -> str:
    if known:
        return known.kind
    if known.missing == (short_name(op),):
        return "missing"
    return "missing: " + ", ".join(f"`{name}`" for name in known.missing)


def _made_of(op: Operator) -> str:
    if is_primitive(op):
        return "*primitive*"
    needed = needs_of(op)
    if needed is None:
        return ""
    return ", ".join(f"`{short_name(need)}`" for need in needed) or "–"


def _gradient(entry: Entry) -> str:
    if entry.composite:
        return "by parts"
    return "yes" if entry.derivatives else "no"


def _row(entry: Entry, has_inplace: bool, backends: dict[str, ActiveBackend]) -> str:
    op = _operator(entry)
    cells = [
        f"`{op.full_name}`",
        "yes" if has_inplace else "",
        _gradient(entry),
        op.level,
        *(_word(availability(op, active), op) for active in backends.values()),
        _made_of(op),
    ]
    return f"| {' | '.join(cells)} |"


def render() -> str:
    """The expected contents of the page."""
    own = [op for op in all_operators() if op.namespace == "plugrad"]
    primitives = [op for op in own if is_primitive(op)]
    parts = [
        INTRODUCTION.format(count=len(own), primitives=len(primitives), core=len(core_primitives()))
    ]
    with _backends() as backends:
        head = ("operator", "in-place", "gradient", "level", *backends, "made of")
        for family, entries in _families().items():
            variants = {entry.functional.schema.full_name for entry in entries if entry.functional}
            rows = [
                _row(entry, entry.schema.full_name in variants, backends)
                for entry in entries
                if entry.functional is None
            ]
            title = family.replace("_", " ").capitalize()
            table = [f"| {' | '.join(head)} |", "|" + " --- |" * len(head), *rows]
            parts.append(f"## {title}\n\n" + "\n".join(table) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
