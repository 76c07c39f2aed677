"""Layers with a weight matrix or table: Identity, Linear, Embedding."""

from __future__ import annotations

import math
import operator
from numbers import Integral
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_nn.nn import functional as F
from plugrad_nn.nn import init
from plugrad_nn.nn.module import Module
from plugrad_nn.nn.parameter import Parameter


class Identity(Module):
    """Returns its input; takes and ignores any arguments.

    >>> import plugrad
    >>> plugrad.nn.Identity()(plugrad.ones(2)).shape
    plugrad.Size([2])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """`x @ weight.T + bias`; x (..., in_features), result (..., out_features).

    Weight and bias start uniform on [-k, k] with k = 1 / sqrt(in_features).

    >>> import plugrad
    >>> plugrad.nn.Linear(3, 2)
    Linear(in_features=3, out_features=2, bias=True)
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: plugrad.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        shape = (out_features, in_features)
        self.weight = Parameter(plugrad.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(plugrad.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the initial weights again.

        >>> import plugrad
        >>> layer = plugrad.nn.Linear(4, 2)
        >>> _ = plugrad.nn.init.zeros_(layer.weight)
        >>> layer.reset_parameters()
        >>> bool((layer.weight.abs() <= 0.5).all()), bool((layer.weight != 0).any())
        (True, True)
        """
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Embedding(Module):
    """A table of `num_embeddings` vectors, looked up by integers.

    Args:
        padding_idx: a row that starts at zero and gets no gradient.
        max_norm: rows that are looked up are scaled down in place to this norm.
        norm_type: the p of that norm.
        scale_grad_by_freq: divide a row's gradient by how often it was looked up.

    >>> import plugrad
    >>> plugrad.nn.Embedding(10, 3)(plugrad.tensor([[1, 2], [4, 9]])).shape
    plugrad.Size([2, 2, 3])
    """

    weight: Parameter

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: plugrad.dtype | None = None,
    ) -> None:
        super().__init__()
        # NumPy's unsigned integers have no negative ones.
        if isinstance(num_embeddings, Integral):
            num_embeddings = operator.index(num_embeddings)
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("Padding_idx must be within num_embeddings")
            if padding_idx < 0:
                padding_idx += num_embeddings
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if _weight is None:
            shape = (num_embeddings, embedding_dim)
            self.weight = Parameter(plugrad.empty(shape, device=device, dtype=dtype), not _freeze)
            self.reset_parameters()
        else:
            if tuple(_weight.shape) != (num_embeddings, embedding_dim):
                raise AssertionError(
                    "Shape of weight does not match num_embeddings and embedding_dim"
                )
            self.weight = Parameter(_weight, not _freeze)

    def reset_parameters(self) -> None:
        """Draws the table again from the standard normal distribution.

        >>> import plugrad
        >>> table = plugrad.nn.Embedding(3, 2, padding_idx=0)
        >>> table.reset_parameters()
        >>> table.weight[0].tolist()
        [0.0, 0.0]
        """
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with plugrad.no_grad():
                self.weight[self.padding_idx].fill_(0)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """A layer over an existing table (V, E), which is not trained unless `freeze` is False.

        >>> import plugrad
        >>> table = plugrad.nn.Embedding.from_pretrained(plugrad.tensor([[1.0, 2.0], [3.0, 4.0]]))
        >>> table(plugrad.tensor([1])), table.weight.requires_grad
        (tensor([[3., 4.]]), False)
        """
        rows, columns = embeddings.shape
        return cls(
            rows,
            columns,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight=embeddings,
            _freeze=freeze,
        )

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        for name, default in (
            ("padding_idx", None),
            ("max_norm", None),
            ("norm_type", 2.0),
            ("scale_grad_by_freq", False),
            ("sparse", False),
        ):
            value = getattr(self, name)
            if value != default:
                parts.append(f"{name}={value}")
        return ", ".join(parts)
