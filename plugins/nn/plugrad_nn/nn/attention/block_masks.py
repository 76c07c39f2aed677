"""Attention masks computed by a function, and which of their blocks must be computed."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Self

import plugrad
from plugrad import Tensor

__all__ = ["BlockMask", "and_masks", "create_block_mask", "create_mask", "noop_mask", "or_masks"]

# A function of batch, head, row (a place of the query) and column (one of the key), integers of
# shape (); it returns whether the pair is allowed.
MaskMod = Callable[..., Tensor]

BLOCK: Final = 128
_TENSORS: Final = (
    *("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices"),
    *("q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices"),
)
# The characters of `to_string` for blocks with no, some or all pairs.
_SHADES: Final = ("  ", "░░", "██")


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask that allows all pairs.

    Args:
        batch, head, token_q, token_kv: integers of shape ().

    >>> import plugrad
    >>> zero = plugrad.tensor(0)
    >>> plugrad.nn.attention.flex_attention.noop_mask(zero, zero, zero, zero)
    tensor(True)
    """
    return batch.new_ones((), dtype=plugrad.bool)


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask of pairs that all of some masks allow.

    Args:
        *mask_mods: functions as for `create_block_mask`.

    Raises:
        RuntimeError: one is not a function.

    >>> import plugrad
    >>> from plugrad.nn.attention.flex_attention import and_masks, create_mask
    >>> near = and_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: q - k < 2)
    >>> create_mask(near, 1, 1, 3, 3)[0, 0].int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [0, 1, 1]], dtype=plugrad.int32)
    """
    return _joined(mask_mods, True, plugrad.logical_and)


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask of pairs that one of some masks allows.

    Args:
        *mask_mods: functions as for `create_block_mask`.

    Raises:
        RuntimeError: one is not a function.

    >>> import plugrad
    >>> from plugrad.nn.attention.flex_attention import create_mask, or_masks
    >>> either = or_masks(lambda b, h, q, k: q == k, lambda b, h, q, k: k == 0)
    >>> create_mask(either, 1, 1, 2, 3)[0, 0].int()
    tensor([[1, 0, 0],
            [1, 1, 0]], dtype=plugrad.int32)
    """
    return _joined(mask_mods, False, plugrad.logical_or)


