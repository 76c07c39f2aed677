"""Writes the table of docs/scipy.md: SciPy's functions on plugrad's tensors.

    python -m tools.scipy_page

The functions are those that SciPy lists as following the array API standard.
"""

from __future__ import annotations

import os

os.environ["SCIPY_ARRAY_API"] = "1"  # SciPy reads it at import

import importlib
import re
from collections import Counter
from pathlib import Path
from typing import Any

import scipy
from scipy._lib._array_api import xp_capabilities_table

from tools.scipy_support.calls import CALLS, DEFAULTS
from tools.scipy_support.trials import Outcome, try_out

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "scipy.md"
START, END = "<!-- table: python -m tools.scipy_page -->", "<!-- end of the table -->"


def listed() -> dict[str, dict[str, Any]]:
    """The public functions and classes that SciPy lists, by module and name."""
    modules = {name: importlib.import_module(f"scipy.{name}") for name in CALLS}
    wanted = {
        function
        for function, capabilities in xp_capabilities_table.items()
        if not capabilities["np_only"] and not capabilities["out_of_scope"]
    }
    classes = {
        function.__qualname__.partition(".")[0]
        for function in wanted
        if "." in getattr(function, "__qualname__", "")
    }
    found: dict[str, dict[str, Any]] = {}
    for name, module in modules.items():
        found[name] = {
            public: member
            for public in module.__all__
            if callable(member := getattr(module, public))
            and (member in wanted or (isinstance(member, type) and public in classes))
        }
    return found


def call_of(module: str, name: str, function: Any) -> str:
    """The call that tests a function; for a special function without one, a call with as many
    numbers as it takes."""
    call = CALLS[module].get(name) or DEFAULTS.get(module)
    if call is not None:
        return call
    if module == "special":
        plain = getattr(function, "__wrapped__", function)
        return f"f({', '.join('pqu'[: getattr(plain, 'nin', 1)])})"
    return "_ no call"


def rows() -> list[tuple[str, str, Outcome]]:
    result = []
    for module, functions in listed().items():
        for name in sorted(functions, key=str.lower):
            call = call_of(module, name, functions[name])
            outcome = (
                Outcome("-", "-", call[2:]) if call[0] == "_" else try_out(functions[name], call)
            )
            result.append((module, name, outcome))
    return result


def table(found: list[tuple[str, str, Outcome]]) -> str:
    values = Counter(outcome.value for _, _, outcome in found)
    gradients = Counter(outcome.gradient for _, _, outcome in found)
    compiled = sum(outcome.remark == "compiled code" for _, _, outcome in found)
    lines = [
        f"SciPy {scipy.__version__} lists {len(found)} functions. The value of {values['equal']} "
        f"is NumPy's. Gradients of {gradients['checked']} are checked; {compiled} compute in "
        "compiled code, where gradients end. The others have no floating point argument that their "
        "result depends on, or the remark says what happens.",
    ]
    for module in dict.fromkeys(module for module, _, _ in found):
        lines += ["", f"### scipy.{module}", "", "| function | value | gradient | remark |"]
        lines.append("| --- | --- | --- | --- |")
        lines += [
            f"| `{name}` | {outcome.value} | {outcome.gradient} | {outcome.remark} |"
            for each, name, outcome in found
            if each == module
        ]
    return "\n".join(lines)


def main() -> None:
    text = PAGE.read_text()
    made = f"{START}\n\n{table(rows())}\n\n{END}"
    pattern = re.escape(START) + ".*" + re.escape(END)
    PAGE.write_text(re.sub(pattern, lambda _: made, text, flags=re.DOTALL))
    print(PAGE)


if __name__ == "__main__":
    main()
