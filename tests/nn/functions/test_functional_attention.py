"""Attention of several heads against PyTorch, in float64, with all its arguments."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad

Compare = Callable[..., None]

L, S, N, E, H = 2, 3, 2, 4, 2


def _random(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape)


MASK = np.array([[False, True, False], [False, False, True]])
PADDING = np.array([[False, True, False], [False, False, False]])
SEPARATE = {
    "use_separate_proj_weight": True,
    "q_proj_weight": _random(E, E),
    "k_proj_weight": _random(E, E + 1),
    "v_proj_weight": _random(E, E + 2),
}
EXTRA = {"bias_k": _random(1, 1, E), "bias_v": _random(1, 1, E), "add_zero_attn": True}
STATIC = {"static_k": _random(N * H, 5, 2), "static_v": _random(N * H, 5, 2)}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"need_weights": False},
        {"average_attn_weights": False, "attn_mask": MASK},
        {"need_weights": False, "attn_mask": MASK, "key_padding_mask": PADDING},
        {"key_padding_mask": PADDING, **EXTRA},
        {"need_weights": False, "attn_mask": _random(N * H, L, S)},
        {"need_weights": False, "attn_mask": np.triu(np.ones((L, S)), 1) > 0, "is_causal": True},
        STATIC,
        SEPARATE,
    ],
)
def test_heads_match_torch(
    torch: Any, assert_equal_to_torch: Compare, options: dict[str, Any]
) -> None:
    separate = "use_separate_proj_weight" in options
    results = []
    for library in (plugrad, torch):

        def to(value: Any, library: Any = library) -> Any:
            return library.tensor(value) if isinstance(value, np.ndarray) else value

        given = {key: to(value) for key, value in options.items()}
        query = to(_random(L, N, E)).requires_grad_()
        key, value = to(_random(S, N, E + separate)), to(_random(S, N, E + 2 * separate))
        first = [given.pop(name, None) for name in ("bias_k", "bias_v")]
        zeros = given.pop("add_zero_attn", False)
        weight = None if separate else to(_random(3 * E, E))
        parts = (E, H, weight, to(_random(3 * E)), *first, zeros, 0.0)
        last = (to(_random(E, E)), to(_random(E)))
        out, weights = library.nn.functional.multi_head_attention_forward(
            query, key, value, *parts, *last, **given
        )
        (out * out).sum().backward()
        results.append((out, query.grad, weights))
    for actual, expected in zip(*results, strict=True):
        assert (actual is None) == (expected is None)
        if expected is not None:
            assert_equal_to_torch(actual, expected)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((L, N, E, 1),) * 3, "query should be unbatched 2D or batched 3D tensor"),
        (((L, N, E), (S, E), (S, N, E)), "expected `key` and `value` to be 3-D"),
        (((L, N, E), (S, N, E), (L, N, E)), "does not match value shape"),
        (((L, N, E + 1),) * 3, "was expecting embedding dimension of 4, but got 5"),
    ],
)
def test_wrong_shapes_raise(shapes: Any, message: str) -> None:
    tensors = [plugrad.ones(*shape) for shape in shapes]
    with pytest.raises(AssertionError, match=message):
        plugrad.nn.functional.multi_head_attention_forward(
            *tensors,
            *(E, H, plugrad.ones(3 * E, E), None, None, None, False, 0.0),
            plugrad.ones(E, E),
            None,
        )


def test_causal_hint_without_mask_raises() -> None:
    x = plugrad.ones(L, N, E)
    weight = plugrad.ones(3 * E, E)
    with pytest.raises(RuntimeError, match="Need attn_mask if specifying the is_causal hint"):
        plugrad.nn.functional.multi_head_attention_forward(
            *(x, x, x, E, H, weight, None, None, None, False, 0.0, plugrad.ones(E, E), None),
            is_causal=True,
        )


@pytest.mark.filterwarnings("ignore:.*ower right causal bias")
@pytest.mark.parametrize("sizes", [(3, 3), (2, 4), (4, 2)])
@pytest.mark.parametrize("corner", ["upper_left", "lower_right"])
def test_causal_masks_as_objects_match_torch(
    torch: Any, assert_equal_to_torch: Compare, corner: str, sizes: tuple[int, int]
) -> None:
    results = []
    for library in (plugrad, torch):
        bias = importlib.import_module(f"{library.__name__}.nn.attention.bias")
        mask = getattr(bias, f"causal_{corner}")(*sizes)
        q, k = library.tensor(_random(1, sizes[0], 4)), library.tensor(_random(1, sizes[1], 4))
        attend = library.nn.functional.scaled_dot_product_attention
        with library.nn.attention.sdpa_kernel(library.nn.attention.SDPBackend.MATH):
            results.append(attend(q, k, k, mask))
        with pytest.raises(ValueError, match="CausalBias should not be used with causal=True"):
            attend(q, k, k, mask, is_causal=True)
        with (
            pytest.raises(AssertionError, match="Backend must be an instance of SDPBackend or a"),
            library.nn.attention.sdpa_kernel(3),
        ):
            pass
    assert_equal_to_torch(*results)