def _joined(mods: tuple[MaskMod, ...], start: bool, join: Callable[..., Tensor]) -> MaskMod:
    if not all(callable(mod) for mod in mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mods}")

    def joined(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_full((), start, dtype=plugrad.bool)
        for mod in mods:
            result = join(result, mod(b, h, q_idx, kv_idx))
        return result

    return joined


def over_places(function: Callable[..., Any], scores: bool = False) -> Callable[..., Any]:
    """A function of batch, head, row and column, of all of them at once: (B,), (H,), (L,) and (S,)
    give (B, H, L, S). With `scores`, scores (B, H, L, S) are a further argument, the first one."""
    first = (0,) if scores else ()
    for place in (3, 2, 1, 0):
        dims = tuple(0 if i == place else None for i in range(4))
        function = plugrad.vmap(function, in_dims=(*first, *dims))
    return function


def places(sizes: tuple[int, ...], device: Any) -> list[Tensor]:
    """The arguments of such a function."""
    return [plugrad.arange(size, dtype=plugrad.int32, device=device) for size in sizes]


def create_mask(
    mod_fn: Callable[..., Tensor],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
) -> Tensor:
    """The mask that a function computes, as booleans (B, H, Q_LEN, KV_LEN).

    Args:
        mod_fn: a function of batch, head, row and column, tensors of shape (); or a function of a
            score and these. The mask then has the pairs for which it does not turn a score of 0
            into -inf.
        B: how many samples there are; 1 for None.
        H: how many heads there are; 1 for None.
        Q_LEN: the length of the query.
        KV_LEN: the length of the key.
        device: where the mask is made.

    Raises:
        AssertionError: the function takes neither four nor five arguments.

    >>> import plugrad
    >>> from plugrad.nn.attention.flex_attention import create_mask
    >>> create_mask(lambda b, h, q, k: q >= k, None, None, 2, 2)[0, 0]
    tensor([[ True, False],
            [ True,  True]])
    """
    sizes = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    where = places(sizes, device)
    if _takes(mod_fn) == 4:
        found: Tensor = over_places(mod_fn)(*where)
        return found
    scores = over_places(mod_fn, scores=True)(plugrad.zeros(sizes, device=device), *where)
    return plugrad.isneginf(scores).logical_not()


def _takes(mod_fn: Callable[..., Any]) -> int:
    """The number of required arguments of a function."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(mod_fn).parameters.values()
    count = sum(one.kind in kinds and one.default is one.empty for one in parameters)
    if count not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {count}")
    return count


def create_block_mask(
    mask_mod: MaskMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = BLOCK,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """A mask with the list of its blocks that are not empty.

    Args:
        mask_mod: a function of batch, head, row and column, integers of shape (); it gives whether
            the pair is allowed.
        B: how many samples there are; None if the mask is the same for all.
        H: how many heads there are; None if the mask is the same for all.
        Q_LEN: the length of the query.
        KV_LEN: the length of the key.
        device: where the mask is made.
        BLOCK_SIZE: rows and columns of a block.
        separate_full_blocks: list fully allowed blocks on their own.
        compute_dq_write_order, dq_kv_order: are about PyTorch's kernels, and have no effect.

    Raises:
        AssertionError: `mask_mod` takes other arguments.

    >>> import plugrad
    >>> from plugrad.nn.attention.flex_attention import create_block_mask
    >>> mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 4, 4, BLOCK_SIZE=2)
    >>> mask.kv_num_blocks.tolist(), mask.full_kv_num_blocks.tolist()
    ([[[1, 1]]], [[[0, 1]]])
    """
    if _takes(mask_mod) != 4:
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    rows, columns = block = _pair(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    behind = (0, -KV_LEN % columns, 0, -Q_LEN % rows)
    padded = plugrad.nn.functional.pad(mask.int(), behind)
    cut = padded.unflatten(-1, (-1, columns)).unflatten(-3, (-1, rows))
    counts = cut.sum(dim=(-3, -1))
    full = counts == rows * columns
    partial = (counts > 0) & ~full if separate_full_blocks else counts > 0
    number, listed = _listed(partial)
    number_full, full_listed = _listed(full) if separate_full_blocks else (None, None)
    return BlockMask.from_kv_blocks(
        number, listed, number_full, full_listed, block, mask_mod, (Q_LEN, KV_LEN)
    )


def _pair(size: int | tuple[int, int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else size


def _listed(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Of each row, how many blocks are true, and the columns: first of these, then of others."""
    some = blocks.int()
    order = some.argsort(dim=-1, descending=True, stable=True)
    return some.sum(-1).int(), order.int()


def _dense(count: Tensor | None, indices: Tensor | None) -> Tensor | None:
    """The inverse: a boolean for each block."""
    if count is None or indices is None:
        return None
    listed = plugrad.arange(indices.shape[-1], device=indices.device) < count.unsqueeze(-1)
    return plugrad.zeros_like(listed).scatter(-1, indices.long(), listed)


