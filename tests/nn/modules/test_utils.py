"""Parametrizations, normalised weights, fusion and the like: numbers, names, errors of PyTorch."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad import nn
from plugrad.nn.utils import parametrizations, parametrize

CALLS = [
    "parametrizations.weight_norm(nn.Linear(3, 4))",
    "parametrizations.weight_norm(nn.Conv1d(2, 4, 3), dim=None)",
    "parametrizations.spectral_norm(nn.Linear(3, 4), n_power_iterations=2)",
    "parametrizations.spectral_norm(nn.ConvTranspose1d(2, 4, 3))",
    "parametrizations.spectral_norm(nn.Linear(3, 4), 'bias')",
    "parametrizations.orthogonal(nn.Linear(4, 4))",
    "parametrizations.orthogonal(nn.Linear(3, 5))",
    "parametrizations.orthogonal(nn.Linear(5, 3), orthogonal_map='cayley')",
    "parametrizations.orthogonal(nn.Linear(5, 3), orthogonal_map='matrix_exp')",
    "parametrizations.orthogonal(nn.Linear(3, 5), use_trivialization=False)",
    "weight_norm(nn.Linear(3, 4), dim=1)",
    "spectral_norm(nn.Linear(3, 4), n_power_iterations=2)",
    "spectral_norm(nn.ConvTranspose1d(2, 4, 3))",
]


def _made(library: Any, expression: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        names = vars(library.nn.utils) | {"nn": library.nn}
        for name in ("parametrizations", "weight_norm", "spectral_norm"):
            names[name] = getattr(library.nn.utils, name)
        return eval(expression, names)


@pytest.mark.parametrize("expression", CALLS)
def test_normalised_weight_is_torchs(
    torch: Any, assert_equal_to_torch: Callable[..., None], expression: str
) -> None:
    found = []
    for library in (plugrad, torch):
        library.manual_seed(5)
        library.set_default_dtype(library.float64)
        try:
            layer = _made(library, expression)
        finally:
            library.set_default_dtype(library.float32)
        weight = layer.weight if "'bias'" not in expression else layer.bias
        tensors = [weight.detach().clone()]
        width = layer.in_features if hasattr(layer, "in_features") else layer.in_channels
        size = width * 5 if hasattr(layer, "kernel_size") else width * 4
        x = library.linspace(-1, 2, size, dtype=library.float64)
        shape = (1, width, 5) if hasattr(layer, "kernel_size") else (4, width)
        for _ in range(2):
            result = layer(x.reshape(shape))
        result.pow(3).sum().backward()
        tensors += [result, *(parameter.grad for parameter in layer.parameters())]
        tensors += list(layer.eval().state_dict().values())
        tensors.append(layer(x.reshape(shape)))
        found.append((repr(layer), list(layer.state_dict()), tensors))
    assert found[0][0] == found[1][0]
    assert found[0][1] == found[1][1]
    for actual, expected in zip(found[0][2], found[1][2], strict=True):
        assert_equal_to_torch(actual, expected, atol=1e-8)


class Symmetric(nn.Module):
    def forward(self, x: plugrad.Tensor) -> plugrad.Tensor:
        return x.triu() + x.triu(1).T

    def right_inverse(self, x: plugrad.Tensor) -> plugrad.Tensor:
        return x.triu()


class Doubled(nn.Module):
    def forward(self, x: plugrad.Tensor) -> plugrad.Tensor:
        return 2 * x


def test_parametrization_is_registered_assigned_and_removed() -> None:
    layer = nn.Linear(3, 3)
    weight = layer.weight
    parametrize.register_parametrization(layer, "weight", Symmetric())
    assert layer.parametrizations.weight.original is weight
    assert [name for name, _ in layer.named_parameters()] == [
        "bias",
        "parametrizations.weight.original",
    ]
    assert type(layer).__name__ == "ParametrizedLinear"
    assert isinstance(layer, nn.Linear)
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    layer.weight = plugrad.ones(3, 3)
    assert weight.tolist() == [[1.0, 1.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]
    layer.weight.sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [[1.0, 2.0, 2.0], [0.0, 1.0, 2.0], [0.0, 0.0, 1.0]]
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert layer.weight.tolist() == [[2.0] * 3] * 3
    twin = copy.deepcopy(layer)
    assert parametrize.is_parametrized(twin, "weight")
    with pytest.raises(RuntimeError, match="only supported through state_dict"):
        pickle.dumps(layer)
    with pytest.raises(RuntimeError, match="parametrization Doubled does not implement"):
        layer.weight = plugrad.ones(3, 3)
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear
    assert layer.weight is weight
    assert weight.tolist() == [[2.0] * 3] * 3
    assert not parametrize.is_parametrized(layer)
    assert twin.weight.tolist() == [[2.0] * 3] * 3
    other = parametrize.transfer_parametrizations_and_params(twin, nn.Linear(3, 3))
    assert other.parametrizations.weight.original is twin.parametrizations.weight.original


def test_cached_weight_is_computed_once() -> None:
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Doubled())
    with parametrize.cached():
        first = layer.weight
        assert layer.weight is first
    assert layer.weight is not first


@pytest.mark.parametrize(
    "expression",
    [
        "parametrize.register_parametrization(nn.Linear(2, 3), 'wight', nn.ReLU())",
        "parametrize.register_parametrization(nn.Linear(2, 3), 'weight', nn.Flatten(0))",
        "parametrize.remove_parametrizations(nn.Linear(2, 3), 'weight')",
        "parametrize.ParametrizationList([], lib.ones(1))",
        "parametrize.remove_parametrizations("
        "parametrizations.weight_norm(nn.Linear(2, 3)), 'weight', leave_parametrized=False)",
        "parametrizations.orthogonal(nn.Linear(2, 3), 'bias')",
        "parametrizations.orthogonal(nn.Linear(2, 3), 'wight')",
        "parametrizations.orthogonal(nn.Linear(2, 3), orthogonal_map='x')",
        "parametrizations.spectral_norm(nn.Linear(2, 3), n_power_iterations=0)",
        "parametrizations.spectral_norm(nn.Linear(2, 3), dim=2)",
        "utils.spectral_norm(nn.Linear(2, 3), n_power_iterations=0)",
        "utils.spectral_norm(utils.spectral_norm(nn.Linear(2, 3)))",
        "utils.remove_spectral_norm(nn.Linear(2, 3))",
        "utils.remove_weight_norm(nn.Linear(2, 3))",
        "utils.skip_init(nn.ReLU)",
        "utils.fuse_conv_bn_eval(nn.Conv1d(1, 1, 1), nn.BatchNorm1d(1))",
    ],
)
def test_wrong_arguments_raise_torchs_words(torch: Any, expression: str) -> None:
    messages = []
    for library in (plugrad, torch):
        utils = library.nn.utils
        names = {"nn": library.nn, "lib": library, "utils": utils}
        names |= {name: getattr(utils, name) for name in ("parametrize", "parametrizations")}
        with pytest.raises((ValueError, RuntimeError, AssertionError, IndexError)) as caught:
            eval(expression, names)
        messages.append(
            (type(caught.value).__name__, str(caught.value).replace("plugrad", "torch"))
        )
    assert messages[0] == messages[1]


def test_weight_norm_loads_state_dicts_of_its_older_form() -> None:
    with pytest.warns(FutureWarning, match="deprecated"):
        old = nn.utils.weight_norm(nn.Linear(2, 3))
    new = parametrizations.weight_norm(nn.Linear(2, 3))
    new.load_state_dict(old.state_dict())
    x = plugrad.rand(4, 2)
    assert plugrad.allclose(new(x), old(x))
    weight = old.weight.detach()
    nn.utils.remove_weight_norm(old)
    assert [name for name, _ in old.named_parameters()] == ["bias", "weight"]
    assert plugrad.equal(old.weight, weight)


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("affine", [False, True])
def test_fused_layer_computes_the_same(transpose: bool, affine: bool) -> None:
    kind = nn.ConvTranspose1d if transpose else nn.Conv1d
    conv, norm = kind(2, 3, 2, bias=affine).double(), nn.BatchNorm1d(3, affine=affine).double()
    x = plugrad.rand(4, 2, 5, dtype=plugrad.float64)
    norm(conv(x))
    fused = nn.utils.fuse_conv_bn_eval(conv.eval(), norm.eval(), transpose)
    assert plugrad.allclose(fused(x), norm(conv(x)))
    linear = nn.Linear(2, 3, bias=affine).double().eval()
    y = plugrad.rand(4, 2, dtype=plugrad.float64)
    assert plugrad.allclose(nn.utils.fuse_linear_bn_eval(linear, norm)(y), norm(linear(y)))


def test_total_norm_and_clipping_by_it(torch: Any) -> None:
    values = np.random.default_rng(1).standard_normal((3, 4))
    found = []
    for library in (plugrad, torch):
        x = library.tensor(values, requires_grad=True)
        (x**2).sum().backward()
        norm = library.nn.utils.get_total_norm([x.grad, x.grad], 3.0)
        library.nn.utils.clip_grads_with_norm_([x], 1.0, norm)
        with pytest.warns(FutureWarning, match="now deprecated in favor"):
            again = library.nn.utils.clip_grad_norm(x, 0.1)
        found.append([*x.grad.flatten().tolist(), float(norm), float(again)])
    np.testing.assert_allclose(found[0], found[1])


def test_module_without_first_weights_draws_no_numbers() -> None:
    state = plugrad.get_rng_state()
    layer = nn.utils.skip_init(nn.Linear, 3, 2, dtype=plugrad.float64)
    assert plugrad.equal(plugrad.get_rng_state(), state)
    assert layer.weight.shape == (2, 3)
    assert layer.weight.dtype == plugrad.float64
    with pytest.warns(FutureWarning, match="functional_call"):
        result = nn.utils.stateless.functional_call(
            layer,
            {"weight": plugrad.ones(2, 3), "bias": plugrad.zeros(2)},
            plugrad.ones(1, 3),
        )
    assert result.tolist() == [[3.0, 3.0]]
