"""PyTorch's own table of optimizers with sample options, run on plugrad.

`python -m tests.optim_db NAME` prints the differences. See docs/optim_db.md.
"""

from __future__ import annotations

import os
import zlib

import pytest

if os.environ.get("ORACLE") != "torch":
    pytest.skip("needs ORACLE=torch", allow_module_level=True)

import torch

from tests.optim_db.check import error_findings, findings
from tests.optim_db.entries import DTYPES, entries
from tests.optim_db.known import KNOWN
from tests.optim_db.page import PAGE, render
from tests.torch_tables.findings import unknown

ENTRIES = entries()


def test_the_page_lists_what_is_known() -> None:
    assert PAGE.read_text("utf-8") == render(), "run `python -m tests.optim_db.page`"


def test_what_is_known_is_of_the_table() -> None:
    assert {*KNOWN} <= {*ENTRIES}


@pytest.mark.parametrize("name", ENTRIES)
def test_options_in_float64_and_one_more_dtype(name: str) -> None:
    other = DTYPES[1 + zlib.crc32(name.encode()) % (len(DTYPES) - 1)]
    found = [*findings(ENTRIES[name], torch.float64, 10**6), *error_findings(ENTRIES[name])]
    found += findings(ENTRIES[name], getattr(torch, other), 3)
    assert unknown(KNOWN, name, found) == []


@pytest.mark.long
@pytest.mark.parametrize("name", ENTRIES)
def test_all_options(name: str) -> None:
    dtypes = [getattr(torch, dtype) for dtype in DTYPES]
    found = [f for dtype in dtypes for f in findings(ENTRIES[name], dtype, 10**6)]
    assert unknown(KNOWN, name, found) == []
