"""Convolution, plain and transposed, and its gradients.

A transposed convolution is the gradient of a plain one with respect to its input: input and result
change roles. So both use the same three primitives.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from plugrad.plugins.windows import Windows, on_windows
from plugrad_onednn.primitives import (
    BIAS,
    DIFF_BIAS,
    DIFF_DST,
    DIFF_SRC,
    DIFF_WEIGHTS,
    DST,
    FORWARD,
    SHARED,
    SRC,
    WEIGHTS,
    Ints,
    Plan,
    describe,
    dims,
    element_strides,
    kind_of,
    layout,
    plan_for,
    row_major,
)

Array = Any
Mask = tuple[bool, bool, bool]

_DIRECT: Final = 1
# The least number of products in a call: below it the plain kernel is as fast.
LEAST_PRODUCTS: Final = 1 << 12
# Up to this number of channels in a group's input the plain kernel is faster at the gradient of
# filters.
_FEW_CHANNELS: Final = 3


class _Shape:
    """The shapes of a plain convolution.

    Attributes:
        large, small: the shapes of its input and its result.
        filters: (groups, channels out, channels in, *taps), the first one only if there are
            several groups.
        after: how far the windows extend past the end; negative where they do not reach it.
    """

    def __init__(
        self, large: Ints, small: Ints, weight: Array, windows: Windows, groups: int
    ) -> None:
        self.large, self.small = large, small
        self.kind = kind_of(weight)
        self.filters: Ints = weight.shape
        strides = element_strides(weight)
        if groups > 1:
            out = weight.shape[0] // groups
            self.filters = (groups, out, *weight.shape[1:])
            if strides is not None:
                strides = (strides[0] * out, *strides)
        self.filter_strides = strides
        self.stride, self.dilation = windows.stride, windows.dilation
        self.before = windows.padding
        self.after = tuple(
            (out - 1) * s + (taps - 1) * d + 1 - size - p
            for out, s, taps, d, size, p in zip(
                small[2:],
                self.stride,
                windows.kernel,
                self.dilation,
                large[2:],
                self.before,
                strict=True,
            )
        )
        sizes = (large, small, self.filters, self.stride, self.before, self.dilation)
        self.key = (*sizes, self.kind)

    def layout(self, shape: Ints, strides: Ints | None) -> Any:
        return layout(shape, strides, self.kind)

    def products(self) -> int:
        """How many multiplications it takes."""
        return self.small[0] * math.prod(self.small[2:]) * math.prod(self.filters)

    def is_large(self) -> bool:
        """Whether threads should share the work."""
        return self.products() >= 64 * SHARED

    def windows(self) -> tuple[Any, ...]:
        """The windows in oneDNN's form, where dilation counts from 0."""
        skipped = [d - 1 for d in self.dilation]
        return dims(self.stride), dims(skipped), dims(self.before), dims(self.after)

    def descriptor(self, with_bias: bool) -> Any:
        bias = self.layout((self.small[1],), (1,)) if with_bias else None
        return describe(
            "convolution_forward",
            FORWARD,
            _DIRECT,
            self.layout(self.large, None),
            self.layout(self.filters, None),
            bias,
            self.layout(self.small, None),
            *self.windows(),
        )

    def forward(self, x: Array, weight: Array, bias: Array | None) -> Any:
        given, filters = element_strides(x), self.filter_strides
        if given is None or filters is None:
            return NotImplemented

        def make() -> Plan:
            layouts = {
                SRC: self.layout(self.large, given),
                WEIGHTS: self.layout(self.filters, filters),
                DST: self.layout(self.small, row_major(self.small)),
            }
            if bias is not None:
                layouts[BIAS] = self.layout((self.small[1],), (1,))
            return Plan(self.descriptor(bias is not None), layouts)

        key = ("convolution", *self.key, given, filters, bias is not None)
        plan = plan_for(key, make, self.is_large())
        if plan is None:
            return NotImplemented
        out = np.empty(self.small, x.dtype)
        arrays = {SRC: x, WEIGHTS: weight, DST: out}
        if bias is not None:
            arrays[BIAS] = bias
        plan.run(arrays)
        return out

    def to_input(self, grad: Array, weight: Array) -> Any:
        """The gradient with respect to the input."""
        given, filters = element_strides(grad), self.filter_strides
        if given is None or filters is None:
            return NotImplemented

        def make() -> Plan:
            descriptor = describe(
                "convolution_backward_data",
                _DIRECT,
                self.layout(self.large, None),
                self.layout(self.filters, None),
                self.layout(self.small, None),
                *self.windows(),
                self.descriptor(False),
            )
            layouts = {
                DIFF_DST: self.layout(self.small, given),
                WEIGHTS: self.layout(self.filters, filters),
                DIFF_SRC: self.layout(self.large, row_major(self.large)),
            }
            return Plan(descriptor, layouts)

        plan = plan_for(("to_input", *self.key, given, filters), make, self.is_large())
        if plan is None:
            return NotImplemented
        out = np.empty(self.large, grad.dtype)
        plan.run({DIFF_DST: grad, WEIGHTS: weight, DIFF_SRC: out})
        return out

    def to_filters(self, x: Array, grad: Array, shape: Ints, with_bias: bool) -> Any:
        """The gradients with respect to filters and bias; None for a missing bias."""
        inputs, grads = element_strides(x), element_strides(grad)
        if inputs is None or grads is None:
            return NotImplemented

        def make() -> Plan:
            bias = self.layout((self.small[1],), (1,)) if with_bias else None
            descriptor = describe(
                "convolution_backward_weights",
                _DIRECT,
                self.layout(self.large, None),
                self.layout(self.filters, None),
                bias,
                self.layout(self.small, None),
                *self.windows(),
                self.descriptor(with_bias),
            )
            layouts = {
                SRC: self.layout(self.large, inputs),
                DIFF_DST: self.layout(self.small, grads),
                DIFF_WEIGHTS: self.layout(self.filters, row_major(self.filters)),
            }
            if with_bias:
                layouts[DIFF_BIAS] = bias
            return Plan(descriptor, layouts)

        plan = plan_for(("to_filters", *self.key, inputs, grads, with_bias), make, self.is_large())
        if plan is None:
            return NotImplemented
        out = np.empty(shape, x.dtype)
        arrays = {SRC: x, DIFF_DST: grad, DIFF_WEIGHTS: out}
        bias = np.empty(self.small[1], x.dtype) if with_bias else None
        if bias is not None:
            arrays[DIFF_BIAS] = bias
        plan.run(arrays)
        return out, bias


