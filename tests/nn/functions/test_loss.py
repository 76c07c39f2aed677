"""Loss modules hold their options and hand them to the functions (oracle: the functions)."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import plugrad
from plugrad import nn
from plugrad.nn import functional as F


def class_case() -> tuple[Any, Any]:
    return plugrad.tensor([[1.0, 2.0, 0.5], [0.0, -1.0, 3.0]]), plugrad.tensor([2, 0])


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_loss(reduction: str) -> None:
    weight = plugrad.tensor([1.0, 2.0, 3.0])
    logits, target = class_case()
    loss = nn.CrossEntropyLoss(weight, ignore_index=0, reduction=reduction, label_smoothing=0.1)
    expected = F.cross_entropy(
        logits, target, weight, ignore_index=0, reduction=reduction, label_smoothing=0.1
    )
    assert loss(logits, target).tolist() == expected.tolist()


def test_nll_loss() -> None:
    logits, target = class_case()
    log_probabilities = F.log_softmax(logits, 1)
    assert nn.NLLLoss(reduction="sum")(log_probabilities, target).item() == pytest.approx(
        F.cross_entropy(logits, target, reduction="sum").item()
    )


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (nn.MSELoss(), 2.5),
        (nn.MSELoss(reduction="sum"), 5.0),
        (nn.L1Loss(), 1.5),
        (nn.SmoothL1Loss(), 1.0),
        (nn.SmoothL1Loss(beta=2.0), 0.625),
        (nn.HuberLoss(), 1.0),
        (nn.HuberLoss("sum", delta=0.5), 0.375 + 0.875),
    ],
)
def test_distance_losses_in_closed_form(loss: Any, expected: float) -> None:
    value = loss(plugrad.tensor([1.0, 4.0]), plugrad.tensor([2.0, 2.0]))
    assert value.item() == pytest.approx(expected)


def test_bce_with_logits_loss_weights() -> None:
    logits, target = plugrad.tensor([0.0, 0.0]), plugrad.tensor([1.0, 0.0])
    log2 = 0.6931472
    plain = nn.BCEWithLogitsLoss()(logits, target).item()
    positive = nn.BCEWithLogitsLoss(pos_weight=plugrad.tensor(3.0))(logits, target).item()
    assert plain == pytest.approx(log2, rel=1e-6)
    assert positive == pytest.approx(2 * log2, rel=1e-6)


def test_weights_are_buffers() -> None:
    loss = nn.CrossEntropyLoss(plugrad.ones(3))
    assert [name for name, _ in loss.named_buffers()] == ["weight"]
    assert loss.double().weight.dtype == plugrad.float64


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_losses_warn_of_a_target_that_is_broadcast_as_torch_does(torch: Any, name: str) -> None:
    said = []
    for library in (plugrad, torch):
        loss = getattr(library.nn.functional, name)
        with pytest.warns(UserWarning, match="Using a target size") as caught:
            loss(library.ones(2, 1), library.ones(2))
        assert caught[0].filename == __file__
        said.append(str(caught[0].message).replace("torch", "plugrad"))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            loss(library.ones(2, 1), library.ones(2, 1))
    assert said[0] == said[1]


@pytest.mark.parametrize("dtypes", [("complex64", "float32"), ("float32", "complex64")])
@pytest.mark.parametrize("log_target", [False, True])
def test_the_divergence_of_complex_numbers_is_refused(
    dtypes: tuple[str, str], log_target: bool
) -> None:
    x, target = (plugrad.ones(2, dtype=getattr(plugrad, dtype)) for dtype in dtypes)
    with pytest.raises(RuntimeError, match=r"kl_div: Complex inputs not supported\."):
        plugrad.kl_div(x, target, log_target=log_target)
