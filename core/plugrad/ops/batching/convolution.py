"""Rules of convolution and its gradients: a batch goes into the batch dimension or into groups.

A filter bank has input channels and output channels. If only one operand is mapped, the mapped
dimension joins the input channels, the output channels or the batch dimension. If two are mapped,
every element of the batch gets its own groups. With g groups:

    (B, N, g * c, ...)       images   -> (N * B, g * c, ...), or as channels (N, g * B * c, ...)
    (B, g * o, c, ...)       filters  -> (g * B * o, c, ...), or (g * o, B * c, ...)
    groups of their own:     images (N, B * g * c, ...), filters (B * g * o, c, ...)
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad._generated.settings import Convolution
from plugrad.ops.batching.dims import first_of, logical_sizes, spread, to_front
from plugrad.ops.batching.folding import merged, split, split_groups, within_groups
from plugrad.ops.batching.table import with_settings
from plugrad.ops.prepare import convolution as prepare
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor
    from plugrad.ops.batching.table import Rule, VmapInfo

Dims = tuple[Any, ...]
Sizes = tuple[int, ...]


def convolution(
    info: VmapInfo,
    dims: Dims,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    settings: Convolution,
) -> tuple[Any, Any]:
    x_dim, w_dim, bias_dim = dims[:3]
    size = info.batch_size
    groups = settings.groups
    prepare.convolution(
        first_of(input, x_dim), first_of(weight, w_dim), first_of(bias, bias_dim), settings
    )
    if w_dim is None:
        inside = bias if bias_dim is None else None
        if x_dim is None:
            out = C.call_convolution_with(input, weight, inside, settings)
        else:
            out = C.call_convolution_with(merged(input, x_dim, 0), weight, inside, settings)
            out = split(out, 0, size, logical_sizes(input, x_dim)[0])
        return (out if inside is bias else _plus_bias(out, bias, bias_dim, weight.ndim - 2)), 0
    if bias is not None:
        bias = spread(bias, bias_dim, size)
    if x_dim is None:
        # What each group makes is dimension 0 of the filters, with the groups; 1 if transposed.
        made, count = (1, 1) if settings.transposed else (0, groups)
        if bias is not None:
            bias = within_groups(bias, 0, 0, groups)
        filters = within_groups(weight, w_dim, made, count)
        out = C.call_convolution_with(input, filters, bias, settings)
        return split_groups(out, 1, size, groups), 0
    if bias is not None:
        bias = F.reshape(bias, (-1,))
    filters = merged(weight, w_dim, 0)
    own = _of_groups(settings, groups * size)
    out = C.call_convolution_with(merged(input, x_dim, 1), filters, bias, own)
    return split(out, 1, size), 1


def _of_groups(settings: Convolution, groups: int) -> Convolution:
    found = settings.copy()
    found.groups = groups
    return found


def _plus_bias(out: Tensor, bias: Any, dim: int, spatial: int) -> Tensor:
    """Images, of a batch or for all of it, plus biases [B, O]."""
    front = to_front(bias, dim)
    batch_size, channels = sizes_of(front)
    return out + F.reshape(front, (batch_size, 1, channels) + (1,) * spatial)


@dataclass(frozen=True)
class _Product:
    """One of the gradients: where everything is but what the result has the shape of.

    Attributes:
        settings: of the convolution of one element of the batch.
        batch_size: the number of elements.
    """

    settings: Convolution
    batch_size: int

    @property
    def transposed(self) -> bool:
        return self.settings.transposed

    def to_input(
        self, grad: Tensor, grad_dim: int | None, weight: Tensor, dim: int | None, sizes: Sizes
    ) -> tuple[Any, Any]:
        """The gradient toward an input of some logical sizes."""
        count, channels, *spatial = sizes
        size, groups = self.batch_size, self.settings.groups
        if dim is None:
            if grad_dim is None:
                return self._input(grad, weight, sizes, groups), None
            folded = merged(grad, grad_dim, 0)
            found = self._input(folded, weight, (size * count, channels, *spatial), groups)
            return split(found, 0, size, count), 0
        wide = (count, size * channels, *spatial)
        if grad_dim is None:
            read, parts = (0, groups) if self.transposed else (1, 1)
            filters = within_groups(weight, dim, read, parts)
            return split_groups(self._input(grad, filters, wide, groups), 1, size, groups), 0
        filters = merged(weight, dim, 0)
        found = self._input(merged(grad, grad_dim, 1), filters, wide, groups * size)
        return split(found, 1, size), 1

    def to_weight(
        self, grad: Tensor, grad_dim: int | None, x: Tensor, dim: int | None, sizes: Sizes
    ) -> tuple[Any, Any]:
        """The gradient toward filters of some logical sizes."""
        first, second, *spatial = sizes
        size, groups = self.batch_size, self.settings.groups
        if dim is None and grad_dim is None:
            return self._weight(grad, x, sizes, groups), None
        if dim is not None and grad_dim is not None:
            images = merged(x, dim, 1)
            own = (size * first, second, *spatial)
            found = self._weight(merged(grad, grad_dim, 1), images, own, groups * size)
            return split(found, 0, size), 0
        if dim is not None:
            x = within_groups(x, dim, 1, groups)
        else:
            assert grad_dim is not None
            grad = within_groups(grad, grad_dim, 1, groups)
        # Dimension 0 of the filters is what is made, 1 what is read; the other way if transposed.
        if (dim is not None) == self.transposed:
            found = self._weight(grad, x, (size * first, second, *spatial), groups)
            return split_groups(found, 0, size, groups), 0
        found = self._weight(grad, x, (first, size * second, *spatial), groups)
        return split_groups(found, 1, size, 1), 0

    def _input(self, grad: Tensor, weight: Tensor, sizes: Sizes, groups: int) -> Tensor:
        # Only the sizes of the input count.
        x = F.empty(sizes, dtype=grad.dtype, device=grad.device)
        wanted = (True, False, False)
        how = _of_groups(self.settings, groups)
        return C.call_convolution_backward_with(grad, x, weight, None, how, wanted)[0]

    def _weight(self, grad: Tensor, x: Tensor, sizes: Sizes, groups: int) -> Tensor:
        weight = F.empty(sizes, dtype=x.dtype, device=x.device)
        wanted = (False, True, False)
        how = _of_groups(self.settings, groups)
        return C.call_convolution_backward_with(grad, x, weight, None, how, wanted)[1]


def convolution_backward(
    info: VmapInfo,
    dims: Dims,
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: Sizes | None,
    settings: Convolution,
    output_mask: tuple[bool, bool, bool],
) -> tuple[Any, Any]:
    grad_dim, x_dim, w_dim = dims[:3]
    product = _Product(settings, info.batch_size)
    found: list[Any] = [None, None, None]
    places: list[Any] = [None, None, None]
    if output_mask[0]:
        sizes = logical_sizes(input, x_dim)
        found[0], places[0] = product.to_input(grad_output, grad_dim, weight, w_dim, sizes)
    if output_mask[1]:
        sizes = logical_sizes(weight, w_dim)
        found[1], places[1] = product.to_weight(grad_output, grad_dim, input, x_dim, sizes)
    if output_mask[2]:
        front = to_front(grad_output, grad_dim)
        shift = 0 if grad_dim is None else 1
        over = (shift, *range(shift + 2, front.ndim))
        found[2] = F.sum(front, over, dtype=front.dtype)
        places[2] = None if grad_dim is None else 0
    return tuple(found), tuple(places)


RULES: Final[dict[str, Rule]] = {
    "convolution": with_settings(convolution),
    "convolution_backward": with_settings(convolution_backward),
}
