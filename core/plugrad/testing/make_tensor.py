"""make_tensor: random tensors for tests."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad.dtype import BOOL, INTEGER, DType, iinfo
from plugrad.tensor.calls.annotations import explains


@explains
def make_tensor(
    *shape: Any,
    dtype: DType,
    device: Any = "cpu",
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
) -> Any:
    """A tensor of random elements, uniform in [low, high).

    The range is [-9, 9) if not given, [0, 10) for uint8, and both values for bool.

    Args:
        noncontiguous: leave gaps in memory, where there are two elements or more.
        exclude_zero: put the smallest positive number, or 1, in place of zeros.

    Raises:
        ValueError: `low` is not below `high`.

    >>> import plugrad
    >>> x = plugrad.testing.make_tensor(2, 3, dtype=plugrad.float64, low=0, high=1)
    >>> x.shape
    plugrad.Size([2, 3])
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    lowest, highest = (
        (0, 2)
        if dtype.category == BOOL
        else (0, 10)
        if dtype is plugrad.uint8
        else (
            -9,
            9,
        )
    )
    start = lowest if low is None else low
    end = highest if high is None else high
    if start >= end:
        raise ValueError(f"make_tensor: `low` must be less than `high`, but got {start} >= {end}")
    if dtype.category <= INTEGER:
        if dtype.category == INTEGER:
            limits = iinfo(dtype)
            start, end = max(start, limits.min), min(end, limits.max + 1)
        made = plugrad.randint(int(start), int(end), sizes, dtype=dtype, device=device)
    else:
        made = plugrad.rand(sizes, dtype=dtype, device=device) * (end - start)
        made = made + (complex(start, start) if dtype.is_complex else start)
    if exclude_zero:
        smallest = plugrad.finfo(dtype).tiny if dtype.is_differentiable else 1
        made[made == 0] = smallest
    if noncontiguous and made.numel() > 1:
        made = plugrad.stack([made, made], -1)[..., 0]
    return made.requires_grad_() if requires_grad else made
