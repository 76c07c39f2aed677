"""Layers of two inputs: Bilinear, CosineSimilarity, PairwiseDistance."""

from __future__ import annotations

import math
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_nn.nn import functional as F
from plugrad_nn.nn import init
from plugrad_nn.nn.module import Module
from plugrad_nn.nn.parameter import Parameter


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + eps along the last dimension, which `keepdim` keeps.

    >>> import plugrad
    >>> plugrad.nn.PairwiseDistance(eps=0.0)(plugrad.tensor([[3.0, 4.0]]), plugrad.zeros(1, 2))
    tensor([5.])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle between x1 and x2 along `dim`; norms are at least `eps`.

    >>> import plugrad
    >>> plugrad.nn.CosineSimilarity(dim=0)(plugrad.tensor([1.0, 0.0]), plugrad.tensor([3.0, 4.0]))
    tensor(0.6000)
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class Bilinear(Module):
    """`x1^T A x2 + b` for each of `out_features` matrices A; x1 (..., in1), x2 (..., in2).

    Weight and bias start uniform on [-k, k] with k = 1 / sqrt(in1_features).

    >>> import plugrad
    >>> plugrad.nn.Bilinear(2, 3, 4)(plugrad.ones(5, 2), plugrad.ones(5, 3)).shape
    plugrad.Size([5, 4])
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: plugrad.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        shape = (out_features, in1_features, in2_features)
        self.weight = Parameter(plugrad.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(plugrad.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the initial weights again; ValueError if there are no inputs."""
        if self.in1_features <= 0:
            raise ValueError(
                f"in1_features must be > 0, but got (in1_features={self.in1_features})"
            )
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
