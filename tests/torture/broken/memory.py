"""Asks for more memory than there is."""

from __future__ import annotations

NAME = "memory"


def run_case(seed: int) -> None:
    bytearray(1 << 45)
