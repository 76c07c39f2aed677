"""PyTorch's own table of operators with sample inputs, run on plugrad.

All samples take most of an hour: `make test ORACLE=torch ARGS="-m long tests/op_db"`.
`python -m tests.op_db NAME` prints the differences. See docs/op_db.md.
"""

from __future__ import annotations

import os
import zlib
from typing import TYPE_CHECKING

import pytest

if os.environ.get("ORACLE") != "torch":
    pytest.skip("needs ORACLE=torch", allow_module_level=True)

import torch

from tests.op_db.check import error_findings, findings
from tests.op_db.entries import ABSENT_DTYPES, DTYPES, entries
from tests.op_db.known import KNOWN
from tests.op_db.page import PAGE, render
from tests.torch_tables.findings import unknown

if TYPE_CHECKING:
    from typing import Any

ENTRIES = entries()
FEW = 2


def _dtypes_of(entry: Any) -> list[torch.dtype]:
    taken = [getattr(torch, name) for name in DTYPES]
    return [dtype for dtype in taken if dtype in entry.dtypes]


def test_the_page_lists_what_is_known() -> None:
    assert PAGE.read_text("utf-8") == render(), "run `python -m tests.op_db.page`"


def test_what_is_known_is_of_the_table() -> None:
    assert {*KNOWN} <= {*ENTRIES}
    assert {*ABSENT_DTYPES} <= {entry.name for entry in ENTRIES.values()}


@pytest.mark.parametrize("name", ENTRIES)
def test_a_few_samples(name: str) -> None:
    entry = ENTRIES[name]
    dtypes = _dtypes_of(entry)
    # Derivatives are tested in double precision, values in one more dtype, which the name decides.
    exact = [dtype for dtype in dtypes if dtype is torch.float64] or dtypes[:1]
    others = [dtype for dtype in dtypes if dtype not in exact]
    found = [finding for dtype in exact for finding in findings(entry, dtype, FEW)]
    if others:
        other = others[zlib.crc32(name.encode()) % len(others)]
        found += findings(entry, other, FEW, deep=False)
    assert unknown(KNOWN, name, found) == []


@pytest.mark.long
@pytest.mark.parametrize("name", ENTRIES)
def test_all_samples(name: str) -> None:
    entry = ENTRIES[name]
    found = [f for dtype in _dtypes_of(entry) for f in findings(entry, dtype, 1_000_000)]
    found += error_findings(entry)
    assert unknown(KNOWN, name, found) == []
