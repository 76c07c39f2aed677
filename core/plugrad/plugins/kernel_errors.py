"""Errors for kernels to raise, with PyTorch's messages."""

from plugrad.dispatch.backends.kernel_errors import (
    NEGATIVE_REPEATS,
    NO_PROBABILITIES,
    NO_TARGETS,
    NOT_A_VIEW,
    OTHER_OUTPUT_SIZE,
    OUTSIDE_EMPTY,
    OUTSIDE_TABLE,
    TOO_FEW_ELEMENTS,
    no_class,
    no_one_hot_class,
    no_signs,
    not_implemented,
    one_hot_classes,
    out_of_bounds,
    out_of_range,
    unlike_indices,
    unlike_values,
)
from plugrad.dispatch.backends.matrix_errors import check_info, matrix_error
from plugrad.dispatch.settings import alert_not_deterministic

__all__ = [
    "NEGATIVE_REPEATS",
    "NOT_A_VIEW",
    "NO_PROBABILITIES",
    "NO_TARGETS",
    "OTHER_OUTPUT_SIZE",
    "OUTSIDE_EMPTY",
    "OUTSIDE_TABLE",
    "TOO_FEW_ELEMENTS",
    "alert_not_deterministic",
    "check_info",
    "matrix_error",
    "no_class",
    "no_one_hot_class",
    "no_signs",
    "not_implemented",
    "one_hot_classes",
    "out_of_bounds",
    "out_of_range",
    "unlike_indices",
    "unlike_values",
]
