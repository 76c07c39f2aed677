"""functional: losses and functions with all their options, in float64 (oracle: torch)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.nn import functional as F

Compare = Callable[..., None]


def both(torch: Any, compare: Compare, name: str, *arrays: Any, **options: Any) -> None:
    """Compares a function's value and its first argument's gradient in plugrad and torch."""
    results = []
    for library in (plugrad, torch):
        tensors = [library.tensor(array) for array in arrays]
        given = {
            key: library.tensor(value) if isinstance(value, np.ndarray) else value
            for key, value in options.items()
        }
        tensors[0].requires_grad_(True)
        result = getattr(library.nn.functional, name)(*tensors, **given)
        weights = np.arange(1.0, result.numel() + 1).reshape(tuple(result.shape))
        (result * library.tensor(weights)).sum().backward()
        results.append((result, tensors[0].grad))
    for actual, expected in zip(*results, strict=True):
        compare(actual, expected)


CLASS_WEIGHTS = np.array([0.5, 1.0, 2.0])


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weight": CLASS_WEIGHTS},
        {"ignore_index": 1},
        {"label_smoothing": 0.2},
        {"weight": CLASS_WEIGHTS, "ignore_index": 1, "label_smoothing": 0.2},
    ],
)
@pytest.mark.parametrize("extra", [(), (2,)])
def test_cross_entropy(
    torch: Any,
    rng: np.random.Generator,
    assert_equal_to_torch: Compare,
    reduction: str,
    options: dict[str, Any],
    extra: tuple[int, ...],
) -> None:
    logits = rng.standard_normal((4, 3, *extra))
    target = rng.integers(0, 3, (4, *extra))
    both(
        torch,
        assert_equal_to_torch,
        "cross_entropy",
        logits,
        target,
        reduction=reduction,
        **options,
    )


@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1}, {"weight": CLASS_WEIGHTS}])
def test_cross_entropy_of_probabilities(
    torch: Any, rng: np.random.Generator, assert_equal_to_torch: Compare, options: dict[str, Any]
) -> None:
    target = rng.dirichlet(np.ones(3), 4)
    logits = rng.standard_normal((4, 3))
    both(torch, assert_equal_to_torch, "cross_entropy", logits, target, **options)


@pytest.mark.parametrize("options", [{}, {"weight": CLASS_WEIGHTS}, {"ignore_index": 2}])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_nll_loss(
    torch: Any,
    rng: np.random.Generator,
    assert_equal_to_torch: Compare,
    options: dict[str, Any],
    reduction: str,
) -> None:
    log_probabilities = np.log(rng.dirichlet(np.ones(3), 5))
    target = rng.integers(0, 3, 5)
    both(
        torch,
        assert_equal_to_torch,
        "nll_loss",
        log_probabilities,
        target,
        reduction=reduction,
        **options,
    )


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_distances(
    torch: Any,
    rng: np.random.Generator,
    assert_equal_to_torch: Compare,
    name: str,
    reduction: str,
) -> None:
    a, b = rng.standard_normal((2, 4, 3)) * 2
    both(torch, assert_equal_to_torch, name, a, b, reduction=reduction)


@pytest.mark.parametrize("options", [{}, {"weight": CLASS_WEIGHTS}, {"pos_weight": CLASS_WEIGHTS}])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_binary_cross_entropy_with_logits(
    torch: Any,
    rng: np.random.Generator,
    assert_equal_to_torch: Compare,
    options: dict[str, Any],
    reduction: str,
) -> None:
    logits, target = rng.standard_normal((4, 3)), rng.random((4, 3))
    name = "binary_cross_entropy_with_logits"
    both(torch, assert_equal_to_torch, name, logits, target, reduction=reduction, **options)


def test_binary_cross_entropy_requires_equal_shapes() -> None:
    with pytest.raises(ValueError, match="must be the same as input size"):
        F.binary_cross_entropy_with_logits(plugrad.zeros(2, 1), plugrad.zeros(2))


@pytest.mark.parametrize(
    ("flags", "reduction"),
    [
        ({"reduce": False}, "none"),
        ({"size_average": False}, "sum"),
        ({"size_average": True}, "mean"),
    ],
)
def test_older_reduction_flags_still_work(flags: dict[str, bool], reduction: str) -> None:
    a, b = plugrad.tensor([1.0, 2.0]), plugrad.zeros(2)
    assert F.mse_loss(a, b, **flags).tolist() == F.mse_loss(a, b, reduction=reduction).tolist()


@pytest.mark.parametrize(
    ("widths", "mode"),
    [
        ((1, 2), "constant"),
        ((1, 0, 0, 2), "constant"),
        ((-1, 2, 1, -1), "constant"),
        ((1, 2, 2, 1), "reflect"),
        ((3, 1, 2, 4), "replicate"),
        ((1, 2, 2, 0), "circular"),
    ],
)
def test_pad(
    torch: Any,
    rng: np.random.Generator,
    assert_equal_to_torch: Compare,
    widths: tuple[int, ...],
    mode: str,
) -> None:
    images = rng.standard_normal((2, 1, 4, 5))
    both(torch, assert_equal_to_torch, "pad", images, pad=widths, mode=mode)


def test_pad_with_a_value() -> None:
    padded = F.pad(plugrad.tensor([1.0]), (1, 1), value=7.0)
    assert padded.tolist() == [7.0, 1.0, 7.0]


@pytest.mark.parametrize(
    ("widths", "mode"), [((0, 0), "constant"), ((-1, 0), "constant"), ((0, 0), "circular")]
)
def test_what_is_padded_by_nothing_is_a_copy(
    torch_oracle: Any, widths: tuple[int, ...], mode: str
) -> None:
    for library in (plugrad, torch_oracle):
        images = library.ones(1, 1, 3)
        library.nn.functional.pad(images, widths, mode=mode).zero_()
        assert images.tolist() == [[[1.0, 1.0, 1.0]]]


def test_normalize(torch: Any, rng: np.random.Generator, assert_equal_to_torch: Compare) -> None:
    both(torch, assert_equal_to_torch, "normalize", rng.standard_normal((4, 3)))
    both(torch, assert_equal_to_torch, "normalize", rng.standard_normal((4, 3)), p=1.0, dim=0)


def test_one_hot_of_indices() -> None:
    encoded = F.one_hot(plugrad.tensor([0, 2]))
    assert encoded.tolist() == [[1, 0, 0], [0, 0, 1]]
    assert encoded.dtype == plugrad.int64
    assert tuple(F.one_hot(plugrad.tensor([[0], [1]]), num_classes=4).shape) == (2, 1, 4)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4)])
def test_softmax_without_dim_takes_torchs_choice(
    torch: Any, rng: np.random.Generator, assert_equal_to_torch: Compare, shape: tuple[int, ...]
) -> None:
    values = rng.standard_normal(shape)
    with pytest.warns(UserWarning, match="Implicit dimension choice"):
        expected = torch.nn.functional.softmax(torch.tensor(values))
    assert_equal_to_torch(F.softmax(plugrad.tensor(values)), expected)


def test_functions_take_modules_arguments_by_position(
    torch: Any, rng: np.random.Generator, assert_equal_to_torch: Compare
) -> None:
    images, filters = rng.standard_normal((1, 2, 5, 5)), rng.standard_normal((3, 2, 3, 3))
    both(torch, assert_equal_to_torch, "conv2d", images, filters, stride=2, padding=1)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none", "batchmean"])
@pytest.mark.parametrize("log_target", [False, True])
def test_kl_div(
    torch: Any,
    rng: np.random.Generator,
    assert_equal_to_torch: Compare,
    reduction: str,
    log_target: bool,
) -> None:
    input, target = rng.standard_normal((4, 3)), rng.random((4, 3))
    options = {"reduction": reduction, "log_target": log_target}
    both(torch, assert_equal_to_torch, "kl_div", input, target, **options)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["binary_cross_entropy", "huber_loss"])
def test_weighted_losses(
    torch: Any,
    rng: np.random.Generator,
    assert_equal_to_torch: Compare,
    name: str,
    weighted: bool,
    reduction: str,
) -> None:
    input, target, weight = rng.uniform(0.05, 0.95, (3, 4, 2))
    options: dict[str, Any] = {"weight": weight} if weighted else {}
    options["reduction"] = reduction
    both(torch, assert_equal_to_torch, name, input, target, **options)


def test_targets_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Using a target size .* that is different"):
        F.binary_cross_entropy(plugrad.ones(2), plugrad.ones(3))


def test_losses_take_tensors_only() -> None:
    for name in ("mse_loss", "l1_loss", "smooth_l1_loss"):
        loss = getattr(F, name)
        with pytest.raises(TypeError, match=r"'input' \(position 1\) must be Tensor, not int"):
            loss(1 << 63, plugrad.ones(3))
        with pytest.raises(TypeError, match=r"'target' \(position 2\) must be Tensor, not list"):
            loss(plugrad.ones(3), [1.0])
