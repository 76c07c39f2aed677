"""What is known to differ from PyTorch's table, by entry and kind, each with the reason."""

from __future__ import annotations

KNOWN: dict[str, dict[str, str]] = {}
