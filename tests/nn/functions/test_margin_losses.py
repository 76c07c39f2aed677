"""functional: losses of pairs, margins, counts and sequences; dropouts (oracle: torch)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.nn import functional as F

RNG = np.random.default_rng(3)
X, Y, Z = RNG.normal(size=(3, 4, 3))
SIGNS = np.array([1, -1, -1, 1])
SIGN_TABLE = np.where(RNG.normal(size=(4, 3)) > 0, 1.0, -1.0)
POSITIVE = RNG.uniform(0.2, 2, (4, 3))
LABELS = np.array([0, 2, 1, 2])

CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("cosine_embedding_loss", (X, Y, SIGNS), {"margin": 0.2}),
    ("hinge_embedding_loss", (X, SIGN_TABLE), {"margin": 0.5}),
    ("margin_ranking_loss", (X, Y, SIGN_TABLE), {"margin": 0.1}),
    ("triplet_margin_loss", (X, Y, Z), {"p": 1.5, "swap": True, "margin": 0.4}),
    ("triplet_margin_with_distance_loss", (X, Y, Z), {"swap": True}),
    ("poisson_nll_loss", (X, POSITIVE * 3), {"full": True}),
    ("poisson_nll_loss", (POSITIVE, POSITIVE), {"log_input": False, "eps": 0.1}),
    ("gaussian_nll_loss", (X, Y, POSITIVE), {"full": True, "eps": 0.5}),
    ("gaussian_nll_loss", (X, Y, POSITIVE[:, 0]), {}),
    ("gaussian_nll_loss", (X, Y, 0.7), {}),
    ("soft_margin_loss", (X, SIGN_TABLE), {}),
    ("multi_margin_loss", (X, LABELS), {"p": 2, "margin": 0.7, "weight": POSITIVE[0]}),
    ("multilabel_margin_loss", (X, np.array([[0, 2, -1]] * 3 + [[-1, 0, 1]])), {}),
    ("multilabel_soft_margin_loss", (X, (SIGN_TABLE + 1) / 2), {"weight": POSITIVE[0]}),
    ("linear_cross_entropy", (X, Y, np.array([0, 3, -100, 1])), {"linear_bias": SIGNS * 0.5}),
    ("linear_cross_entropy", (X, RNG.normal(size=(2, 2, 3)), SIGN_TABLE[:, :2] > 0), {}),
]


def value_and_slope(library: Any, name: str, args: Any, options: dict[str, Any]) -> list[Any]:
    def made(value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        return library.tensor(value.astype(np.int64) if value.dtype == bool else value)

    tensors = [made(value) for value in args]
    tensors[0].requires_grad_(True)
    given = {key: made(value) for key, value in options.items()}
    result = getattr(library.nn.functional, name)(*tensors, **given)
    (result * result.detach()).sum().backward()
    return [result, tensors[0].grad]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("name", "args", "options"), CALLS)
def test_losses(
    torch: Any,
    assert_equal_to_torch: Callable[..., None],
    name: str,
    args: Any,
    options: dict[str, Any],
    reduction: str,
) -> None:
    options = {**options, "reduction": reduction}
    found = value_and_slope(plugrad, name, args, options)
    for mine, other in zip(found, value_and_slope(torch, name, args, options), strict=True):
        assert_equal_to_torch(mine, other, rtol=1e-6)


@pytest.mark.parametrize(
    ("flags", "reduction"),
    [
        ({"size_average": False}, "sum"),
        ({"reduce": False}, "none"),
        ({"size_average": False, "reduce": True}, "sum"),
        ({"size_average": True}, "mean"),
    ],
)
def test_old_flags_stand_for_a_reduction(flags: dict[str, bool], reduction: str) -> None:
    x, y = plugrad.tensor(X), plugrad.tensor(SIGN_TABLE)
    found = F.soft_margin_loss(x, y, reduction="mean", **flags)
    assert plugrad.equal(found, F.soft_margin_loss(x, y, reduction=reduction))


@pytest.mark.parametrize(
    ("name", "args", "options", "error", "words"),
    [
        ("soft_margin_loss", (X, Y), {"reduction": "x"}, ValueError, "x is not a valid value"),
        ("multilabel_soft_margin_loss", (X, Y), {"reduction": "x"}, ValueError, "x is not valid"),
        ("poisson_nll_loss", (X, Y), {"reduction": "x"}, ValueError, "x is not a valid value"),
        ("triplet_margin_loss", (X, Y, Z), {"margin": 0}, ValueError, "greater than 0, got 0"),
        ("gaussian_nll_loss", (X, Y, -POSITIVE), {}, ValueError, "negative entry"),
        ("gaussian_nll_loss", (X, Y, POSITIVE[0]), {}, ValueError, "incorrect size"),
        ("multi_margin_loss", (X, LABELS), {"p": 3}, ValueError, "only p == 1 and p == 2"),
        ("margin_ranking_loss", (X, Y, SIGNS), {}, RuntimeError, "should have same dimension"),
        ("linear_cross_entropy", (X, Y[:, :2], LABELS), {}, RuntimeError, "got 3 and 2"),
        ("dropout1d", (X[0],), {}, RuntimeError, "Expected 2D or 3D input"),
        ("dropout1d", (X,), {"p": 2.0}, ValueError, "between 0 and 1, but got 2.0"),
    ],
)
def test_wrong_arguments(
    name: str, args: Any, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    tensors = [plugrad.tensor(value) if isinstance(value, np.ndarray) else value for value in args]
    with pytest.raises(error, match=words):
        getattr(F, name)(*tensors, **options)


@pytest.mark.parametrize(("name", "shape"), [("dropout1d", (40, 3)), ("dropout3d", (40, 2, 2, 2))])
def test_dropout_of_channels_takes_one_sample(name: str, shape: tuple[int, ...]) -> None:
    plugrad.manual_seed(0)
    x = plugrad.ones(shape)
    y = getattr(F, name)(x, inplace=True)
    assert y is x
    rows = y.flatten(1)
    assert bool((rows == rows[:, :1]).all())
    assert set(rows[:, 0].tolist()) == {0.0, 2.0}


def test_dropout2d_warns_of_three_dimensions() -> None:
    with pytest.warns(UserWarning, match="Received a 3D input"):
        F.dropout2d(plugrad.ones(2, 3, 4))
    with pytest.warns(UserWarning, match="Received a 2-D input to dropout2d"):
        F.dropout2d(plugrad.ones(2, 3))


def test_shrinkages_and_softmin(torch: Any, assert_equal_to_torch: Callable[..., None]) -> None:
    for name in ("hardshrink", "softshrink", "tanhshrink", "softsign", "rrelu", "softmin"):
        options = {"dim": 1} if name == "softmin" else {}
        found = value_and_slope(plugrad, name, (X,), options)
        for mine, other in zip(found, value_and_slope(torch, name, (X,), options), strict=True):
            assert_equal_to_torch(mine, other)


@pytest.mark.parametrize(
    "options",
    [
        *({"chunking_method": m} for m in (None, "auto", "aspect_ratio:2", "aspect_ratio:0", "x")),
        *({"batch_chunk_size": size} for size in (8, 0, -1)),
        *({"acc_policy": policy} for policy in ("balanced", None)),
        *({"acc_dtype": dtype} for dtype in ("float64", "int64")),
    ],
)
def test_options_of_linear_cross_entropy_are_checked_as_in_torch(
    torch: Any, options: dict[str, Any]
) -> None:
    found = []
    for library in (plugrad, torch):
        given = dict(options)
        if "acc_dtype" in given:
            given["acc_dtype"] = getattr(library, given["acc_dtype"])
        try:
            made = library.nn.LinearCrossEntropyOptions(**given)
        except ValueError as error:
            found.append(str(error).replace("plugrad", "torch"))
            continue
        # PyTorch requires a dtype for 16-bit inputs.
        if "acc_dtype" not in options:
            layer = library.nn.LinearCrossEntropyLoss(4, 3, options=made)
            assert layer(library.ones(2, 4), library.tensor([0, 2])).shape == ()
        found.append(repr(made).replace("plugrad", "torch"))
    assert found[0] == found[1]


def test_other_options_of_linear_cross_entropy_are_refused() -> None:
    wrong: Any = 3
    with pytest.raises(TypeError, match="'options' must be LinearCrossEntropyOptions or None"):
        plugrad.nn.functional.linear_cross_entropy(
            *(plugrad.ones(2, 4), plugrad.ones(3, 4), plugrad.tensor([0, 2])), options=wrong
        )
