"""Attention and transformers: weights, results, gradients and errors of PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad import nn

BOOL = np.array([[False, False, False, True], [False, False, True, True]])
CAUSAL = np.triu(np.ones((3, 3), dtype=bool), 1)
ENCODER = "TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 6{}), 2, nn.LayerNorm(4))"
DECODER = "TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 6{}), 2)"
SMALL = "Transformer(4, 2, 1, 2, 6, 0.5, batch_first=True, bias=False)"

# The module, the shapes of its inputs, and arrays of masks or other keyword arguments.
CASES: list[tuple[str, list[tuple[int, ...]], dict[str, Any]]] = [
    ("MultiheadAttention(4, 2)", [(3, 2, 4), (4, 2, 4), (4, 2, 4)], {}),
    ("MultiheadAttention(4, 2)", [(3, 4)] * 3, {"attn_mask": CAUSAL}),
    (
        "MultiheadAttention(4, 2, 0.5, kdim=3, vdim=5, batch_first=True)",
        [(2, 3, 4), (2, 4, 3), (2, 4, 5)],
        {"key_padding_mask": BOOL, "average_attn_weights": False},
    ),
    (
        "MultiheadAttention(4, 2, 0.5, add_bias_kv=True, add_zero_attn=True, batch_first=True)",
        [(2, 4, 4)] * 3,
        {"key_padding_mask": BOOL, "need_weights": False},
    ),
    (
        "MultiheadAttention(4, 2, bias=False)",
        [(3, 2, 4)] * 3,
        {"attn_mask": CAUSAL, "is_causal": True, "need_weights": False},
    ),
    ("TransformerEncoderLayer(4, 2, 6, activation='gelu')", [(3, 2, 4)], {"src_mask": CAUSAL}),
    ("TransformerDecoderLayer(4, 2, 6, activation=nn.ELU())", [(3, 4), (5, 4)], {}),
    (ENCODER.format(""), [(3, 2, 4)], {"mask": CAUSAL}),
    (
        ENCODER.format(", norm_first=True, batch_first=True"),
        [(2, 4, 4)],
        {"src_key_padding_mask": BOOL},
    ),
    (DECODER.format(", batch_first=True"), [(2, 3, 4), (2, 4, 4)], {"tgt_mask": CAUSAL}),
    (DECODER.format(", norm_first=True"), [(4, 2, 4), (4, 2, 4)], {"tgt_key_padding_mask": BOOL}),
    (SMALL, [(2, 4, 4), (2, 3, 4)], {"tgt_mask": CAUSAL, "memory_key_padding_mask": BOOL}),
]


@pytest.mark.parametrize(("expression", "shapes", "options"), CASES)
def test_transformer_is_torchs(
    torch: Any,
    rng: np.random.Generator,
    assert_equal_to_torch: Callable[..., None],
    expression: str,
    shapes: list[tuple[int, ...]],
    options: dict[str, Any],
) -> None:
    values = [rng.standard_normal(shape) for shape in shapes]
    found = []
    for library in (plugrad, torch):
        library.manual_seed(4)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="enable_nested_tensor")
            module = eval(f"nn.{expression}", {"nn": library.nn}).double()
        given = {
            name: library.tensor(value) if isinstance(value, np.ndarray) else value
            for name, value in options.items()
        }
        inputs = [library.tensor(value, requires_grad=True) for value in values]
        if len({value.shape for value in values}) == 1 and "Attention" in expression:
            inputs = inputs[:1] * 3
        weights = [weight.detach().clone() for weight in module.state_dict().values()]
        results = module(*inputs, **given)
        results = list(results) if isinstance(results, tuple) else [results]
        sum(result.pow(2).sum() for result in results if result is not None).backward()
        grads = [parameter.grad for parameter in [*inputs, *module.parameters()]]
        found.append((repr(module), list(module.state_dict()), [*weights, *results, *grads]))
    (printed, names, actual), (expected_printed, expected_names, expected) = found
    assert printed == expected_printed
    assert names == expected_names
    for tensor, expected_tensor in zip(actual, expected, strict=True):
        assert_equal_to_torch(tensor, expected_tensor, atol=1e-7)


def test_causal_masks_are_recognised() -> None:
    """With the causal mask, what comes later changes nothing; with none, it does."""
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 6), 2).eval()
    mask = nn.Transformer.generate_square_subsequent_mask(3)
    assert mask.tolist() == np.where(CAUSAL, -np.inf, 0.0).tolist()
    x = plugrad.rand(3, 1, 4)
    other = x.clone()
    other[2] = 0.0
    for given in (None, True, False):
        pair = encoder(x, mask, is_causal=given), encoder(other, mask, is_causal=given)
        assert plugrad.allclose(pair[0][:2], pair[1][:2])
    assert not plugrad.allclose(encoder(x)[:2], encoder(other)[:2])


def test_weights_of_attention_are_the_shares_of_the_keys() -> None:
    attention = nn.MultiheadAttention(2, 1, bias=False)
    for weight in attention.parameters():
        nn.init.zeros_(weight)
    x = plugrad.rand(3, 2)
    result, weights = attention(x, x, x, key_padding_mask=plugrad.tensor([False, True, False]))
    assert weights.tolist() == [[0.5, 0.0, 0.5]] * 3
    assert result.tolist() == [[0.0, 0.0]] * 3


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("nn.MultiheadAttention(3, 2)", AssertionError),
        ("nn.MultiheadAttention(0, 2)", ValueError),
        ("nn.MultiheadAttention(2, 2)(x, x, x, is_causal=True)", RuntimeError),
        ("nn.TransformerEncoderLayer(2, 2, activation='sin')", RuntimeError),
        ("nn.Transformer(2, 2, 1, 1)(x[:, None], lib.zeros(3, 2, 2))", RuntimeError),
        ("nn.Transformer(2, 2, 1, 1)(x, lib.zeros(3, 4))", RuntimeError),
    ],
)
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_wrong_arguments_raise_torchs_words(
    torch: Any, expression: str, error: type[Exception]
) -> None:
    messages = []
    for library in (plugrad, torch):
        with pytest.raises(error) as caught:
            eval(expression, {"nn": library.nn, "lib": library, "x": library.zeros(3, 2)})
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
