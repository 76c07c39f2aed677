"""Models under `vmap`, `grad`, `jvp` and `functional_call`. Oracle: a loop over the samples."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import plugrad
from plugrad import nn
from plugrad.func import functional_call, grad, jvp, vmap


class Attention(nn.Module):
    """Words in, classes out."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(7, 6)
        self.queries, self.keys, self.out = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 4)

    def forward(self, x: plugrad.Tensor) -> plugrad.Tensor:
        hidden = self.words(x)
        scores = self.queries(hidden) @ self.keys(hidden).transpose(-1, -2) / 6**0.5
        return self.out((nn.functional.softmax(scores, -1) @ hidden).mean(1))


MODELS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "layer norm": (
        lambda: nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 4)),
        lambda: plugrad.randn(3, 5),
    ),
    "convolution": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(4, 4, 3, groups=2), nn.Tanh(), nn.Flatten(), nn.Linear(4, 4),
        ),
        lambda: plugrad.randn(3, 2, 6, 6),
    ),
    "batch norm": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.SiLU(), nn.Flatten(), nn.Linear(16, 4)
        ).eval(),
        lambda: plugrad.randn(3, 2, 4, 4),
    ),
    "attention": (Attention, lambda: plugrad.randint(0, 7, (3, 5))),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_gradients_of_every_sample_and_products_are_those_of_a_loop(name: str) -> None:
    plugrad.manual_seed(0)
    make, inputs = MODELS[name]
    model, x, y = make(), inputs(), plugrad.randint(0, 4, (3,))
    params = {key: value.detach() for key, value in model.named_parameters()}

    def loss(params: Any, x: plugrad.Tensor, y: plugrad.Tensor) -> plugrad.Tensor:
        logits = functional_call(model, params, (x.unsqueeze(0),))
        return nn.functional.cross_entropy(logits, y.unsqueeze(0))

    with warnings.catch_warnings():
        # No operator falls back to a loop.
        warnings.simplefilter("error")
        found = vmap(grad(loss), in_dims=(None, 0, 0))(params, x, y)
    ones = {key: plugrad.ones_like(value) for key, value in params.items()}
    for sample in range(3):
        wanted = grad(loss)(params, x[sample], y[sample])
        for key in params:
            plugrad.testing.assert_close(found[key][sample], wanted[key], atol=1e-5, rtol=1e-4)
        _, product = jvp(lambda p, i=sample: loss(p, x[i], y[i]), (params,), (ones,))
        total = sum(value.sum() for value in wanted.values())
        plugrad.testing.assert_close(product, total, atol=1e-4, rtol=1e-4)


def test_every_sample_has_its_own_dropout() -> None:
    model = nn.Dropout(0.5)
    rows = vmap(model, randomness="different")(plugrad.ones(4, 64))
    assert len({tuple(row) for row in rows.tolist()}) == 4
    rows = vmap(model, randomness="same")(plugrad.ones(4, 64))
    assert len({tuple(row) for row in rows.tolist()}) == 1
