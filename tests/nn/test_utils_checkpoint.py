"""plugrad.utils.checkpoint: checkpointing where PyTorch has it, on modules."""

from __future__ import annotations

import plugrad
from plugrad import nn
from plugrad.utils.checkpoint import checkpoint, checkpoint_sequential


def test_it_is_reached_as_an_attribute_too() -> None:
    assert plugrad.utils.checkpoint.checkpoint is checkpoint


def test_parameters_get_the_gradients_that_they_get_without() -> None:
    plugrad.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.ReLU(), nn.Linear(4, 1))
    x = plugrad.rand(5, 3)
    plugrad.manual_seed(1)
    model(x).sum().backward()
    expected = [parameter.grad.tolist() for parameter in model.parameters()]
    for use_reentrant in (True, False):
        model.zero_grad()
        plugrad.manual_seed(1)
        given = x.clone().requires_grad_(use_reentrant)
        y = checkpoint(model, given, use_reentrant=use_reentrant)
        y.sum().backward()
        assert [parameter.grad.tolist() for parameter in model.parameters()] == expected


def test_sequential_takes_a_module() -> None:
    plugrad.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    x = plugrad.rand(5, 3)
    y = checkpoint_sequential(model, 2, x, use_reentrant=False)
    assert y.tolist() == model(x).tolist()
