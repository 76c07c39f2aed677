"""Finds one fault in two ways."""

from __future__ import annotations

from tests.torture.finding import Finding, counts

NAME = "wrong"


def run_case(seed: int) -> Finding | None:
    counts["looks"] += 3
    return Finding(f"number {seed} is odd", f"print({seed} % 2)") if seed % 2 else None
