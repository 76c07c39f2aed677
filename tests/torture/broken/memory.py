"""Requests more memory than available."""

from __future__ import annotations

NAME = "memory"


def run_case(seed: int) -> None:
    bytearray(1 << 45)
