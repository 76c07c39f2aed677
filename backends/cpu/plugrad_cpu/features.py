"""The processor's features, as NumPy detects them, and those that kernels may use."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Final

_BASELINE: Final = frozenset(
    {
        *("mmx", "sse", "sse2", "sse3", "ssse3", "sse41", "sse42", "popcnt", "cx16", "lahf"),
        *("x86_v2", "neon", "neon_fp16", "neon_vfpv4", "asimd"),
    }
)
_AVX2: Final = _BASELINE | {
    *("avx", "avx2", "f16c", "fma3", "fma4", "xop", "bmi", "bmi2", "lzcnt", "movbe", "x86_v3"),
    *("gfni", "vaes", "vpclmulqdq"),
}
# What each allows; None for all there is. The names are PyTorch's, for ATEN_CPU_CAPABILITY.
CAPABILITIES: Final = {"default": _BASELINE, "avx2": _AVX2, "avx512": None, "sve": None}


def usable_features(capability: str) -> dict[str, bool]:
    """The features that NumPy looks for, by name in lower case: whether kernels may use them.

    Raises:
        ValueError: `capability` is none of `CAPABILITIES`, nor empty.
    """
    if capability and capability not in CAPABILITIES:
        raise ValueError(
            f"unknown processor capability {capability!r}; expected one of "
            f"{', '.join(CAPABILITIES)}"
        )
    allowed = CAPABILITIES[capability] if capability else None
    return {
        name: present and (allowed is None or name in allowed)
        for name, present in _features_here().items()
    }


@cache
def _features_here() -> dict[str, bool]:
    # NumPy has no public name for what it chooses its own loops by.
    found: dict[str, bool] = importlib.import_module(
        "numpy._core._multiarray_umath"
    ).__cpu_features__
    return {name.lower(): present for name, present in found.items()}
