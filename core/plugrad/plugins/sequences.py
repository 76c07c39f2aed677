"""Sequences of several lengths, packed: what layers do with them step by step."""

# Interpreted: it only names what the core has.
from __future__ import annotations

from plugrad.ops.on_demand.composite.recurrent import walk

__all__ = ["walk"]
