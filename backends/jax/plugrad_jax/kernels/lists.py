"""Lists of arrays: one program for all of them."""

from __future__ import annotations

from typing import Any, Final

from plugrad.plugins.lists import fused_lists, kernel_of
from plugrad_jax.kernels import pointwise, special_functions
from plugrad_jax.kernels.programs import Kernel, fitting, program

_ON_ARRAYS: Final[dict[str, Kernel]] = {**special_functions.KERNELS, **pointwise.KERNELS}
# Those that look at their number.
_BY_NUMBER: Final = ("pow.Tensor_Scalar",)

_one_by_one: Final = fused_lists(_ON_ARRAYS)
_together: Final = program(_one_by_one, 0)


def _fused(function: str, first: Any, second: Any, third: Any, numbers: Any) -> Any:
    if kernel_of(_ON_ARRAYS, function, bool(numbers)) is None:
        return NotImplemented
    if function in _BY_NUMBER:
        return _one_by_one(function, first, second, third, numbers)
    given = [fitting(number, first[0].dtype) for number in numbers]
    return _together(function, first, second, third, given)


KERNELS: Final[dict[str, Kernel]] = {"_fused_lists": _fused}