def _fits(x: Array, *others: Array | None) -> bool:
    return 3 <= x.ndim <= 5 and all(one is None or one.dtype == x.dtype for one in others)


def _convolution(
    x: Array, weight: Array, bias: Array | None, windows: Windows, transposed: bool, groups: int
) -> Any:
    if not _fits(x, weight, bias):
        return NotImplemented
    if transposed:
        large, small = (x.shape[0], weight.shape[1] * groups, *windows.sizes), x.shape
    else:
        large, small = x.shape, (x.shape[0], weight.shape[0], *windows.out)
    shape = _Shape(large, small, weight, windows, groups)
    if shape.products() < LEAST_PRODUCTS:
        return NotImplemented
    if transposed and bias is not None and x.dtype != np.float32:
        return NotImplemented  # the sum would be rounded twice
    if not transposed:
        if bias is not None and not bias.flags.c_contiguous:
            bias = bias.copy()
        return shape.forward(x, weight, bias)
    out = shape.to_input(x, weight)
    if out is not NotImplemented and bias is not None:
        out += bias.reshape(-1, *(1,) * (x.ndim - 2))
    return out


def _convolution_backward(
    grad: Array,
    x: Array,
    weight: Array,
    windows: Windows,
    transposed: bool,
    groups: int,
    mask: Mask,
) -> Any:
    """The gradients of input, filters and bias; those that `mask` leaves out are None."""
    if not _fits(x, grad, weight):
        return NotImplemented
    large, small = (grad.shape, x.shape) if transposed else (x.shape, grad.shape)
    shape = _Shape(large, small, weight, windows, groups)
    if shape.products() < LEAST_PRODUCTS:
        return NotImplemented
    is_float32 = x.dtype == np.float32
    if weight.shape[1] <= _FEW_CHANNELS and groups == 1 and not transposed and is_float32:
        return NotImplemented
    to_input = to_filters = to_bias = None
    if mask[0]:
        to_input = shape.forward(grad, weight, None) if transposed else shape.to_input(grad, weight)
        if to_input is NotImplemented:
            return NotImplemented
    if mask[1]:
        pair = (grad, x) if transposed else (x, grad)
        found = shape.to_filters(*pair, weight.shape, mask[2] and not transposed)
        if found is NotImplemented:
            return NotImplemented
        to_filters, to_bias = found
    if mask[2] and to_bias is None:
        wide = grad.astype(np.float32, copy=False)
        to_bias = wide.sum((0, *range(2, grad.ndim))).astype(x.dtype, copy=False)
    return to_input, to_filters, to_bias


convolution: Final = on_windows("convolution", _convolution)
convolution_backward: Final = on_windows("convolution_backward", _convolution_backward)
