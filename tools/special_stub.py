"""Writes the stub of `plugrad.special`: `python tools/special_stub.py`.

To be run again when the operators of plugins/special have changed; a test says so.
"""

from __future__ import annotations

from pathlib import Path

from plugrad.codegen import stubs
from plugrad_special import special
from plugrad_special.plugin import FAMILIES, OPS

STUB = Path(str(special.__file__)).with_suffix(".pyi")


def text() -> str:
    aliases = [f"from plugrad import {real} as {name}" for name, real in special.ALIASES.items()]
    functions = stubs(OPS / f"{family}.yaml" for family in FAMILIES)
    return functions + "\n" + "\n".join(aliases) + "\n\nALIASES: dict[str, str]\n"


if __name__ == "__main__":
    STUB.write_text(text(), encoding="utf-8")
