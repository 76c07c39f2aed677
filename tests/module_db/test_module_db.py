"""PyTorch's own table of modules with sample inputs, run on plugrad.

All samples take some minutes: `make test ORACLE=torch ARGS="-m long tests/module_db"`.
`python -m tests.module_db NAME` prints the differences. See docs/module_db.md.
"""

from __future__ import annotations

import importlib.util
import os
import zlib

import pytest

if os.environ.get("ORACLE") != "torch":
    pytest.skip("needs ORACLE=torch", allow_module_level=True)

import torch

from tests.module_db.check import error_findings, findings
from tests.module_db.entries import DTYPES, entries
from tests.module_db.known import KNOWN
from tests.module_db.page import PAGE, render
from tests.torch_tables.findings import unknown

ENTRIES = entries()
MODES = (True, False)
FEW = 2
# Which backends this run has: `make test BACKENDS=...` names them.
HAS_JAX = all(importlib.util.find_spec(name) for name in ("jax", "plugrad_jax"))


def test_the_page_lists_what_is_known() -> None:
    assert PAGE.read_text("utf-8") == render(), "run `python -m tests.module_db.page`"


def test_what_is_known_is_of_the_table() -> None:
    assert {*KNOWN} <= {*ENTRIES}


@pytest.mark.parametrize("name", ENTRIES)
def test_a_few_samples(name: str) -> None:
    entry = ENTRIES[name]
    # Derivatives are tested in double precision, and one more dtype, which the name decides.
    other = getattr(torch, DTYPES[1 + zlib.crc32(name.encode()) % (len(DTYPES) - 1)])
    found = [f for mode in MODES for f in findings(entry, torch.float64, mode, FEW)]
    found += [f for mode in MODES for f in findings(entry, other, mode, FEW, deep=False)]
    found += error_findings(entry)
    assert unknown(KNOWN, name, found) == []


@pytest.mark.long
@pytest.mark.parametrize("name", ENTRIES)
def test_all_samples(name: str) -> None:
    entry = ENTRIES[name]
    dtypes = [getattr(torch, dtype) for dtype in DTYPES]
    found = [f for dtype in dtypes for mode in MODES for f in findings(entry, dtype, mode, 10**6)]
    assert unknown(KNOWN, name, found) == []


@pytest.mark.long
@pytest.mark.parametrize("name", ENTRIES if HAS_JAX else ())
def test_samples_on_jax(name: str) -> None:
    entry = ENTRIES[name]
    dtypes = (torch.float32, torch.bfloat16)
    found = [
        f
        for dtype in dtypes
        for mode in MODES
        # Each shape of each operator is compiled once.
        for f in findings(entry, dtype, mode, 4, "jax:0", deep=False)
    ]
    assert unknown(KNOWN, name, found) == []
