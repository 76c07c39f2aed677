"""Families of layers: names, prints, first weights, results and gradients of PyTorch."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad import nn

IMAGES = (2, 4, 5, 6)
# The layer, then its inputs: shapes of normal numbers, or expressions.
CASES: list[tuple[str, list[Any]]] = [
    ("Softsign()", [(3, 4)]),
    ("Tanhshrink()", [(3, 4)]),
    ("Hardshrink(0.3)", [(3, 4)]),
    ("Softshrink(0.3)", [(3, 4)]),
    ("RReLU(0.2, 0.4, inplace=False)", [(3, 4)]),
    ("RReLU().eval()", [(3, 4)]),
    ("Softmin(1)", [(3, 4)]),
    ("Softmax2d()", [IMAGES]),
    ("Dropout1d(0.4)", [(3, 4, 5)]),
    ("Dropout2d(0.4)", [IMAGES]),
    ("Dropout3d(0.4)", [(2, 4, 2, 3, 2)]),
    ("AlphaDropout(0.4)", [(3, 4)]),
    ("FeatureAlphaDropout(0.4)", [(3, 4, 2)]),
    ("ReflectionPad1d(2)", [(2, 3, 5)]),
    ("ReflectionPad2d((1, 2, 0, 3))", [IMAGES]),
    ("ReflectionPad3d(1)", [(1, 2, 3, 4, 2)]),
    ("ReplicationPad1d((0, 2))", [(3, 5)]),
    ("ReplicationPad2d(1)", [IMAGES]),
    ("ReplicationPad3d((1, 0, 2, 1, 0, 0))", [(1, 2, 3, 4, 2)]),
    ("CircularPad1d(2)", [(2, 3, 5)]),
    ("CircularPad2d([1, 2, 0, 3])", [IMAGES]),
    ("CircularPad3d(1)", [(1, 2, 3, 4, 2)]),
    ("ConstantPad1d(2, 1.5)", [(2, 3)]),
    ("ConstantPad2d((1, -1, 0, 2), 2)", [IMAGES]),
    ("ConstantPad3d(1, 0.5)", [(2, 3, 4, 2)]),
    ("ZeroPad1d(1)", [(2, 3)]),
    ("ZeroPad2d((1, 2, 3, 4))", [IMAGES]),
    ("ZeroPad3d(1)", [(2, 3, 4, 2)]),
    ("MaxPool1d(2, padding=1)", [(2, 3, 7)]),
    ("MaxPool3d((2, 1, 2), ceil_mode=True)", [(2, 3, 4, 3, 5)]),
    ("MaxPool1d(3, 2, return_indices=True)", [(2, 3, 7)]),
    ("AvgPool3d(2, 1, divisor_override=3)", [(2, 3, 4, 3, 5)]),
    ("AdaptiveAvgPool1d(3)", [(2, 3, 7)]),
    ("AdaptiveAvgPool3d((2, None, 1))", [(2, 3, 4, 3, 5)]),
    ("AdaptiveMaxPool1d(3)", [(2, 3, 7)]),
    ("AdaptiveMaxPool2d((2, 3), return_indices=True)", [IMAGES]),
    ("AdaptiveMaxPool3d(2)", [(2, 3, 4, 3, 5)]),
    ("LPPool1d(2, 3, 2)", [(2, 3, 7)]),
    ("LPPool2d(3, (2, 1), ceil_mode=True)", ["lib.tensor(rng.random((2, 3, 5, 4)))"]),
    ("LPPool3d(1, 2)", ["lib.tensor(rng.random((2, 3, 4, 5, 4)))"]),
    ("FractionalMaxPool2d(2, output_ratio=0.6)", [IMAGES]),
    ("FractionalMaxPool3d((2, 1, 2), (2, 3, 3), return_indices=True)", [(2, 3, 4, 5, 6)]),
    ("MaxUnpool1d(2)", [(1, 2), "lib.tensor([[1, 2]])"]),
    ("MaxUnpool2d(2, (2, 1), 0)", [(1, 1, 2), "lib.tensor([[[1, 2]]])"]),
    ("MaxUnpool3d(2)", [(1, 1, 1, 2), "lib.tensor([[[[1, 2]]]])"]),
    ("Upsample(scale_factor=(2, 3), mode='bilinear', align_corners=True)", [IMAGES]),
    ("Upsample(7)", [(2, 3, 5)]),
    ("UpsamplingNearest2d(scale_factor=2)", [IMAGES]),
    ("UpsamplingBilinear2d((7, 9))", [IMAGES]),
    ("PixelShuffle(2)", [IMAGES]),
    ("PixelUnshuffle(2)", [(2, 3, 4, 6)]),
    ("ChannelShuffle(2)", [IMAGES]),
    ("Unfold((2, 3), dilation=(2, 1), padding=1)", [IMAGES]),
    ("Fold((5, 6), 2, stride=2, padding=1)", [(2, 12, 12)]),
    ("CosineSimilarity(dim=0)", [(3, 4), (3, 4)]),
    ("PairwiseDistance(1.0, keepdim=True)", [(3, 4), (3, 4)]),
    ("Bilinear(3, 4, 5)", [(2, 3), (2, 4)]),
    ("Bilinear(3, 4, 5, bias=False)", [(3,), (4,)]),
    ("Conv3d(4, 6, (1, 2, 3), stride=2, padding=1, groups=2)", [(1, 4, 3, 4, 5)]),
    ("ConvTranspose1d(4, 6, 3, 2, 1, 1, groups=2, dilation=2)", [(2, 4, 5)]),
    ("ConvTranspose2d(4, 3, (2, 3), stride=(3, 2), bias=False)", [IMAGES]),
    ("ConvTranspose3d(2, 3, 2, output_padding=1, stride=2)", [(2, 2, 3, 2)]),
    ("ConvTranspose1d(4, 2, 3, stride=3)", [(2, 4, 5), "[17]"]),
    ("BatchNorm3d(4)", [(2, 4, 2, 3, 2)]),
    ("SyncBatchNorm(4, momentum=None)", [(5, 4)]),
    ("InstanceNorm1d(4)", [(2, 4, 5)]),
    ("InstanceNorm1d(4, affine=True)", [(4, 5)]),
    ("InstanceNorm2d(4, 0.1, affine=True, track_running_stats=True)", [IMAGES]),
    ("InstanceNorm3d(4, track_running_stats=True).eval()", [(2, 4, 2, 3, 2)]),
    ("LocalResponseNorm(3, alpha=0.1)", [IMAGES]),
    ("EmbeddingBag(5, 3, mode='max', padding_idx=-1)", ["lib.tensor([[0, 1], [2, 4]])"]),
    (
        "EmbeddingBag(5, 3, 1.0, mode='sum', include_last_offset=True)",
        ["lib.tensor([0, 1, 4])", "lib.tensor([0, 1, 3])", (3,)],
    ),
    ("AdaptiveLogSoftmaxWithLoss(8, 9, [2, 5], 2.0, True)", [(4, 8), "lib.tensor([0, 5, 8, 5])"]),
    ("AdaptiveLogSoftmaxWithLoss(8, 9, [2, 5])", [(8,), "lib.tensor(3)"]),
    ("PoissonNLLLoss(full=True)", [(3, 4), "lib.tensor(rng.random((3, 4)) + 2)"]),
    ("GaussianNLLLoss(reduction='sum')", [(3,), (3,), "lib.tensor(rng.random(3))"]),
    ("HingeEmbeddingLoss(0.3)", [(3,), "lib.tensor([1, -1, 1])"]),
    ("CosineEmbeddingLoss(0.3)", [(3, 2), (3, 2), "lib.tensor([1, -1, 1])"]),
    ("MarginRankingLoss(0.3)", [(3,), (3,), "lib.tensor([1, -1, 1])"]),
    ("MultiLabelMarginLoss()", [(3,), "lib.tensor([2, -1, 0])"]),
    ("SoftMarginLoss(reduction='none')", [(3,), "lib.tensor([1.0, -1, 1]).double()"]),
    ("MultiLabelSoftMarginLoss()", [(2, 3), "lib.tensor([[1.0, 0, 1]] * 2).double()"]),
    ("MultiMarginLoss(2, 0.5)", [(2, 3), "lib.tensor([0, 2])"]),
    ("TripletMarginLoss(2.0, swap=True)", [(3, 4), (3, 4), (3, 4)]),
    ("TripletMarginWithDistanceLoss(margin=2.0)", [(3, 4), (3, 4), (3, 4)]),
    ("CTCLoss()", [(4, 2, 3), "lib.tensor([[1, 2], [1, 1]])", "(4, 4)", "(2, 1)"]),
    (
        "LinearCrossEntropyLoss(4, 3, bias=True, label_smoothing=0.1)",
        [(2, 4), "lib.tensor([0, 2])"],
    ),
]


def _tensors(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]


@pytest.mark.parametrize(("expression", "given"), CASES, ids=[case[0] for case in CASES])
def test_layer_is_torchs(
    torch: Any, assert_equal_to_torch: Callable[..., None], expression: str, given: list[Any]
) -> None:
    found = []
    for library in (plugrad, torch):
        rng = np.random.default_rng(3)
        library.manual_seed(2)
        layer = eval(f"nn.{expression}", {"nn": library.nn}).double()
        first = [value.clone() for value in layer.state_dict().values()]
        inputs = [
            eval(item, {"lib": library, "rng": rng})
            if isinstance(item, str)
            else library.tensor(rng.standard_normal(item), requires_grad=True)
            for item in given
        ]
        results = _tensors(layer(*inputs))
        floats = [result for result in results if result.is_floating_point()]
        total = sum((result * library.cos(result.detach())).sum() for result in floats)
        learned = [*inputs, *layer.parameters()]
        learned = [x for x in learned if getattr(x, "requires_grad", False)]
        if total.requires_grad:
            total.backward()
        grads = [x.grad for x in learned]
        last = list(layer.state_dict().values())
        found.append((repr(layer), list(layer.state_dict()), [*first, *results, *grads, *last]))
    assert found[0][:2] == found[1][:2]
    for actual, expected in zip(found[0][2], found[1][2], strict=True):
        assert_equal_to_torch(actual, expected, atol=1e-8)


def test_signatures_are_torchs(torch: Any) -> None:
    """Every class that both have takes the arguments of PyTorch's, in its order."""
    for name in sorted(set(nn.__all__) & set(dir(torch.nn))):
        ours, theirs = getattr(nn, name), getattr(torch.nn, name)
        if not isinstance(ours, type) or name in ("RNN", "GRU", "LSTM"):
            continue
        found = list(inspect.signature(ours).parameters)
        expected = list(inspect.signature(theirs).parameters)
        if "args" not in expected:
            assert found[: len(expected)] == expected, name


