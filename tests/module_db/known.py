"""Known differences from PyTorch's table of modules, by entry and kind, each with the reason."""

from __future__ import annotations

_POOLING = "PyTorch has no kernel for averages of 16-bit volumes on the CPU; plugrad computes them."
_LOSS = "PyTorch has no kernel for complex numbers; plugrad takes their absolute difference."
_GRADIENT = "PyTorch records no gradient for complex numbers; plugrad does."
_ROUNDING = (
    "In bfloat16, intermediate results are rounded at other places; float32 and float64 agree."
)

KNOWN: dict[str, dict[str, str]] = {
    "AvgPool3d": {"dtype": _POOLING},
    "Bilinear": {"dtype": _GRADIENT},
    "Embedding": {"dtype": _GRADIENT},
    "FractionalMaxPool3d": {"value": _ROUNDING},
    "HuberLoss": {
        "dtype": _LOSS,
        "error": "TypeError too; the message names the argument and the types in plugrad's words.",
    },
    "LPPool3d": {"dtype": _POOLING},
    "LocalResponseNorm": {"dtype": _POOLING},
    "SiLU": {"dtype": _GRADIENT},
    "SmoothL1Loss": {"dtype": _LOSS},
    "TransformerDecoderLayer": {"value": _ROUNDING},
}
