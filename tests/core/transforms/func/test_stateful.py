"""Modules as functions. Oracle: the module itself with those parameters; PyTorch's words."""

from __future__ import annotations

import re
from typing import Any

import pytest

import plugrad
from plugrad import nn
from plugrad.func import (
    functional_call,
    grad,
    replace_all_batch_norm_modules_,
    stack_module_state,
    vmap,
)

X = plugrad.tensor([1.0, 2.0, 3.0])


def test_a_module_is_called_with_other_parameters_and_keeps_its_own() -> None:
    layer = nn.Linear(3, 2)
    weight, bias = layer.weight, layer.bias
    out = functional_call(layer, ({"weight": plugrad.ones(2, 3)}, {"bias": plugrad.zeros(2)}), X)
    assert out.tolist() == [6.0, 6.0]
    assert layer.weight is weight
    assert layer.bias is bias
    with pytest.raises(RuntimeError):
        functional_call(layer, {"weight": plugrad.ones(5, 7)}, (X,))
    assert layer.weight is weight


def test_tied_parameters_are_replaced_together() -> None:
    first, second = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
    second.weight = first.weight
    model = nn.Sequential(first, second)
    x = plugrad.ones(2)
    twice = 2 * plugrad.eye(2)
    assert functional_call(model, {"0.weight": twice}, (x,)).tolist() == [4.0, 4.0]
    loose = functional_call(model, {"0.weight": twice}, (x,), tie_weights=False)
    assert loose.tolist() == (second(2 * x)).tolist()
    with pytest.raises(ValueError, match="multiple values for keys"):
        functional_call(model, {"0.weight": twice, "1.weight": plugrad.eye(2)}, (x,))


def test_what_a_call_writes_to_a_buffer_goes_to_the_tensor_that_is_given() -> None:
    norm = nn.BatchNorm1d(2)
    buffers = {name: buffer.clone() for name, buffer in norm.named_buffers()}
    functional_call(norm, buffers, (plugrad.tensor([[1.0, 2.0], [3.0, 6.0]]),))
    assert buffers["num_batches_tracked"].item() == 1
    assert norm.num_batches_tracked.item() == 0
    assert buffers["running_mean"].tolist() == pytest.approx([0.2, 0.4])


def test_an_ensemble_is_the_models_one_by_one() -> None:
    plugrad.manual_seed(0)
    models = [nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)) for _ in range(3)]
    params, buffers = stack_module_state(models)
    assert params["0.weight"].shape == (3, 4, 3)
    assert params["0.weight"].requires_grad
    assert params["0.weight"].is_leaf

    def call(params: Any, buffers: Any, x: plugrad.Tensor) -> plugrad.Tensor:
        return functional_call(models[0], (params, buffers), (x,))

    batch = plugrad.randn(5, 3)
    found = vmap(call, in_dims=(0, 0, None))(params, buffers, batch)
    plugrad.testing.assert_close(found, plugrad.stack([model(batch) for model in models]))


def test_gradients_of_every_sample() -> None:
    plugrad.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    params = {name: value.detach() for name, value in model.named_parameters()}
    x, y = plugrad.randn(6, 3), plugrad.randint(0, 2, (6,))

    def loss(params: Any, x: plugrad.Tensor, y: plugrad.Tensor) -> plugrad.Tensor:
        logits = functional_call(model, params, (x[None],))
        return nn.functional.cross_entropy(logits, y[None])

    found = vmap(grad(loss), in_dims=(None, 0, 0))(params, x, y)
    for index in range(6):
        wanted = grad(loss)(params, x[index], y[index])
        for name in params:
            plugrad.testing.assert_close(found[name][index], wanted[name])


def test_batch_norms_without_statistics() -> None:
    model = replace_all_batch_norm_modules_(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))
    assert model[1].running_mean is None
    assert model[1].track_running_stats is False
    assert vmap(model)(plugrad.randn(3, 4, 2)).shape == (3, 4, 2)


MODEL = nn.Linear(3, 2)
ERRORS = [
    (
        lambda: functional_call(MODEL, {"weight": MODEL.weight}, (X,), strict=True),
        RuntimeError,
        "Error(s) in reparametrizing for Linear:\n\tMissing key(s): 'bias'.",
    ),
    (
        lambda: functional_call(MODEL, {**dict(MODEL.named_parameters()), "a": X}, X, strict=True),
        RuntimeError,
        "Unexpected key(s): 'a'.",
    ),
    (
        lambda: functional_call(MODEL, ({"bias": X}, {"bias": X}), (X,)),
        ValueError,
        "['bias'] appeared in multiple dictionaries; behavior of functional call is ambiguous",
    ),
    (
        lambda: functional_call(MODEL, 3, (X,)),
        ValueError,
        "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
        "<class 'int'>",
    ),
    (lambda: stack_module_state([]), RuntimeError, "Expected at least one model, got 0."),
    (
        lambda: stack_module_state([MODEL, nn.ReLU()]),
        RuntimeError,
        "Expected all models to be of the same class.",
    ),
    (
        lambda: stack_module_state([MODEL, nn.Linear(3, 2).eval()]),
        RuntimeError,
        "Expected all models to have the same training/eval mode.",
    ),
]


@pytest.mark.parametrize(("run", "error", "message"), ERRORS)
def test_errors(run: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        run()
