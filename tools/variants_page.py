"""Writes docs/variants.md, the variants of kernels that plugrad's own packages provide:
`python tools/variants_page.py`.

To be run again when plugrad-native or plugrad-onednn have changed; a test fails until then. The
packages' declarations are read from the checkout, so the page is the same on every machine: neither
a compiler nor oneDNN is needed, and the processor does not matter.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from plugrad.plugins import Variant

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "variants.md"
# By distribution: its folder in plugins/, and the backend that its variants are for.
PROVIDERS = {"plugrad-native": ("native", "cpu"), "plugrad-onednn": ("onednn", "cpu")}

INTRODUCTION = """\
# Variants of kernels

Some kernels are best only on certain processors, for some dtypes or for some sizes: they are
[variants](plugins.md#variants-chosen-by-capability). This page lists the {count} variants of
plugrad's own packages. `pip install plugrad[fast]` installs both packages. `plugrad ops NAME` shows
which variants your machine uses and what the others lack, those of other packages included; in a
trace or a profile you see which one ran.

* *plugrad-native* has kernels in C, compiled three times: for processors with AVX-512, for those
  with AVX2 and FMA3, and for all others. The best build that the processor can run is used.
* *plugrad-onednn* calls oneDNN, whose shared library it needs: `pip install onednn-cpu-gomp` on
  Linux with x86-64.

A variant runs if the processor and the call meet its requirements; sizes are those of the first
array. If it declines, the next variant is tried, and finally the backend's own kernel.
The rows of an operator have that order. A name without an overload stands for all overloads.
`python tools/variants_page.py` writes this page from the packages' declarations.

| operator | backend | provided by | variant | processor | runs for |
| --- | --- | --- | --- | --- | --- |
"""


class Row(NamedTuple):
    """A variant in words, as the page has it; rows are sorted by their fields in this order."""

    operator: str
    rank: int
    backend: str
    owner: str
    name: str
    processor: str
    call: str


def render() -> str:
    """The page as it should be."""
    found = sorted(
        row
        for owner, (folder, backend) in PROVIDERS.items()
        for row in rows(owner, folder, backend)
    )
    lines = [
        f"| `{row.operator}` | {row.backend} | {row.owner} | {row.name} | {row.processor} "
        f"| {row.call} |"
        for row in found
    ]
    return INTRODUCTION.format(count=len(lines)) + "\n".join(lines) + "\n"


def rows(owner: str, folder: str, backend: str) -> list[Row]:
    """The variants that a distribution declares."""
    path = str(ROOT / "plugins" / folder)
    if path not in sys.path:
        sys.path.append(path)  # after what is installed
    declared: list[Variant] = import_module(f"plugrad_{folder}.variants").VARIANTS
    return [
        Row(one.operator, -one.priority, backend, owner, one.name, processor(owner, one), call(one))
        for one in declared
    ]


def processor(owner: str, variant: Variant) -> str:
    """What the processor must have."""
    if owner == "plugrad-native" and variant.name != "native-wide":
        return "any (three builds)"
    return " and ".join(variant.features) or "any"


def call(variant: Variant) -> str:
    """For which calls it runs."""
    dtypes = " or ".join(variant.dtypes) or "all dtypes"
    parts = [dtypes, "contiguous"] if variant.contiguous else [dtypes]
    least = f"from {variant.least:,}" if variant.least > 1 else ""
    most = f"up to {variant.most:,}" if variant.most is not None else ""
    if least or most:
        parts.append(" ".join(part for part in (least, most, "elements") if part))
    return ", ".join(parts)


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