def test_every_family_is_exported() -> None:
    assert len(set(nn.__all__)) == len(nn.__all__)
    for name in nn.__all__:
        assert getattr(nn, name).__name__.endswith(name)
    assert set(nn.__all__) <= set(dir(nn))
    assert nn.modules.padding.ZeroPad1d is nn.ZeroPad1d
    with pytest.raises(AttributeError, match="no attribute 'LSTN'"):
        nn.LSTN  # noqa: B018


def test_adaptive_softmax_is_a_distribution() -> None:
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 9, [2, 5], 2.0).double()
    x = plugrad.randn(50, 8, dtype=plugrad.float64) * 5
    logs = layer.log_prob(x)
    assert plugrad.allclose(logs.exp().sum(1), plugrad.ones(50, dtype=plugrad.float64))
    target = plugrad.arange(50) % 9
    output, loss = layer(x, target)
    assert plugrad.allclose(output, logs.gather(1, target[:, None]).squeeze(1))
    assert plugrad.allclose(loss, -output.mean())
    best = layer.predict(x)
    # Those that the head keeps for itself are compared with clusters, not with their classes.
    sent_on = layer.head(x).argmax(1) >= 2
    assert plugrad.equal(best[sent_on], logs.argmax(1)[sent_on])
    assert bool((best[~sent_on] < 2).all())


