"""The operator generator: YAML entries in, typed Python out.

It runs when the core is built, on `ops/*.yaml`, and at load time on a third party's YAML
(`plugrad.codegen.load`). It needs nothing that it generates.
"""

from __future__ import annotations

from plugrad.codegen.generate import generate, generate_family
from plugrad.codegen.load import load, operators_of, unload
from plugrad.codegen.model import Entry, EntryError, parse_entries
from plugrad.codegen.stub import stubs

__all__ = [
    "Entry",
    "EntryError",
    "generate",
    "generate_family",
    "load",
    "operators_of",
    "parse_entries",
    "stubs",
    "unload",
]
