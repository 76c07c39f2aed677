"""Operators with `structure: elementwise`: any number of operands, promoted and broadcast together.

The wrappers in `kernels` take one or two operands, with a fast path. This one is for functions such
as the incomplete beta function, where the kernel takes most of the time.
"""

from __future__ import annotations

from typing import Any, Final, final

import numpy as np

from plugrad.dispatch.backends.active import find_backend
from plugrad.dtype import DType
from plugrad.tensor.base import TensorBase, sizes_of, wrap
from plugrad.tensor.calls.arguments import check_scalar_size, raise_argument_error
from plugrad.tensor.calls.broadcasting import broadcast_shapes
from plugrad.tensor.calls.overridable import accept_foreign, stand_in
from plugrad.tensor.calls.promotion import (
    common_dtype,
    float_result,
    is_scalar,
    scalar_fits,
    to_dtype,
)

_FLOATING: Final = ("float", "complex")


@final
class PromoteAll:
    """The `prepare` of an elementwise operator: all tensors in one dtype, with shapes that fit.

    Arguments that are not tensors are passed on. The entry's own `prepare`, which only checks, runs
    first.
    """

    def __init__(self, result: str, check: Any) -> None:
        self.to_float: bool = result in _FLOATING
        self.check: Any = check

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        check = self.check
        if check is not None:
            check(*args)
        dtype: DType = common_dtype(tuple([x for x in args if isinstance(x, TensorBase)]))
        if self.to_float:
            dtype = float_result(dtype)
        shape: tuple[int, ...] = ()
        prepared: list[Any] = []
        for value in args:
            if isinstance(value, TensorBase):
                shape = broadcast_shapes(shape, sizes_of(value))
                prepared.append(to_dtype(value, dtype))
            else:
                prepared.append(value)
        return tuple(prepared)


def operands(
    values: tuple[Any, ...], function: str, names: tuple[str, ...], receivers: int = 0
) -> list[TensorBase]:
    """The operands of a function, with 0-dim tensors in place of numbers.

    Only the kind of a number affects the dtype, so it gets the dtype of the result.

    The first `receivers` are what a method was called on, which positions leave out.

    Raises TypeError if an operand is neither a Tensor nor a number, or none is a Tensor.
    """
    first: TensorBase | None = None
    foreign = False
    for position, value in enumerate(values):
        if isinstance(value, TensorBase):
            first = value if first is None else first
        elif accept_foreign(value):
            foreign = True
        elif not is_scalar(value):
            place = position + 1 - receivers
            raise_argument_error(function, names[position], place, "Tensor", value)
    if foreign:
        return [value if isinstance(value, TensorBase) else stand_in() for value in values]
    if first is None:
        raise TypeError(
            f"{function}(): one of the arguments {', '.join(names)} must be Tensor, got numbers "
            "only"
        )
    dtype: DType = common_dtype(values)
    device = first.device
    backend = find_backend(device.type).backend
    found: list[TensorBase] = []
    for value in values:
        if isinstance(value, TensorBase):
            found.append(value)
        else:
            if isinstance(value, int):
                check_scalar_size(value)
            # A number that the integers beside it cannot hold counts as a float.
            kind = dtype if scalar_fits(value, dtype) else float_result(dtype)
            with np.errstate(over="ignore", invalid="ignore"):
                array = backend.from_host(np.array(value).astype(kind.numpy), device.index or 0)
            found.append(wrap(array, kind, device))
    return found
