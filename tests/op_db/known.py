"""What is known to differ from PyTorch's table, by entry and kind, each with the reason."""

from __future__ import annotations

KNOWN: dict[str, dict[str, str]] = {
    "logcumsumexp": {
        "forward mode": "PyTorch's tangents are right to 1e-6 in float64, and nan for some complex "
        "numbers; finite differences agree with plugrad.",
    },
    "matrix_exp": {
        "value": "PyTorch's powers overflow in bfloat16 and give nan where the exponential is "
        "finite.",
    },
}
