"""Function transforms on JAX's arrays. Oracle: the same on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import plugrad
import plugrad_jax
from plugrad.func import functional_call, grad, jacrev, vmap
from tests.core.drawing import drawn
from tests.core.transforms.func.nestings import build, descriptions

POINT = np.array([0.4, -0.3, 0.7])


@given(descriptions(3))
@drawn(6)
def test_nestings_are_those_of_the_cpu(
    description: tuple[tuple[str, ...], tuple[str, ...]],
) -> None:
    function = build(plugrad, *description)
    found = function(plugrad.from_numpy(POINT.copy()).to("jax"))
    assert found.device.type == "jax"
    wanted = function(plugrad.from_numpy(POINT.copy()))
    np.testing.assert_allclose(found.cpu().numpy(), wanted.numpy(), rtol=1e-9, atol=1e-9)


def test_a_batch_of_gradients_goes_through_the_threads_of_several_devices() -> None:
    x = plugrad.arange(3.0, dtype=plugrad.float64).requires_grad_()
    far = x.to("jax:1")
    y = (far * far).to("jax:2") * 2
    found = plugrad.autograd.grad(
        y, x, plugrad.eye(3, dtype=plugrad.float64, device="jax:2"), is_grads_batched=True
    )[0]
    assert found.tolist() == plugrad.diag(4 * x.detach()).tolist()


def test_writes_inside_of_a_mapped_function() -> None:
    def write(x: plugrad.Tensor) -> plugrad.Tensor:
        y = x.clone()
        y[1:].mul_(2)
        y[0] = x.sum()
        return y

    batch = plugrad.arange(6.0, device="jax").reshape(2, 3)
    assert vmap(write)(batch).tolist() == [[3.0, 2.0, 4.0], [12.0, 8.0, 10.0]]
    assert grad(lambda x: write(x).sum())(batch[0]).tolist() == [1.0, 3.0, 3.0]
    assert jacrev(write)(batch[0]).tolist() == [[1.0, 1.0, 1.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]


@pytest.mark.parametrize("inside", [False, True])
def test_gradients_of_every_sample_are_part_of_a_program(inside: bool) -> None:
    plugrad.manual_seed(0)
    model = plugrad.nn.Linear(3, 2).to("jax")
    x = plugrad.randn(4, 3, device="jax")

    def step(x: plugrad.Tensor) -> plugrad.Tensor:
        params = {name: value.detach() for name, value in model.named_parameters()}

        def loss(params: dict[str, plugrad.Tensor], x: plugrad.Tensor) -> plugrad.Tensor:
            return functional_call(model, params, (x,)).square().sum()

        return vmap(grad(loss), in_dims=(None, 0))(params, x)["weight"]

    wanted = step(x)
    run = plugrad_jax.jit(step) if inside else step
    for _ in range(2):
        np.testing.assert_allclose(run(x).cpu().numpy(), wanted.cpu().numpy(), rtol=1e-5)
