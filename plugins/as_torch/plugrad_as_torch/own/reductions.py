"""`torch.nn._reduction`: reductions of losses as numbers, and from two older flags."""

from __future__ import annotations

import warnings

from plugrad_as_torch.own.layers import get_enum

__all__ = ["get_enum", "legacy_get_enum", "legacy_get_string"]


def legacy_get_string(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> str:
    """The reduction that two older flags mean; None is True.

    >>> legacy_get_string(False, True, emit_warning=False)
    'sum'
    """
    found = "none"
    if reduce is None or reduce:
        found = "mean" if size_average is None or size_average else "sum"
    if emit_warning:
        warnings.warn(
            "size_average and reduce args will be deprecated, please use "
            f"reduction='{found}' instead.",
            stacklevel=2,
        )
    return found


def legacy_get_enum(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> int:
    """`get_enum` of `legacy_get_string`."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
