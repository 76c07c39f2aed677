"""Instance normalisation, normalisation across channels, and SyncBatchNorm."""

from __future__ import annotations

import importlib
import warnings
from typing import Any, ClassVar

import plugrad
from plugrad import Tensor
from plugrad.plugins.arguments import explains
from plugrad_nn.nn import functional as F
from plugrad_nn.nn.module import Module
from plugrad_nn.nn.normalization import BatchNorm, NormBase
from plugrad_nn.processes import group_of_several


class _InstanceNorm(NormBase):
    """The base of InstanceNorm1d, 2d and 3d: each channel of each sample is normalised separately.

    Arguments are the same as for batch normalisation; `affine` and `track_running_stats` are off by
    default. The input may lack the batch.
    """

    _spatial: ClassVar[int]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: plugrad.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _check_input_dim(self, input: Tensor) -> None:
        least = self._spatial + 1
        if input.dim() not in (least, least + 1):
            raise ValueError(f"expected {least}D or {least + 1}D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        alone = input.dim() == self._spatial + 1
        axis = 0 if alone else 1
        if input.shape[axis] != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={axis} to match num_features "
                    f"({self.num_features}), but got: {input.shape[axis]}."
                )
            warnings.warn(
                f"input's size at dim={axis} does not match num_features. You can silence this "
                "warning by not passing in num_features, which is not used because affine=False",
                stacklevel=2,
            )
        result = F.instance_norm(
            input.unsqueeze(0) if alone else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return result.squeeze(0) if alone else result


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation (Ulyanov et al. 2016) of (N, C, L) or (C, L).

    >>> import plugrad
    >>> plugrad.nn.InstanceNorm1d(3)(plugrad.ones(2, 3, 8)).shape
    plugrad.Size([2, 3, 8])
    """

    _spatial = 1


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation (Ulyanov et al. 2016) of (N, C, H, W) or (C, H, W).

    >>> import plugrad
    >>> plugrad.nn.InstanceNorm2d(3)(plugrad.ones(2, 3, 8, 6)).shape
    plugrad.Size([2, 3, 8, 6])
    """

    _spatial = 2


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation (Ulyanov et al. 2016) of (N, C, D, H, W) or (C, D, H, W).

    >>> import plugrad
    >>> plugrad.nn.InstanceNorm3d(3)(plugrad.ones(2, 3, 8, 6, 4)).shape
    plugrad.Size([2, 3, 8, 6, 4])
    """

    _spatial = 3


class LocalResponseNorm(Module):
    """x / (k + alpha * mean of the squares of `size` channels around it) ** beta; (N, C, ...).

    Source: Krizhevsky et al. 2012.

    >>> import plugrad
    >>> plugrad.nn.LocalResponseNorm(2)(plugrad.ones(1, 4, 3, 3)).shape
    plugrad.Size([1, 4, 3, 3])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """`LocalResponseNorm` of images (N, C, H, W) as PyTorch's older module computes it.

    The sum covers an odd number of channels, one less than an even `size`, but is still divided by
    `size`. The first channel is added to the sums of all channels that are further away, because
    PyTorch never removes it from its running sum. Gradients are correct for that result; PyTorch's
    are not.

    >>> import plugrad
    >>> plugrad.nn.CrossMapLRN2d(2)(plugrad.ones(1, 4, 3, 3)).shape
    plugrad.Size([1, 4, 3, 3])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        return _cross_map_lrn(input, self.size, self.alpha, self.beta, self.k)


@explains(name="CrossMapLRN2d")
def _cross_map_lrn(input: Tensor, size: int, alpha: float, beta: float, k: float) -> Tensor:
    reach = (size - 1) // 2
    squares = input * input
    padded = F.pad(squares, (0, 0, 0, 0, reach, reach))
    sums = padded.unfold(1, 2 * reach + 1, 1).sum(-1)
    far = plugrad.arange(input.shape[1], device=input.device) > reach
    sums = sums + squares[:, :1] * far[:, None, None]
    scale: Tensor = (sums * (alpha / size) + k) ** -beta
    return input * scale


class SyncBatchNorm(BatchNorm):
    """Batch normalisation of (N, C, ...) over the batches of all processes in training.

    If `plugrad.distributed` was initialised, these are the processes of `process_group`, or all.
    Their batches may be of different sizes. All of them must run forward and backward. Without it,
    and in evaluation mode, it is plain batch normalisation.

    >>> import plugrad
    >>> plugrad.nn.SyncBatchNorm(3)(plugrad.ones(2, 3, 4)).shape
    plugrad.Size([2, 3, 4])
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: plugrad.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.shape[1] == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def _normalized(self, input: Tensor, momentum: float) -> Tensor:
        group = group_of_several(self.process_group) if self.training else None
        if group is None:
            return super()._normalized(input, momentum)
        module = importlib.import_module("plugrad_distributed.data_parallel.sync_batch_norm")
        tracked = self.track_running_stats
        result: Tensor = module.sync_batch_norm(
            input,
            self.running_mean if tracked else None,
            self.running_var if tracked else None,
            self.weight,
            self.bias,
            momentum,
            self.eps,
            group,
        )
        return result

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The module with `SyncBatchNorm` for each batch normalisation in it, in place.

        >>> import plugrad
        >>> nn = plugrad.nn
        >>> net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
        >>> type(nn.SyncBatchNorm.convert_sync_batchnorm(net)[1]).__name__
        'SyncBatchNorm'
        """
        result = module
        if isinstance(module, BatchNorm):
            result = SyncBatchNorm(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            result._parameters.update(module._parameters)
            result._buffers.update(module._buffers)
            result.training = module.training
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result
