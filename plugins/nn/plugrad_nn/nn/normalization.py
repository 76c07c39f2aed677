"""Normalisation and regularisation: BatchNorm1d to 3d, LayerNorm, RMSNorm, GroupNorm, Dropout."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import plugrad
from plugrad import Tensor
from plugrad_nn.nn import functional as F
from plugrad_nn.nn import init
from plugrad_nn.nn.module import Module
from plugrad_nn.nn.parameter import Parameter


class _Affine(Module):
    """A scale and a shift that are learned: both, one or none of them."""

    weight: Parameter | None
    bias: Parameter | None

    def _learn(
        self, shape: int | Sequence[int], scale: bool, shift: bool, device: Any, dtype: Any
    ) -> None:
        for name, wanted in (("weight", scale), ("bias", shift)):
            made = plugrad.empty(shape, device=device, dtype=dtype) if wanted else None
            self.register_parameter(name, None if made is None else Parameter(made))

    def reset_parameters(self) -> None:
        """Back to scale one and shift zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class NormBase(_Affine):
    """The base of batch and instance normalisation: parameters and running statistics.

    Args:
        num_features: C of the input (N, C, ...).
        eps: added to the variance.
        momentum: the weight of a new batch in the running statistics; None for the plain average.
        affine: learn a scale (and, with `bias`, a shift) per channel.
        track_running_stats: keep running statistics and use them in evaluation mode.
    """

    # Version 2 added num_batches_tracked; older state dicts lack it.
    _version: ClassVar[int] = 2

    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: plugrad.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self._learn(num_features, affine, affine and bias, device, dtype)
        mean = variance = count = None
        if track_running_stats:
            mean = plugrad.zeros(num_features, device=device, dtype=dtype)
            variance = plugrad.ones(num_features, device=device, dtype=dtype)
            count = plugrad.tensor(0, device=device, dtype=plugrad.int64)
        self.register_buffer("running_mean", mean)
        self.register_buffer("running_var", variance)
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Resets the running statistics.

        >>> import plugrad
        >>> norm = plugrad.nn.BatchNorm1d(1)
        >>> _ = norm(plugrad.tensor([[0.0], [10.0]]))
        >>> norm.running_mean
        tensor([0.5000])
        >>> norm.reset_running_stats()
        >>> norm.running_mean, norm.num_batches_tracked
        (tensor([0.]), tensor(0))
        """
        for buffer, value in ((self.running_mean, 0), (self.running_var, 1)):
            if buffer is not None:
                buffer.fill_(value)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Back to scale one, shift zero and no statistics."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        *rest: Any,
    ) -> None:
        version = local_metadata.get("version")
        key = prefix + "num_batches_tracked"
        lacks_count = (version is None or version < 2) and key not in state_dict
        if lacks_count and self.num_batches_tracked is not None:
            state_dict[key] = self.num_batches_tracked
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm(NormBase):
    """The base of BatchNorm1d, 2d and 3d, which accept different inputs.

    Arguments are the same as for `NormBase`.
    """

    def forward(self, input: Tensor) -> Tensor:
        if not isinstance(input, Tensor):
            raise TypeError(
                "batch_norm(): argument 'input' (position 1) must be Tensor, not "
                f"{type(input).__name__}"
            )
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        return self._normalized(input, momentum)

    def _normalized(self, input: Tensor, momentum: float) -> Tensor:
        return F.batch_norm(
            input,
            self.running_mean if not self.training or self.track_running_stats else None,
            self.running_var if not self.training or self.track_running_stats else None,
            self.weight,
            self.bias,
            self.training or self.running_mean is None,
            momentum,
            self.eps,
        )


class BatchNorm1d(BatchNorm):
    """Batch normalisation (Ioffe and Szegedy 2015) of (N, C) or (N, C, L).

    >>> import plugrad
    >>> plugrad.nn.BatchNorm1d(3)(plugrad.ones(2, 3, 8)).shape
    plugrad.Size([2, 3, 8])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.ndim}D input)")


class BatchNorm2d(BatchNorm):
    """Batch normalisation (Ioffe and Szegedy 2015) of (N, C, H, W).

    >>> import plugrad
    >>> plugrad.nn.BatchNorm2d(3)(plugrad.ones(2, 3, 8, 6)).shape
    plugrad.Size([2, 3, 8, 6])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim != 4:
            raise ValueError(f"expected 4D input (got {input.ndim}D input)")


class BatchNorm3d(BatchNorm):
    """Batch normalisation (Ioffe and Szegedy 2015) of (N, C, D, H, W).

    >>> import plugrad
    >>> plugrad.nn.BatchNorm3d(3)(plugrad.ones(2, 3, 8, 6, 4)).shape
    plugrad.Size([2, 3, 8, 6, 4])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim != 5:
            raise ValueError(f"expected 5D input (got {input.ndim}D input)")


class LayerNorm(_Affine):
    """Normalises over the last dimensions, of shape `normalized_shape` (Ba et al. 2016).

    >>> import plugrad
    >>> plugrad.nn.LayerNorm(5)(plugrad.ones(3, 5)).shape
    plugrad.Size([3, 5])
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: plugrad.dtype | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(normalized_shape, Iterable):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        shift = elementwise_affine and bias
        self._learn(self.normalized_shape, elementwise_affine, shift, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divides the last dimensions, of shape `normalized_shape`, by their root mean square.

    Args:
        normalized_shape: one integer, or the sizes of the last dimensions.
        eps: added to the mean square; None for the machine precision of the input's dtype.
        elementwise_affine: learn a scale, which starts at one.

    Source: Zhang and Sennrich 2019.

    >>> import plugrad
    >>> plugrad.nn.RMSNorm(5)(plugrad.ones(3, 5)).shape
    plugrad.Size([3, 5])
    """

    weight: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: plugrad.dtype | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(normalized_shape, Iterable):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        weight = None
        if elementwise_affine:
            weight = Parameter(plugrad.empty(self.normalized_shape, device=device, dtype=dtype))
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Back to scale one."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(_Affine):
    """Normalises each sample's groups of channels; input (N, C, ...) (Wu and He 2018).

    Args:
        num_groups: how many groups the channels are split into, in order.
        num_channels: C, a multiple of `num_groups`.
        eps: added to the variance.
        affine: learn a scale, which starts at one, and a shift, which starts at zero, per channel.
        bias: with False, no shift.

    >>> import plugrad
    >>> plugrad.nn.GroupNorm(2, 4)(plugrad.ones(3, 4, 5)).shape
    plugrad.Size([3, 4, 5])
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: plugrad.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        num_groups, num_channels = operator.index(num_groups), operator.index(num_channels)
        if num_groups == 0 or num_channels % num_groups:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._learn((num_channels,), affine, affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class _Dropout(Module):
    """The base of all kinds of dropout."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """In training, zeroes elements with probability `p` and scales the others by 1 / (1 - p).

    >>> import plugrad
    >>> plugrad.nn.Dropout(0.4)(plugrad.ones(2, 3)).shape
    plugrad.Size([2, 3])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)
