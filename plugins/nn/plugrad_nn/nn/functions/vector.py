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
        weight: (V, E).
        offsets: (B), where each bag begins in `input`.
        max_norm: the rows that are looked up are first scaled down in place to that norm.
        norm_type: p of that norm.
        scale_grad_by_freq: divide a row's gradient by how often it is looked up; not for maxima.
        mode: "sum", "mean" or "max".
        sparse: has no effect; the gradient is dense.
        per_sample_weights: of the shape of `input`, the factors of the rows; for sums only.
        include_last_offset: whether the last offset is the end of the last bag.
        padding_idx: the row that is ignored.

    Raises:
        ValueError: shapes or options do not fit, or `mode` is unknown.
        NotImplementedError: `per_sample_weights` go with another mode than "sum".

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
    """`input1 @ weight[o] @ input2 + bias[o]` for each o.

    Args:
        input1, input2: (*, I) and (*, J).
        weight: (O, I, J).
        bias: (O).

    Returns:
        (*, O).

    Raises:
        RuntimeError: shapes do not fit.

    >>> import plugrad
    >>> x, y = plugrad.tensor([1.0, 2.0]), plugrad.tensor([3.0, 4.0])
    >>> plugrad.nn.functional.bilinear(x, y, plugrad.eye(2).unsqueeze(0), plugrad.tensor([100.0]))
    tensor([111.])
    """
    return plugrad.bilinear(input1, input2, weight, bias)


@overridable
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along `dim`; norms below `eps` count as `eps`.

    Args:
        x1, x2: any shapes that broadcast; floating dtype.
        dim: the dimension of the vectors, which the result does not have.
        eps: the least norm.

    Raises:
        RuntimeError: the shapes do not broadcast, or `eps` is negative.

    >>> import plugrad
    >>> x, y = plugrad.tensor([[1.0, 0.0], [0.0, 2.0]]), plugrad.tensor([[0.0, 1.0]])
    >>> plugrad.nn.functional.cosine_similarity(x, y)
    tensor([0., 1.])
    """
    return plugrad.cosine_similarity(x1, x2, dim, eps)


@overridable
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The norm of order `p` of `x1 - x2 + eps` along the last dimension.

    Args:
        x1, x2: (*, D), or shapes that broadcast to it.
        p: of the norm.
        eps: keeps the gradient of equal vectors finite.
        keepdim: keep the last dimension, with length 1.

    Raises:
        RuntimeError: the shapes do not broadcast.

    >>> import plugrad
    >>> x, y = plugrad.tensor([[3.0, 4.0], [1.0, 0.0]]), plugrad.zeros(2)
    >>> plugrad.nn.functional.pairwise_distance(x, y)
    tensor([5.0000, 1.0000])
    """
    return plugrad.pairwise_distance(x1, x2, p, eps, keepdim)


@overridable
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The distances of all pairs of rows of a matrix.

    Args:
        input: (N, D), floating dtype.
        p: of the norm, not negative.

    Returns:
        (N * (N - 1) / 2): of rows 0 and 1, 0 and 2, and so on.

    Raises:
        RuntimeError: `input` is not a matrix, or `p` is negative.

    >>> import plugrad
    >>> x = plugrad.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 4.0]])
    >>> plugrad.nn.functional.pdist(x)
    tensor([5., 4., 3.])
    """
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
        tau: positive; the smaller it is, the nearer samples are to unit vectors.
        hard: whether to return unit vectors.
        eps: has no effect.
        dim: the dimension of the classes.

    Raises:
        IndexError: `dim` is out of range.

    >>> import plugrad
    >>> logits = plugrad.tensor([[0.0, 1000.0, 0.0]])
    >>> plugrad.nn.functional.gumbel_softmax(logits, hard=True)
    tensor([[0., 1., 0.]])
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

    Args:
        input: any shape, int64 or int32, each element in [0, V).
        weight: (V, E).
        padding_idx: the row that gets no gradient; negative ones count from the end.
        max_norm: the rows that are looked up are first scaled down in place to that norm.
        norm_type: p of that norm.
        scale_grad_by_freq: divide a row's gradient by how often it is looked up.
        sparse: has no effect; the gradient is dense.

    Raises:
        AssertionError: there is no row `padding_idx`.
        RuntimeError: `weight` has no dimension, or `input` is of another dtype.
        IndexError: an integer is not in [0, V).

    >>> import plugrad
    >>> words, weight = plugrad.tensor([2, 0]), plugrad.arange(6.0).reshape(3, 2)
    >>> plugrad.nn.functional.embedding(words, weight)
    tensor([[4., 5.],
            [0., 1.]])
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
    """x / max(||x||_p, eps) along `dim`.

    Args:
        input: any shape, floating or complex dtype.
        p: of the norm.
        dim: along which vectors have norm 1 afterwards; one dimension, or several.
        eps: the least divisor.
        out: where the result is written; a new tensor by default.

    >>> import plugrad
    >>> x = plugrad.tensor([[3.0, 4.0], [0.0, 0.0]])
    >>> plugrad.nn.functional.normalize(x)
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    divisor = input.norm(p, dim=dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / divisor if out is None else plugrad.div(input, divisor, out=out)


@overridable
def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """Integers (any shape S) as unit vectors (*S, C), int64.

    Args:
        input: any shape, int64, not negative.
        num_classes: C; by default the largest element plus 1.

    Raises:
        RuntimeError: the dtype is another, an element is negative, or not below `num_classes`.

    >>> import plugrad
    >>> classes = plugrad.tensor([0, 2])
    >>> plugrad.nn.functional.one_hot(classes)
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    return plugrad.one_hot(input, num_classes)