class BlockMask:
    """A mask of attention, cut into blocks: which are empty, full, or between.

    `create_block_mask` makes one. Tensors with `num_blocks` have the shape (B, H, blocks of rows),
    and those with `indices` the shape (B, H, blocks of rows, blocks of columns); only the first
    `num_blocks` indices of a row are valid. Those that begin with `q` are the same by columns.

    Args:
        seq_lengths: the lengths of the query and of the key.
        kv_num_blocks: for each row of blocks, how many need `mask_mod`.
        kv_indices: which these are.
        full_kv_num_blocks: how many are full; None if those are among the others.
        full_kv_indices: which these are.
        q_num_blocks, q_indices, full_q_num_blocks, full_q_indices: the same by columns.
        BLOCK_SIZE: rows and columns of a block.
        mask_mod: the function that selects pairs.

    Raises:
        RuntimeError: `kv_indices` has fewer than two dimensions.
        AssertionError: a list of blocks comes without its numbers.

    >>> import plugrad
    >>> from plugrad.nn.attention.flex_attention import create_block_mask
    >>> mask = create_block_mask(lambda b, h, q, k: q >= k, 2, None, 300, 300)
    >>> mask.shape
    (2, 1, 300, 300)
    >>> mask.to_dense()[0, 0].int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [1, 1, 1]], dtype=plugrad.int32)
    """

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (BLOCK, BLOCK),
        mask_mod: MaskMod = noop_mask,
    ) -> None:
        if kv_indices.ndim < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        pairs = {
            "full_kv": (full_kv_num_blocks, full_kv_indices),
            "q": (q_num_blocks, q_indices),
            "full_q": (full_q_num_blocks, full_q_indices),
        }
        for name, (count, indices) in pairs.items():
            if (count is None) != (indices is None):
                raise AssertionError(
                    f"{name}_num_blocks and {name}_indices must be both provided or omitted"
                )
        self.seq_lengths = seq_lengths
        self.kv_num_blocks = kv_num_blocks
        self.kv_indices = kv_indices
        self.full_kv_num_blocks = full_kv_num_blocks
        self.full_kv_indices = full_kv_indices
        self.q_num_blocks = q_num_blocks
        self.q_indices = q_indices
        self.full_q_num_blocks = full_q_num_blocks
        self.full_q_indices = full_q_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = BLOCK,
        mask_mod: MaskMod | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> Self:
        """A mask from its lists by rows; the lists by columns are made from them.

        Args:
            kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices: see the class.
            BLOCK_SIZE: rows and columns of a block.
            mask_mod: without it all pairs of the listed blocks are allowed.
            seq_lengths: by default as long as all blocks.
            compute_q_blocks: whether to make the lists by columns.

        Raises:
            RuntimeError: `kv_indices` has fewer than two dimensions.
            AssertionError: full blocks come without their numbers.
        """
        if kv_indices.ndim < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError(
                "full_kv_num_blocks and full_kv_indices must be both provided or omitted"
            )
        by_columns: list[Tensor | None] = []
        for pair in ((kv_num_blocks, kv_indices), (full_kv_num_blocks, full_kv_indices)):
            dense = _dense(*pair) if compute_q_blocks else None
            by_columns += (None, None) if dense is None else _listed(dense.mT)
        size = _pair(BLOCK_SIZE)
        if seq_lengths is None:
            seq_lengths = kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1]
        lists = (kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, *by_columns)
        return cls._of(lists, seq_lengths, size, noop_mask if mask_mod is None else mask_mod)

    @classmethod
    def _of(
        cls, lists: Iterable[Any], lengths: tuple[int, int], size: tuple[int, int], mod: MaskMod
    ) -> Self:
        named = dict(zip(_TENSORS, lists, strict=True))
        return cls(seq_lengths=lengths, **named, BLOCK_SIZE=size, mask_mod=mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """(B, H, length of the query, length of the key)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """How many pairs there are."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """The percentage of pairs in empty blocks; below 0 if blocks reach over the edge by more
        than the empty ones leave out."""
        count = int(self.kv_num_blocks.sum())
        if self.full_kv_num_blocks is not None:
            count += int(self.full_kv_num_blocks.sum())
        return 100 * (1 - count * math.prod(self.BLOCK_SIZE) / self.numel())

    def to_dense(self) -> Tensor:
        """1 for each nonempty block, else 0: (B, H, blocks of rows, blocks of columns)."""
        found = self._partial()
        full = _dense(self.full_kv_num_blocks, self.full_kv_indices)
        return (found if full is None else found | full).int()

    def _partial(self) -> Tensor:
        found = _dense(self.kv_num_blocks, self.kv_indices)
        assert found is not None
        return found

    def pairs(self, batch: int, heads: int) -> Tensor:
        """Which pairs are allowed, (1 or `batch`, 1 or `heads`, L, S): pairs of a listed block
        that `mask_mod` allows."""
        rows, columns = self.seq_lengths
        sizes = (batch, heads, rows, columns)
        allowed: Tensor = over_places(self.mask_mod)(*places(sizes, self.kv_indices.device))
        listed = self.to_dense().bool()
        by_row = listed.repeat_interleave(self.BLOCK_SIZE[0], -2)[..., :rows, :]
        return allowed & by_row.repeat_interleave(self.BLOCK_SIZE[1], -1)[..., :columns]

    def __getitem__(self, index: Any) -> Self:
        """The mask of some samples, heads and rows of blocks; no dimension is dropped."""
        parts = index if isinstance(index, tuple) else (index,)
        kept = tuple(slice(one, one + 1 or None) if isinstance(one, int) else one for one in parts)
        if len(kept) > self.kv_num_blocks.ndim:
            kept = kept[: self.kv_num_blocks.ndim]
        chosen = [
            None if tensor is None else tensor[kept]
            for tensor in (getattr(self, name) for name in _TENSORS[:4])
        ]
        return self._like(chosen, self.seq_lengths)

    def _like(self, lists: list[Any], lengths: tuple[int, int]) -> Self:
        return type(self).from_kv_blocks(
            **dict(zip(_TENSORS[:4], lists, strict=True)),
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=self.mask_mod,
            seq_lengths=lengths,
            compute_q_blocks=self.q_indices is not None,
        )

    def _adjust(self, new_q_len: int, new_kv_len: int) -> Self:
        """The part of the mask for a shorter query and key."""
        rows = math.ceil(new_q_len / self.BLOCK_SIZE[0])
        columns = math.ceil(new_kv_len / self.BLOCK_SIZE[1])
        lists: list[Any] = []
        for dense in (self._partial(), _dense(self.full_kv_num_blocks, self.full_kv_indices)):
            lists += (None, None) if dense is None else _listed(dense[..., :rows, :columns])
        return self._like(lists, (new_q_len, new_kv_len))

    def to(self, device: Any) -> Self:
        """The same with its tensors on a device."""
        moved = [
            None if tensor is None else tensor.to(device)
            for tensor in (getattr(self, name) for name in _TENSORS)
        ]
        return self._of(moved, self.seq_lengths, self.BLOCK_SIZE, self.mask_mod)

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """The components of the mask, in PyTorch's order; `flatten` splits pairs of numbers. Four
        entries about PyTorch's kernels are None.
        """
        lengths: tuple[Any, ...] = self.seq_lengths if flatten else (self.seq_lengths,)
        size: tuple[Any, ...] = self.BLOCK_SIZE if flatten else (self.BLOCK_SIZE,)
        lists = [getattr(self, name) for name in _TENSORS]
        return (*lengths, *lists, None, None, None, None, *size, self.mask_mod)

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """A picture of each sample and head: dark where all blocks are computed, grey where some
        are.

        Args:
            grid_size: how many rows and columns a picture has at most; -1 for all blocks.
            limit: how many pictures there are at most.
        """
        dense = self.to_dense().cpu()
        high, wide = _pair(grid_size)
        pictures = []
        for number, place in enumerate(_indices(tuple(dense.shape[:-2]))):
            if number == limit:
                pictures.append("...")
                pictures.append("To print out more, set BlockMask.to_string(limit=N)")
                pictures.append("An index, BlockMask[batch, head], chooses one of them")
                break
            pictures.append(f"{place}\n" + "\n".join(_picture(dense[place], high, wide)) + "\n")
        return "\n".join(pictures)

    def __str__(self) -> str:
        return (
            f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string()})"
        )

    def __repr__(self) -> str:
        lines = [
            f"    {name}={None if tensor is None else tensor.shape!r},"
            for name, tensor in ((name, getattr(self, name)) for name in _TENSORS)
        ]
        name = getattr(self.mask_mod, "__name__", self.mask_mod)
        lines += [
            f"    BLOCK_SIZE={self.BLOCK_SIZE},",
            f"    shape={self.shape},",
            f"    sparsity={self.sparsity():.2f}%,",
            f"    mask_mod={name}",
        ]
        return "\n".join(["BlockMask(", *lines, ")"])


def _indices(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    if not shape:
        yield ()
        return
    for first in range(shape[0]):
        for rest in _indices(shape[1:]):
            yield (first, *rest)


def _picture(blocks: Tensor, high: int, wide: int) -> Iterator[str]:
    """Lines of characters, each for some blocks."""
    rows = max(1, math.ceil(blocks.shape[0] / high)) if high > 0 else 1
    columns = max(1, math.ceil(blocks.shape[1] / wide)) if wide > 0 else 1
    for line in blocks.split(rows):
        cells = line.split(columns, dim=1)
        yield "".join(_SHADES[int(cell.any()) + int(cell.all())] for cell in cells)
