"""The variants: which compiled kernel serves which operator, and up to which size.

The greatest sizes are measured: beyond, plugrad-cpu's own kernel or one of plugrad-onednn is
faster. See README.md.
"""

from __future__ import annotations

from typing import Final

from plugrad.plugins import Variant
from plugrad_native import compiled

_REAL: Final = ("float32", "float64")

# By operator: the kernel.
_TABLE: Final[dict[str, str]] = {
    "_softmax": "softmax",
    "_log_softmax": "log_softmax",
    "_softmax_backward_data": "softmax_backward",
    "_log_softmax_backward_data": "log_softmax_backward",
    "native_layer_norm": "layer_norm",
    "native_layer_norm_backward": "layer_norm_backward",
    "gelu": "gelu",
    "gelu_backward": "gelu_backward",
    "silu": "silu",
    "silu_backward": "silu_backward",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
    "threshold_backward": "threshold_backward",
    "sum": "sum",
    "mean": "mean",
    "max.dim": "max_dim",
    "argmax": "argmax",
    "nll_loss_forward": "nll_loss",
    "nll_loss_backward": "nll_loss_backward",
    "mse_loss": "mse_loss",
    "mse_loss_backward": "mse_loss_backward",
    "cat": "cat",
    "stack": "stack",
}

VARIANTS: Final = [
    Variant(
        operator,
        compiled.kernel(function),
        name="native",
        features=compiled.NEEDS[compiled.name],
        dtypes=_REAL,
        priority=1,
        problem=compiled.problem,
    )
    for operator, function in _TABLE.items()
]
