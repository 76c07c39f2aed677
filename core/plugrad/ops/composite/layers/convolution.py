"""Convolution as a matrix product of filters and windows; its gradients are products, too.

`groups` matrices (filters / groups, taps) are multiplied by `groups` matrices (taps, batch *
windows); the taps cover all channels of a group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugrad._generated import calls as C
from plugrad._generated.settings import Convolution
from plugrad.ops.composite.elementwise.precision import in_dtype_of, widened
from plugrad.ops.composite.layers.windows import fold_windows, open_windows
from plugrad.ops.composite.selection.positions import zero_like
from plugrad.ops.prepare import convolution as prepare
from plugrad.ops.windows import Windows, convolution_windows
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Ints = tuple[int, ...]


def _prod(sizes: Ints) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result


def _product(a: Tensor, b: Tensor) -> Tensor:
    """The product of one pair of matrices for each group."""
    if sizes_of(a)[0] == 1:
        return C.call_mm(a.squeeze(0), b.squeeze(0)).unsqueeze(0)
    return C.call_bmm(a, b)


def _columns(x: Tensor, windows: Windows, groups: int) -> Tensor:
    """What the windows read, (groups, taps, batch * windows)."""
    opened = open_windows(x, windows, zero_like(x))
    count = len(windows.sizes)
    inner = tuple(range(1, 2 + count))
    turned = opened.permute((*inner, 0, *range(2 + count, 2 + 2 * count)))
    rows = sizes_of(x)[1] * _prod(windows.kernel)
    return turned.reshape((groups, rows // groups, sizes_of(x)[0] * _prod(windows.out)))


def _per_group(grad: Tensor, groups: int) -> Tensor:
    """A result's gradient, (groups, filters / groups, batch * windows)."""
    sizes = sizes_of(grad)
    turned = grad.permute((1, 0, *range(2, len(sizes))))
    return turned.reshape((groups, sizes[1] // groups, sizes[0] * _prod(sizes[2:])))


def _matrices(weight: Tensor, groups: int) -> Tensor:
    sizes = sizes_of(weight)
    return weight.reshape((groups, sizes[0] // groups, _prod(sizes[1:])))


def _correlate(x: Tensor, weight: Tensor, windows: Windows, groups: int) -> Tensor:
    product = _product(_matrices(weight, groups), _columns(x, windows, groups))
    apart = product.reshape((sizes_of(weight)[0], sizes_of(x)[0], *windows.out))
    return apart.permute((1, 0, *range(2, apart.ndim))).contiguous()


def _to_input(grad: Tensor, weight: Tensor, windows: Windows, groups: int) -> Tensor:
    """The gradient toward what the windows read, which is the transposed convolution."""
    product = _product(_matrices(weight, groups).transpose(1, 2), _per_group(grad, groups))
    channels = sizes_of(weight)[1] * groups
    batch = sizes_of(grad)[0]
    apart = product.reshape((channels, *windows.kernel, batch, *windows.out))
    count = len(windows.sizes)
    taps = tuple(range(1, 1 + count))
    turned = apart.permute((1 + count, 0, *taps, *range(2 + count, 2 + 2 * count)))
    return fold_windows(turned, windows)


def _to_weight(grad: Tensor, x: Tensor, shape: Ints, windows: Windows, groups: int) -> Tensor:
    columns = _columns(x, windows, groups).transpose(1, 2)
    return _product(_per_group(grad, groups), columns).reshape(shape)


def convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, settings: Convolution
) -> Tensor:
    prepare.convolution(input, weight, bias, settings)
    how = prepare.per_dimension(settings, len(sizes_of(weight)) - 2)
    x, w = widened(input), widened(weight)
    groups = how.groups
    windows = _windows(sizes_of(x)[2:], sizes_of(w)[2:], how)
    out = (_to_input if how.transposed else _correlate)(x, w, windows, groups)
    if bias is not None:
        out = out + widened(bias).reshape((-1,) + (1,) * len(windows.kernel))
    return in_dtype_of(out, input)


def _windows(sizes: Ints, kernel: Ints, how: Convolution) -> Windows:
    return convolution_windows(
        sizes,
        kernel,
        how.stride,
        how.padding,
        how.dilation,
        how.transposed,
        how.output_padding,
    )


def convolution_backward(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: Ints | None,
    settings: Convolution,
    mask: tuple[bool, bool, bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    how = prepare.per_dimension(settings, len(sizes_of(weight)) - 2)
    transposed, groups = how.transposed, how.groups
    grad, x, w = widened(grad_output), widened(input).conj(), widened(weight).conj()
    read, made = (grad, x) if transposed else (x, grad)
    steps = (how.stride, how.padding, how.dilation)
    windows = Windows(sizes_of(read)[2:], sizes_of(w)[2:], *steps, sizes_of(made)[2:])
    to_input: Tensor | None = None
    to_weight: Tensor | None = None
    to_bias: Tensor | None = None
    if mask[0]:
        back = _correlate if transposed else _to_input
        to_input = in_dtype_of(back(grad, w, windows, groups), input)
    if mask[1]:
        filters = _to_weight(made, read, sizes_of(w), windows, groups)
        to_weight = in_dtype_of(filters, weight)
    if mask[2]:
        total = grad.sum(dim=(0, *range(2, grad.ndim)), dtype=grad.dtype)
        to_bias = in_dtype_of(total, grad_output)
    return to_input, to_weight, to_bias
