"""Coefficients for backends with a library that lacks the error function."""

from plugrad.ops.error_function import (
    FAR_P,
    FAR_Q,
    MIDDLE_P,
    MIDDLE_Q,
    NEAR_LIMIT,
    NEAR_P,
    NEAR_Q,
)

__all__ = [
    "FAR_P",
    "FAR_Q",
    "MIDDLE_P",
    "MIDDLE_Q",
    "NEAR_LIMIT",
    "NEAR_P",
    "NEAR_Q",
]
