"""Recurrent layers and transformers with any of their options: results and gradients of PyTorch.

The random numbers of dropout are PyTorch's, so training is compared as evaluation is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import plugrad

pytestmark = pytest.mark.filterwarnings("ignore")
EXAMPLES = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
recurrent = st.fixed_dictionaries(
    {
        "num_layers": st.sampled_from([1, 3]),
        "bidirectional": st.booleans(),
        "batch_first": st.booleans(),
        "dropout": st.sampled_from([0.0, 0.4]),
        "bias": st.booleans(),
    }
)
# The lengths of packed sequences; None is one tensor.
lengths = st.one_of(
    st.none(),
    st.lists(st.integers(1, 4), min_size=5, max_size=5).filter(lambda found: max(found) == 4),
)


def same(found: list[list[Any]]) -> None:
    for mine, other in zip(*found, strict=True):
        assert tuple(mine.shape) == tuple(other.shape)
        np.testing.assert_allclose(mine.detach(), other.detach().numpy(), rtol=1e-7, atol=1e-9)


@EXAMPLES
@given(st.sampled_from(["LSTM", "GRU", "RNN"]), recurrent, lengths, st.booleans(), st.booleans())
def test_recurrent_layers_are_torchs(
    torch: Any,
    kind: str,
    options: dict[str, Any],
    sizes: list[int] | None,
    projected: bool,
    training: bool,
) -> None:
    if projected and kind == "LSTM":
        options = {**options, "proj_size": 2}
    first = options["batch_first"]
    found = []
    for library in (plugrad, torch):
        rng = np.random.default_rng(0)
        library.manual_seed(1)
        layer = getattr(library.nn, kind)(3, 4, **options).double().train(training)
        x = library.tensor(
            rng.standard_normal((5, 4, 3) if first else (4, 5, 3)), requires_grad=True
        )
        rnn = library.nn.utils.rnn
        given_: Any = x
        if sizes is not None:
            ordered = sizes == sorted(sizes, reverse=True)
            given_ = rnn.pack_padded_sequence(x, sizes, first, enforce_sorted=ordered)
        output, states = layer(given_)
        if sizes is not None:
            output, back = rnn.pad_packed_sequence(output, first, -1.0, total_length=6)
            assert back.tolist() == sizes
        states = states if isinstance(states, tuple) else (states,)
        total = (output * output.detach().cos()).sum() + sum(h.square().sum() for h in states)
        total.backward()
        found.append([output, *states, x.grad, *(p.grad for p in layer.parameters())])
    same(found)


MASKS = ("none", "causal", "hint", "boolean", "added", "of heads", "padding", "added padding")


@settings(EXAMPLES, max_examples=30)
@given(
    st.fixed_dictionaries(
        {
            "dropout": st.sampled_from([0.0, 0.3]),
            "activation": st.sampled_from(["relu", "gelu"]),
            "batch_first": st.booleans(),
            "norm_first": st.booleans(),
            "bias": st.booleans(),
        }
    ),
    st.sets(st.sampled_from(MASKS), max_size=3),
    st.booleans(),
)
def test_transformers_are_torchs(
    torch: Any, options: dict[str, Any], masks: set[str], training: bool
) -> None:
    source, target, batch, heads, width = 5, 4, 3, 2, 8
    found = []
    for library in (plugrad, torch):
        rng = np.random.default_rng(0)
        library.manual_seed(1)
        net = library.nn.Transformer(width, heads, 2, 2, 16, **options).double().train(training)

        def sequence(length: int, library: Any = library, rng: Any = rng) -> Any:
            shape = (batch, length, width) if options["batch_first"] else (length, batch, width)
            return library.tensor(rng.standard_normal(shape), requires_grad=True)

        src, tgt = sequence(source), sequence(target)
        padding = library.arange(source) > library.tensor([[4], [3], [1]])
        given_: dict[str, Any] = {}
        if "causal" in masks:
            causal = net.generate_square_subsequent_mask(target, dtype=library.float64)
            given_["tgt_mask"] = causal
            given_["tgt_is_causal"] = True if "hint" in masks else None
        if "boolean" in masks:
            given_["src_mask"] = library.ones(source, source, dtype=library.bool).triu(1)
        if "added" in masks:
            given_["src_mask"] = library.tensor(rng.standard_normal((source, source)))
        if "of heads" in masks:
            shape = (batch * heads, source, source)
            given_["src_mask"] = library.tensor(rng.standard_normal(shape))
        if masks & {"padding", "added padding"}:
            given_["src_key_padding_mask"] = given_["memory_key_padding_mask"] = padding
        if "added padding" in masks:
            added = library.zeros(batch, source, dtype=library.float64)
            given_["src_key_padding_mask"] = added.masked_fill(padding, -math.inf)
        output = net(src, tgt, **given_)
        (output * output.detach().cos()).sum().backward()
        found.append([output, src.grad, tgt.grad, *(p.grad for p in net.parameters())])
    same(found)
