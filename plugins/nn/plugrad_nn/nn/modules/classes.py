"""Layers over many classes or words: EmbeddingBag, AdaptiveLogSoftmaxWithLoss."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import plugrad
from plugrad import Tensor
from plugrad_nn.nn import functional as F
from plugrad_nn.nn import init
from plugrad_nn.nn.container import ModuleList, Sequential
from plugrad_nn.nn.linear import Linear
from plugrad_nn.nn.module import Module
from plugrad_nn.nn.parameter import Parameter


class EmbeddingBag(Module):
    """Sums, means or maxima of rows of a table, looked up by bags of integers.

    Args:
        num_embeddings, embedding_dim: the table is (V, E); it starts normal.
        max_norm: rows that are looked up are scaled down in place to this norm.
        norm_type: the p of that norm.
        scale_grad_by_freq: divide a row's gradient by how often it was looked up.
        mode: "sum", "mean" or "max".
        include_last_offset: `offsets` has one more element, the end of the last bag.
        padding_idx: a row that starts at zero, does not count and gets no gradient.

    >>> import plugrad
    >>> table = plugrad.tensor([[1.0], [10.0], [100.0]])
    >>> bag = plugrad.nn.EmbeddingBag.from_pretrained(table, mode="sum")
    >>> bag(plugrad.tensor([0, 1, 2, 2]), offsets=plugrad.tensor([0, 2]))
    tensor([[ 11.],
            [200.]])
    """

    weight: Parameter

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: plugrad.dtype | None = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        shape = (num_embeddings, embedding_dim)
        if _weight is None:
            self.weight = Parameter(plugrad.empty(shape, device=device, dtype=dtype))
            self.reset_parameters()
        elif tuple(_weight.shape) != shape:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        else:
            self.weight = Parameter(_weight)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def reset_parameters(self) -> None:
        """Draws the table again from the standard normal distribution."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with plugrad.no_grad():
                self.weight[self.padding_idx].fill_(0)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """A layer over an existing table (V, E), which is not trained unless `freeze` is False.

        >>> import plugrad
        >>> weights = plugrad.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> bag = plugrad.nn.EmbeddingBag.from_pretrained(weights, mode="sum")
        >>> bag(plugrad.tensor([[0, 1]]))
        tensor([[4., 6.]])
        """
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        made = cls(
            rows,
            columns,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            embeddings,
            include_last_offset,
            padding_idx,
        )
        made.weight.requires_grad_(not freeze)
        return made

    def forward(
        self,
        input: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:
        """(B, E) for bags (B, N), or for one row of integers (N) that `offsets` (B) cuts into bags.

        `per_sample_weights`, with the shape of `input`, are factors of the rows; for "sum" only.
        """
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        for name, default in (
            ("max_norm", None),
            ("norm_type", 2),
            ("scale_grad_by_freq", False),
            # Printed always.
            ("mode", None),
            ("padding_idx", None),
        ):
            if getattr(self, name) != default:
                parts.append(f"{name}={getattr(self, name)!r}")
        return ", ".join(parts)


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of many classes, cheap for frequent ones.

    Classes are sorted by frequency, most frequent first, and cut into clusters. The head predicts
    the classes of the first cluster and the other clusters; each of these has its own two linear
    layers.

    Args:
        in_features: the width of the input (N, in_features) or (in_features).
        n_classes: how many classes there are.
        cutoffs: where the clusters after the first begin: rising, within [1, n_classes - 1].
        div_value: the width of each further cluster is divided by a higher power of it.
        head_bias: add a bias to the head.

    Source: Grave et al., Efficient softmax approximation for GPUs, 2017.

    >>> import plugrad
    >>> layer = plugrad.nn.AdaptiveLogSoftmaxWithLoss(8, 10, cutoffs=[2, 6], div_value=2.0)
    >>> output, loss = layer(plugrad.ones(3, 8), plugrad.tensor([0, 5, 9]))
    >>> output.shape, loss.shape
    (plugrad.Size([3]), plugrad.Size([]))
    """

    head: Linear
    tail: ModuleList

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: plugrad.dtype | None = None,
    ) -> None:
        super().__init__()
        cuts = list(cutoffs)
        if not cuts:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        rising = all(before < after for before, after in pairwise(cuts))
        whole = all(int(cut) == cut for cut in cuts)
        if not (rising and whole and cuts[0] > 0 and cuts[-1] < n_classes):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an "
                "increasing order, where each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cuts, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = cuts[0]
        self.n_clusters = len(cuts)
        self.head_size = self.shortlist_size + self.n_clusters
        where: dict[str, Any] = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **where)
        self.tail = ModuleList()
        for place, (first, end) in enumerate(pairwise(self.cutoffs), 1):
            width = int(in_features // div_value**place)
            self.tail.append(
                Sequential(
                    Linear(in_features, width, bias=False, **where),
                    Linear(width, end - first, bias=False, **where),
                )
            )

    def reset_parameters(self) -> None:
        """Draws the initial weights again."""
        self.head.reset_parameters()
        for narrow, wide in self.tail:
            narrow.reset_parameters()
            wide.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """The log-probabilities of the targets (N) or (), and the mean of their negatives."""
        self._check(input_, target_)
        batched = target_.dim() > 0
        input, target = (input_, target_) if batched else (input_[None], target_[None])
        low, high = int(target.min()), int(target.max())
        if low < 0 or high >= self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{low}, {high}] were found. "
            )
        # The head's column for each target: its own, or its cluster's.
        column = target
        rows_of = []
        for place, (first, end) in enumerate(pairwise(self.cutoffs)):
            inside = (target >= first) & (target < end)
            rows_of.append(inside.nonzero().squeeze(1))
            column = column.masked_fill(inside, self.shortlist_size + place)
        output = F.log_softmax(self.head(input), dim=1).gather(1, column[:, None]).squeeze(1)
        for place, rows in enumerate(rows_of):
            if rows.numel():
                within = F.log_softmax(self.tail[place](input.index_select(0, rows)), dim=1)
                chosen = target.index_select(0, rows) - self.cutoffs[place]
                output = output.index_add(0, rows, within.gather(1, chosen[:, None]).squeeze(1))
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _check(self, input: Tensor, target: Tensor) -> None:
        rank = target.dim()
        if rank > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if rank == 1 and input.shape[0] != target.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input.dim() != rank + 1:
            raise RuntimeError(
                f"{rank}D target tensor expects {rank + 1}D input tensors, but found inputs with "
                f"size {input.shape}"
            )

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes: (N, n_classes) for (N, in_features).

        >>> import plugrad
        >>> head = plugrad.nn.AdaptiveLogSoftmaxWithLoss(4, 6, cutoffs=[2])
        >>> scores = head.log_prob(plugrad.randn(3, 4))
        >>> scores.shape, plugrad.allclose(scores.exp().sum(1), plugrad.ones(3))
        (plugrad.Size([3, 6]), True)
        """
        head = F.log_softmax(self.head(input), dim=1)
        parts = [head[:, : self.shortlist_size]]
        for place in range(self.n_clusters):
            within = F.log_softmax(self.tail[place](input), dim=1)
            parts.append(within + head[:, self.shortlist_size + place, None])
        return plugrad.cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable classes (N); only those that the head sends on need the clusters.

        >>> import plugrad
        >>> head = plugrad.nn.AdaptiveLogSoftmaxWithLoss(4, 6, cutoffs=[2])
        >>> x = plugrad.randn(3, 4)
        >>> plugrad.equal(head.predict(x), head.log_prob(x).argmax(1))
        True
        """
        best: Tensor = self.head(input).argmax(1)
        rows = (best >= self.shortlist_size).nonzero().squeeze(1)
        if not rows.numel():
            return best
        return best.index_copy(0, rows, self.log_prob(input.index_select(0, rows)).argmax(1))
