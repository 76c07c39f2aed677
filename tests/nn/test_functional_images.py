"""interpolate, grid_sample and what else functional has for images and vectors (oracle: torch)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.nn import functional as F

Compare = Callable[..., None]


def _random(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape)


LINE, IMAGE, VOLUME = _random(2, 1, 5), _random(1, 2, 4, 6), _random(1, 1, 2, 4, 3)
TABLE, ROWS = _random(4, 3), np.array([0, 1, 3, 1, 2])
GRID = _random(1, 2, 2, 2)


@pytest.mark.parametrize(
    ("name", "arrays", "options"),
    [
        ("interpolate", [LINE], {"size": 7}),
        ("interpolate", [LINE], {"scale_factor": 1.7, "mode": "linear"}),
        ("interpolate", [LINE], {"size": 3, "mode": "area"}),
        ("interpolate", [IMAGE], {"scale_factor": (0.6, 2.0), "mode": "nearest-exact"}),
        ("interpolate", [IMAGE], {"size": (3, 7), "mode": "bilinear", "align_corners": True}),
        (
            "interpolate",
            [IMAGE],
            {"scale_factor": 1.3, "mode": "bicubic", "recompute_scale_factor": True},
        ),
        ("interpolate", [IMAGE], {"size": (2, 3), "mode": "bicubic", "antialias": True}),
        ("interpolate", [IMAGE], {"size": (2, 3), "mode": "lanczos", "antialias": True}),
        ("interpolate", [IMAGE], {"scale_factor": 0.5, "mode": "area"}),
        ("interpolate", [VOLUME], {"size": (3, 2, 5), "mode": "trilinear"}),
        ("interpolate", [VOLUME], {"size": (3, 2, 2), "mode": "area"}),
        ("upsample", [IMAGE], {"scale_factor": 2}),
        ("upsample_nearest", [IMAGE], {"size": (5, 5)}),
        ("upsample_bilinear", [IMAGE], {"scale_factor": 2}),
        ("grid_sample", [IMAGE, GRID], {"align_corners": False}),
        ("grid_sample", [IMAGE, GRID], {"mode": "bicubic", "padding_mode": "border"}),
        ("affine_grid", [_random(2, 2, 3)], {"size": (2, 1, 3, 2), "align_corners": True}),
        ("instance_norm", [IMAGE], {"weight": _random(2), "bias": _random(2)}),
        ("local_response_norm", [_random(1, 6, 2, 2)], {"size": 3, "alpha": 0.5, "k": 2.0}),
        ("local_response_norm", [_random(2, 6, 2)], {"size": 4, "beta": 0.5}),
        ("softmin", [TABLE], {"dim": 1}),
        ("normalize", [TABLE], {"p": 3.0, "dim": 0}),
        ("pad", [VOLUME], {"pad": (1, 2, 0, 1, 1, 0), "mode": "replicate"}),
        ("pad", [VOLUME], {"pad": (1, 2, 3, 1, 1, 1), "mode": "reflect"}),
        ("pad", [VOLUME], {"pad": (1, 2, 3, 1, 1, 1), "mode": "circular"}),
    ],
)
def test_functions_match_torch(
    torch: Any,
    assert_equal_to_torch: Compare,
    name: str,
    arrays: list[Any],
    options: dict[str, Any],
) -> None:
    results = []
    for library in (plugrad, torch):
        tensors = [library.tensor(array, requires_grad=True) for array in arrays]
        given = {
            key: library.tensor(value) if isinstance(value, np.ndarray) else value
            for key, value in options.items()
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = getattr(library.nn.functional, name)(*tensors, **given)
        (out * out).sum().backward()
        results.append((out, *(tensor.grad for tensor in tensors)))
    for actual, expected in zip(*results, strict=True):
        assert_equal_to_torch(actual, expected)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, ValueError, "either size or scale_factor should be defined"),
        ({"size": 2, "scale_factor": 2}, ValueError, "only one of size or scale_factor"),
        ({"size": (2, 2, 2)}, ValueError, "must have the same number of spatial dimensions"),
        ({"size": 2, "mode": "linear"}, NotImplementedError, "Got 4D input, but linear mode"),
        ({"size": 2, "mode": "cubic"}, NotImplementedError, r"\(got cubic\)"),
        ({"size": 2, "align_corners": False}, ValueError, "align_corners option can only be set"),
        ({"size": 2, "antialias": True}, ValueError, "Anti-alias option is restricted"),
        ({"size": (2.5, 2)}, TypeError, "must be int or tuple of ints"),
    ],
)
def test_wrong_sizes_and_modes_raise(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        F.interpolate(plugrad.from_numpy(IMAGE), **options)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_one_size_are_rows_of_indices(mode: str) -> None:
    weight, rows = plugrad.from_numpy(TABLE), plugrad.from_numpy(ROWS[:4].reshape(2, 2))
    function = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
    expected = function(TABLE[ROWS[:4]].reshape(2, 2, 3), 1)
    np.testing.assert_allclose(F.embedding_bag(rows, weight, mode=mode).numpy(), expected)


def test_bags_scale_long_rows_down_in_place() -> None:
    weight = plugrad.tensor([[3.0, 4.0], [6.0, 8.0]], requires_grad=True)
    found = F.embedding_bag(plugrad.tensor([[1, 1]]), weight, max_norm=5.0, mode="sum")
    np.testing.assert_allclose(found.detach().numpy(), [[6, 8]], rtol=1e-6)
    np.testing.assert_allclose(weight.detach().numpy(), [[3, 4], [3, 4]], rtol=1e-6)


def test_bags_refuse_weights_of_samples_for_means() -> None:
    weight, rows = plugrad.from_numpy(TABLE), plugrad.tensor([[0, 1]])
    with pytest.raises(NotImplementedError, match="only supported for mode='sum'"):
        F.embedding_bag(rows, weight, per_sample_weights=plugrad.ones(1, 2))


def test_hard_gumbel_samples_are_unit_vectors_with_the_soft_gradient() -> None:
    plugrad.manual_seed(0)
    logits = plugrad.zeros(5, 3, requires_grad=True)
    sample = F.gumbel_softmax(logits, hard=True)
    assert sorted(set(sample.detach().flatten().tolist())) == [0, 1]
    assert sample.sum(dim=-1).tolist() == [1] * 5
    (sample * plugrad.arange(3.0)).sum().backward()
    assert logits.grad is not None
    assert (logits.grad != 0).any()
    # A softmax does not change if all logits grow.
    assert logits.grad.sum(dim=-1).abs().max() < 1e-6


@pytest.mark.parametrize("name", ["celu", "elu", "hardtanh", "leaky_relu", "relu", "selu"])
def test_activations_with_an_underscore_write_their_input(name: str) -> None:
    x = plugrad.tensor([-2.0, 0.5, 3.0])
    expected = getattr(F, name)(x)
    assert getattr(F, name + "_")(x) is x
    assert x.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("factor", "given"), [("a", "str"), ({}, "dict"), ([1.0, None], "a sequence with NoneType")]
)
def test_factors_that_are_no_numbers_are_named(factor: Any, given: str) -> None:
    words = (
        rf"argument 'scale_factor' \(position 3\) must be float or tuple of floats, not {given}$"
    )
    with pytest.raises(TypeError, match=words):
        F.interpolate(plugrad.ones(1, 1, 2, 2), scale_factor=factor)


def test_a_factor_may_be_a_tensor_of_one_element() -> None:
    factor: Any = plugrad.tensor(2.0)
    assert F.interpolate(plugrad.ones(1, 1, 2, 2), scale_factor=factor).shape == (1, 1, 4, 4)