@pytest.mark.parametrize("size", [3, 4])
def test_old_norm_across_channels_is_torchs(
    torch: Any, rng: np.random.Generator, assert_equal_to_torch: Callable[..., None], size: int
) -> None:
    values = rng.standard_normal((2, 7, 3, 2))
    layers = [library.nn.CrossMapLRN2d(size, 0.1, 0.5, 2) for library in (plugrad, torch)]
    assert repr(layers[0]) == repr(layers[1])
    assert_equal_to_torch(layers[0](plugrad.tensor(values)), layers[1](torch.tensor(values)))


def test_sync_batch_norm_takes_over_parameters_and_statistics() -> None:
    net = nn.Sequential(nn.BatchNorm1d(3), nn.Sequential(nn.BatchNorm2d(2, affine=False)))
    weight = net[0].weight
    net[0].running_mean.fill_(2.0)
    made = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert made is net
    assert net[0].weight is weight
    assert net[0].running_mean.tolist() == [2.0] * 3
    assert [type(module).__name__ for module in (net[0], net[1][0])] == ["SyncBatchNorm"] * 2


@pytest.mark.filterwarnings("ignore:Initializing zero-element")
@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("nn.ConvTranspose1d(1, 1, 2, padding_mode='reflect')", ValueError),
        ("nn.ConvTranspose1d(1, 1, 2, stride=2)(lib.ones(1, 1, 3), [9])", ValueError),
        ("nn.ConvTranspose2d(1, 1, 2)(lib.ones(1, 1, 3, 3), [4])", ValueError),
        ("nn.InstanceNorm1d(3)(lib.ones(3))", ValueError),
        ("nn.InstanceNorm1d(3, affine=True)(lib.ones(1, 2, 4))", ValueError),
        ("nn.SyncBatchNorm(3)(lib.ones(3))", ValueError),
        ("nn.CircularPad2d(1)(lib.ones(3, 3))", ValueError),
        ("nn.Softmax2d()(lib.ones(3, 3))", ValueError),
        ("nn.FractionalMaxPool2d(2)", ValueError),
        ("nn.FractionalMaxPool2d(2, 2, 0.5)", ValueError),
        ("nn.FractionalMaxPool3d(2, output_ratio=2.0)", ValueError),
        ("nn.FractionalMaxPool3d(0, 2)", ValueError),
        ("nn.MultiMarginLoss(3)", ValueError),
        ("nn.TripletMarginLoss(0)", ValueError),
        ("nn.TripletMarginWithDistanceLoss(margin=0)", ValueError),
        ("nn.Bilinear(0, 1, 1)", ValueError),
        ("nn.EmbeddingBag(3, 4, padding_idx=5)", AssertionError),
        ("nn.AdaptiveLogSoftmaxWithLoss(4, 5, [])", ValueError),
        ("nn.AdaptiveLogSoftmaxWithLoss(4, 5, [3, 2])", ValueError),
        (
            "nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2])(lib.ones(1, 4), lib.tensor([7]))",
            RuntimeError,
        ),
        ("nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2])(lib.ones(4), lib.tensor([1]))", RuntimeError),
        ("nn.LinearCrossEntropyLoss(4, 5, label_smoothing=2)", RuntimeError),
        ("nn.Dropout1d(2)", ValueError),
    ],
)
def test_wrong_arguments_raise_torchs_words(
    torch: Any, expression: str, error: type[Exception]
) -> None:
    messages = []
    for library in (plugrad, torch):
        with pytest.raises(error) as caught:
            eval(expression, {"nn": library.nn, "lib": library})
        messages.append(str(caught.value).replace("plugrad.", "torch."))
    assert messages[0] == messages[1]
