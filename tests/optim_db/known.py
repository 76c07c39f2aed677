"""Known differences from PyTorch's table of optimizers, by entry and kind, each with the reason."""

from __future__ import annotations

KNOWN: dict[str, dict[str, str]] = {
    "LBFGS": {
        "state": "In bfloat16 and float16 it stops where its steps are lost in rounding, which "
        "both libraries do at other places; the parameters agree.",
    },
}
