"""Attention with functions for scores and masks. Oracle: PyTorch, which computes the same without
a compiler; closed forms where its result would not depend on the list of blocks."""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad_nn.nn.attention import flex_attention as ours


@pytest.fixture
def theirs(torch_oracle: Any) -> Any:
    warnings.filterwarnings("ignore", message="flex_attention called without torch.compile")
    return importlib.import_module("torch.nn.attention.flex_attention")


def causal(b: Any, h: Any, q: Any, k: Any) -> Any:
    return q >= k


def window(b: Any, h: Any, q: Any, k: Any) -> Any:
    return (q - k).abs() <= 40 + 20 * h


def later_samples(b: Any, h: Any, q: Any, k: Any) -> Any:
    return (q >= k) & (b > 0)


def decay(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
    return score - (q - k) * 0.01 * (h + 1)


def nothing(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
    return score * 0


MASKS = [None, causal, window, later_samples]
TENSORS = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices")
LISTS = (*TENSORS, *(name.replace("kv", "q") for name in TENSORS))


def inputs(rng: np.random.Generator, *shapes: tuple[int, ...]) -> list[Any]:
    return [rng.standard_normal(shape).astype("f4") for shape in shapes]


def attended(lib: Any, flex: Any, arrays: list[Any], mask: Any, **options: Any) -> list[Any]:
    """The result, and the other requested results."""
    query, key, value = (lib.tensor(array) for array in arrays)
    block_mask = None
    if mask is not None:
        sizes = (query.shape[0], query.shape[1], query.shape[2], key.shape[2])
        block_mask = flex.create_block_mask(mask, *sizes, device="cpu")
    found = flex.flex_attention(query, key, value, block_mask=block_mask, **options)
    return [one.numpy() for one in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("score_mod", [None, decay, nothing])
@pytest.mark.parametrize(("lse", "dtype"), [(False, "f4"), (True, "f8")])
def test_values_are_pytorchs(
    mask: Any, score_mod: Any, lse: bool, dtype: str, theirs: Any, torch_oracle: Any
) -> None:
    shapes = (2, 2, 130, 4), (2, 2, 129, 4), (2, 2, 129, 3)
    arrays = [one.astype(dtype) for one in inputs(np.random.default_rng(0), *shapes)]
    options = {"score_mod": score_mod, "return_lse": lse}
    found = attended(plugrad, ours, arrays, mask, **options)
    expected = attended(torch_oracle, theirs, arrays, mask, **options)
    for mine, other in zip(found, expected, strict=True):
        assert mine.dtype == other.dtype
        np.testing.assert_allclose(mine, other, rtol=2e-5, atol=2e-6)


def test_several_heads_share_one_of_the_keys(theirs: Any, torch_oracle: Any) -> None:
    arrays = inputs(np.random.default_rng(0), (1, 4, 5, 2), (1, 2, 6, 2), (1, 2, 6, 2))
    options = {"enable_gqa": True, "scale": 0.3}
    (mine,) = attended(plugrad, ours, arrays, causal, **options)
    (other,) = attended(torch_oracle, theirs, arrays, causal, **options)
    np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)


def test_16_bits_are_weighed_in_32(theirs: Any, torch_oracle: Any) -> None:
    arrays = [one.astype("f2") for one in inputs(np.random.default_rng(0), *[(1, 2, 40, 8)] * 3)]
    (mine,) = attended(plugrad, ours, arrays, causal, score_mod=decay)
    (other,) = attended(torch_oracle, theirs, arrays, causal, score_mod=decay)
    assert mine.dtype == np.float16
    np.testing.assert_allclose(mine, other, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("mask", MASKS)
def test_gradients(mask: Any) -> None:
    """By finite differences, including a tensor that the function for scores reads."""
    rng = np.random.default_rng(0)
    shapes = (2, 2, 3, 2), (2, 2, 2, 2), (2, 2, 2, 1), (2, 2)
    arrays = [plugrad.tensor(rng.standard_normal(shape), requires_grad=True) for shape in shapes]
    block_mask = None if mask is None else ours.create_block_mask(mask, 2, 2, 3, 2)

    def attend(query: Any, key: Any, value: Any, bias: Any) -> Any:
        def biased(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
            return score.sin() + bias[h, k]

        return ours.flex_attention(query, key, value, biased, block_mask, return_lse=mask is None)

    assert plugrad.autograd.gradcheck(attend, arrays)
    assert plugrad.autograd.gradgradcheck(attend, arrays)


@pytest.mark.parametrize("mask", MASKS[1:])
@pytest.mark.parametrize("sizes", [(1, None, 300, 300), (2, 3, 100, 260), (None, 2, 128, 1)])
@pytest.mark.parametrize("options", [{}, {"BLOCK_SIZE": (64, 32)}, {"separate_full_blocks": False}])
def test_masks_are_pytorchs(mask: Any, sizes: Any, options: Any, theirs: Any) -> None:
    mine = ours.create_block_mask(mask, *sizes, device="cpu", **options)
    other = theirs.create_block_mask(mask, *sizes, device="cpu", **options)
    for name in LISTS:
        found, expected = getattr(mine, name), getattr(other, name)
        assert (found is None) == (expected is None)
        if found is not None:
            assert str(found.dtype).endswith("int32")
            np.testing.assert_array_equal(found.numpy(), expected.numpy())
    assert mine.shape == tuple(other.shape)
    assert mine.numel() == other.numel()
    assert mine.sparsity() == pytest.approx(other.sparsity())
    np.testing.assert_array_equal(mine.to_dense().numpy(), other.to_dense().numpy())
    short = mine._adjust(50, 1), other._adjust(50, 1)
    np.testing.assert_array_equal(short[0].to_dense().numpy(), short[1].to_dense().numpy())
    assert mine[0].shape == tuple(other[0].shape)
    assert mine[:, :, 0].kv_num_blocks.shape == tuple(other[:, :, 0].kv_num_blocks.shape)
    assert repr(mine).replace("plugrad.", "") == repr(other).replace("torch.", "")
    places = [i for i, one in enumerate(other.as_tuple()) if not hasattr(one, "numpy")]
    assert [mine.as_tuple()[i] for i in places] == [other.as_tuple()[i] for i in places]


def test_a_picture_of_a_mask_is_pytorchs(theirs: Any) -> None:
    for options in ({}, {"grid_size": 2}, {"grid_size": -1}):
        mine, other = (
            flex.create_block_mask(causal, 2, None, 700, 600, device="cpu").to_string(**options)
            for flex in (ours, theirs)
        )
        assert mine.split() == other.split()


def test_only_pairs_in_listed_blocks_take_part() -> None:
    """Each row of blocks has one block of two: its values' mean is what comes out."""
    mask = ours.BlockMask.from_kv_blocks(
        plugrad.ones(1, 1, 2, dtype=plugrad.int32),
        plugrad.tensor([[[[1, 0], [0, 1]]]], dtype=plugrad.int32),
        BLOCK_SIZE=2,
    )
    assert mask.shape == (1, 1, 4, 4)
    x, value = plugrad.zeros(1, 1, 4, 1), plugrad.arange(4.0).reshape(1, 1, 4, 1)
    found = ours.flex_attention(x, x, value, block_mask=mask)
    assert found.flatten().tolist() == [2.5, 2.5, 0.5, 0.5]


def test_rows_without_pairs_give_zeros_and_no_gradient() -> None:
    mask = ours.create_block_mask(lambda b, h, q, k: (q > 0) & (k == 0), None, None, 2, 2)
    x = plugrad.tensor([[[[1.0], [2.0]]]], requires_grad=True)
    aux = ours.AuxRequest(lse=True, max_scores=True)
    found, more = ours.flex_attention(x, x, x, block_mask=mask, return_aux=aux)
    assert found.flatten().tolist() == [0.0, 1.0]
    assert more.lse.flatten().tolist() == more.max_scores.flatten().tolist() == [-np.inf, 2.0]
    found.sum().backward()
    assert x.grad is not None
    assert x.grad.flatten().tolist() == [1.0, 0.0]


def test_masks_and_functions_are_joined(theirs: Any, torch_oracle: Any) -> None:
    for name in ("and_masks", "or_masks"):
        mine, other = (
            flex.create_mask(getattr(flex, name)(*some), 2, 2, 30, 50, device="cpu")
            for flex in (ours, theirs)
            for some in [(causal, window, later_samples)]
        )
        np.testing.assert_array_equal(mine.numpy(), other.numpy())

        def masked(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
            return score.masked_fill(q < k, -np.inf)

        mine, other = (
            flex.create_mask(masked, None, 1, 3, 2, device="cpu") for flex in (ours, theirs)
        )
        np.testing.assert_array_equal(mine.numpy(), other.numpy())


WRONG: dict[str, Callable[[Any, Any], Any]] = {
    "dimensions": lambda lib, flex: flex.flex_attention(*[lib.ones(2, 3, 4)] * 3),
    "heads": lambda lib, flex: flex.flex_attention(
        lib.ones(1, 2, 3, 4), *[lib.ones(1, 1, 3, 4)] * 2
    ),
    "gqa": lambda lib, flex: flex.flex_attention(
        lib.ones(1, 3, 3, 4), *[lib.ones(1, 2, 3, 4)] * 2, enable_gqa=True
    ),
    "batch": lambda lib, flex: flex.flex_attention(
        lib.ones(2, 1, 3, 4), *[lib.ones(1, 1, 3, 4)] * 2
    ),
    "both": lambda lib, flex: flex.flex_attention(
        *[lib.ones(1, 1, 3, 4)] * 3, return_lse=True, return_aux=flex.AuxRequest(lse=True)
    ),
    "arguments": lambda lib, flex: flex.create_mask(lambda b, h: b, 1, 1, 2, 2, device="cpu"),
    "no function": lambda lib, flex: flex.and_masks(3),
    "lists": lambda lib, flex: flex.BlockMask.from_kv_blocks(
        *[lib.ones(1, 1, 1, 1).int()] * 2, full_kv_indices=lib.ones(1, 1, 1, 1).int()
    ),
    "one dimension": lambda lib, flex: flex.BlockMask.from_kv_blocks(
        *[lib.ones(1).int(), lib.zeros(1).int()]
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors_are_pytorchs(case: str, theirs: Any, torch_oracle: Any) -> None:
    raised = []
    for lib, flex in ((plugrad, ours), (torch_oracle, theirs)):
        with pytest.raises(Exception, match=r".") as error:
            WRONG[case](lib, flex)
        raised.append((type(error.value).__name__, str(error.value)))
    assert raised[0] == raised[1]


def test_a_mask_of_other_lengths_is_refused() -> None:
    x = plugrad.ones(1, 1, 3, 4)
    mask = ours.create_block_mask(causal, None, None, 5, 5)
    with pytest.raises(ValueError, match=re.escape("(1, 1, 5, 5) but got q_len=3 and kv_len=3")):
        ours.flex_attention(x, x, x, block_mask=mask)
    other = ours.create_block_mask(causal, 2, None, 3, 3)
    with pytest.raises(ValueError, match="created for B=2, but query has B=1"):
        ours.flex_attention(x, x, x, block_mask=other)
    assert ours.flex_attention(x, x, x, block_mask=mask._adjust(3, 3)).shape == x.shape
