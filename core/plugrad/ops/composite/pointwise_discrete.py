"""Steps by comparison; divisors, neighbours and parts of numbers on the host."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad._generated import functions as F
from plugrad.dispatch.operator import find_operator
from plugrad.dtype import DType, int32
from plugrad.ops.prepare import pointwise_discrete as prepare
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.promotion import to_dtype
from plugrad.tensor.calls.schema_facts import named_results
from plugrad.tensor.interop.arrays import from_host, host_array

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def heaviside(self: Tensor, values: Tensor) -> Tensor:
    prepare.check_heaviside(self, values, 1)
    step = F._to_copy(F.gt(self, 0), self.dtype)
    return F.where(F.eq(self, 0), values, step)


def on_host(function: Any, dtype: DType, *tensors: TensorBase) -> TensorBase:
    """A NumPy function of tensors that are cast to `dtype` first, the result in it too."""
    arrays = [host_array(to_dtype(tensor, dtype)) for tensor in tensors]
    with np.errstate(all="ignore"):
        found = np.asarray(function(*arrays))
    first = next((tensor for tensor in tensors if not tensor.device.is_host), tensors[0])
    return from_host(found.astype(dtype.numpy, copy=False), dtype, first.device)


def gcd(self: Tensor, other: Tensor) -> TensorBase:
    return on_host(np.gcd, prepare.integral(self, other, "gcd_cpu"), self, other)


def lcm(self: Tensor, other: Tensor) -> TensorBase:
    return on_host(np.lcm, prepare.integral(self, other, "lcm_cpu"), self, other)


def nextafter(self: Tensor, other: Tensor) -> TensorBase:
    return on_host(np.nextafter, prepare.floating(self, other, "nextafter_cpu"), self, other)


def frexp(self: Tensor) -> Any:
    prepare.frexp(self)
    array = host_array(self)
    wide = array.astype(np.float32) if array.dtype.itemsize == 2 else array
    mantissa, exponent = np.frexp(wide)
    op = find_operator("plugrad::frexp.Tensor")
    assert op is not None
    return named_results(
        op,
        from_host(np.asarray(mantissa).astype(array.dtype), self.dtype, self.device),
        from_host(np.asarray(exponent, np.int32), int32, self.device),
    )
