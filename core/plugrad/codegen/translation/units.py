"""Puts the C files of small modules together: GCC takes 0.08 seconds for the headers of each file.

`setup.py` compiles what `write_units` gives it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

# Characters of C, about a second's work. A unit ends with the file that reaches it.
ENOUGH = 300_000

# What each C file has for itself, by the same names.
_OWN = re.compile(r"^static [^\n=;]*\b(plugrad_\w+)(?=[(\[])", re.MULTILINE)
_BETWEEN_NAMES = "___"


def write_units(sources: Iterable[str]) -> list[str]:
    """C files to compile in the place of these, which are in one folder: some include several.

    >>> import os, tempfile
    >>> from plugrad.codegen.translation.units import write_units
    >>> os.chdir(tempfile.mkdtemp())
    >>> for name in ("__native_a___b.c", "__native_a___c.c"):
    ...     _ = open(name, "w").write("static void plugrad_trace(int line) {}\\n")
    >>> write_units(["__native_a___b.c", "__native_a___c.c"])
    ['__unit_a_1.c']
    """
    texts = {path: path.read_text() for path in map(Path, sources)}
    units = []
    in_order = sorted(texts, key=lambda path: (_folder(path), path))
    for folder, paths in groupby(in_order, _folder):
        together = _together({path: len(texts[path]) for path in paths})
        for number, members in enumerate(together, 1):
            if len(members) == 1:
                units.append(str(members[0]))
                continue
            unit = members[0].with_name(f"__unit_{folder}_{number}.c")
            unit.write_text(_including({path.name: texts[path] for path in members}))
            units.append(str(unit))
    return units


def _folder(path: Path) -> str:
    """What the modules of a package share in the names of their C files."""
    return path.stem.removeprefix("__native_").rpartition(_BETWEEN_NAMES)[0]


def _together(lengths: Mapping[Path, int]) -> Iterator[list[Path]]:
    """C files of a package, in lists of about the same length; a long one is alone."""
    members: list[Path] = []
    total = 0
    for path, length in lengths.items():
        if length >= ENOUGH:
            yield [path]
            continue
        members.append(path)
        total += length
        if total >= ENOUGH:
            yield members
            members, total = [], 0
    if members:
        yield members


def _including(texts: Mapping[str, str]) -> str:
    """C that includes these files. It differs if one of them does."""
    lines = []
    for number, (name, text) in enumerate(texts.items()):
        own = sorted(set(_OWN.findall(text)))
        lines += [f"#define {each} {each}_{number}" for each in own]
        lines.append(f'#include "{name}" /* {hashlib.sha256(text.encode()).hexdigest()} */')
        lines += [f"#undef {each}" for each in own]
    return "\n".join(lines) + "\n"
