"""Known differences from PyTorch's table, by entry and kind, each with the reason."""

from __future__ import annotations

_STATISTICS = (
    "The statistics of 16-bit inputs stay in float32, as PyTorch's do on GPUs, since gradients are "
    "computed from them."
)

KNOWN: dict[str, dict[str, str]] = {
    "as_strided_scatter": {
        "gradient": "PyTorch's gradient of `input` is not zero where `src` replaces elements; "
        "finite differences agree with plugrad.",
    },
    "chalf": {"value": "No array library has complex numbers of 16-bit floats, complex32."},
    "cholesky_inverse": {
        "forward mode": "PyTorch's tangents are wrong, also for triangular inputs and tangents; "
        "finite differences agree with plugrad.",
    },
    "logcumsumexp": {
        "forward mode": "PyTorch's tangents are right to 1e-6 in float64, and nan for some complex "
        "numbers; finite differences agree with plugrad.",
    },
    "matrix_exp": {
        "value": "PyTorch's powers overflow in bfloat16 and give nan where the exponential is "
        "finite.",
    },
    "native_batch_norm": {"value": _STATISTICS},
    "native_layer_norm": {"value": _STATISTICS},
    "triangular_solve": {
        "forward mode": "PyTorch's tangents count elements outside of the triangle, and forget "
        "`transpose`; finite differences agree with plugrad.",
    },
}
