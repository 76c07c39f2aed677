"""Indexing: the shared suite."""

from __future__ import annotations

from tests.core.ops.harness import OpSuite, collect
from tests.core.ops.samples import indexing


class TestIndexing(OpSuite):
    cases = collect(indexing.CASES)
