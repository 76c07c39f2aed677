"""Plain functions of vectors: tables of them, distances, similarities and samples of classes."""

from __future__ import annotations

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.overridable import overridable


@overridable
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sums, means or maxima of bags of rows of `weight` (V, E); the result is (B, E).

    Args:
        input: (B, N), bags of one size, or all indices (N) with `offsets`.
        offsets: (B), where each bag begins in `input`.
        max_norm: the rows that are looked up are first scaled down in place to that norm.
        mode: "sum", "mean" or "max".
        per_sample_weights: of the shape of `input`, what rows are multiplied by; for sums only.
        include_last_offset: whether the last offset is the end of the last bag.
        padding_idx: the row that counts for nothing.

    >>> import plugrad
    >>> weight, bags = plugrad.arange(6.0).reshape(3, 2), plugrad.tensor([[0, 1], [1, 2]])
    >>> plugrad.nn.functional.embedding_bag(bags, weight).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    if weight.dtype is plugrad.int64 and input.is_floating_point():
        # The order of arguments in PyTorch's first releases.
        input, weight = weight, input
    if per_sample_weights is not None and per_sample_weights.shape != input.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then "
            f"it must have the same shape as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(
            f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}"
        )
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch "
                f"of fixed length sequences. However, found offsets of type {type(offsets)}"
            )
        rows, columns = tuple(input.shape)
        offsets = plugrad.arange(rows, dtype=input.dtype, device=input.device) * columns
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.dim() != 1:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}"
        )
    elif offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    elif offsets.dim() != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    modes = ("sum", "mean", "max")
    if mode not in modes:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if max_norm is not None:
        with plugrad.no_grad():
            plugrad.embedding_renorm_(weight, input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}'). Please open a feature request on GitHub."
        )
    return plugrad.embedding_bag(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        modes.index(mode),
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )[0]


@overridable
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input1 @ weight[o] @ input2 + bias[o]`: (*, I), (*, J), (O, I, J), (O) to (*, O)."""
    return plugrad.bilinear(input1, input2, weight, bias)


@overridable
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along `dim`; norms below `eps` count as `eps`."""
    return plugrad.cosine_similarity(x1, x2, dim, eps)


@overridable
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The norm of order `p` of `x1 - x2 + eps` along the last dimension."""
    return plugrad.pairwise_distance(x1, x2, p, eps, keepdim)


@overridable
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The distances of all pairs of rows of a matrix."""
    return plugrad.pdist(input, p)


@overridable
def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A sample of classes with probabilities softmax(logits), made soft by the temperature `tau`.

    With `hard` it is a unit vector, which has the gradient of the soft one (Jang, Gu and Poole,
    Categorical Reparameterization with Gumbel-Softmax, 2017).

    Args:
        logits: (..., C), C classes along `dim`.
        eps: has no effect.
    """
    noise = -plugrad.empty_like(logits).exponential_().log()
    soft = plugrad.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    unit = plugrad.zeros_like(logits).scatter_(dim, index, 1.0)
    return unit - soft.detach() + soft


@overridable
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of `weight` (V, E) by the integers of `input` (any shape S); the result is (*S, E).

    The row `padding_idx` gets no gradient. With `max_norm` the rows that are looked up are first
    scaled down in place to that norm.
    """
    if weight.ndim == 0:
        raise RuntimeError("'weight' must be 2-D")
    rows = weight.shape[0]
    if padding_idx is None:
        padding_idx = -1
    elif not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    elif padding_idx < 0:
        padding_idx += rows
    if max_norm is not None:
        with plugrad.no_grad():
            plugrad.embedding_renorm_(weight, input, max_norm, norm_type)
    return plugrad.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


@overridable
def normalize(
    input: Tensor,
    p: float = 2.0,
    dim: int = 1,
    eps: float = 1e-12,
    out: Tensor | None = None,
) -> Tensor:
    """x / max(||x||_p, eps) along `dim`."""
    divisor = input.norm(p, dim=dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / divisor if out is None else plugrad.div(input, divisor, out=out)


@overridable
def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """Integers (any shape S) as unit vectors (*S, C), int64."""
    return plugrad.one_hot(input, num_classes)
