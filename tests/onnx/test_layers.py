"""Every layer of plugrad.nn, exported and computed by onnxruntime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import plugrad
from plugrad import nn
from plugrad.onnx import OnnxExporterError
from tests.onnx.exported import agrees

randn, rand, randint = plugrad.randn, plugrad.rand, plugrad.randint


def classes(*shape: int) -> Any:
    """Numbers of five classes."""
    return randint(0, 5, shape)


# By name: the module, and what it is called with.
LAYERS: dict[str, tuple[Callable[[], Any], Callable[[], tuple[Any, ...]]]] = {
    # Linear
    "Identity": (nn.Identity, lambda: (randn(2, 3),)),
    "Linear": (lambda: nn.Linear(4, 3), lambda: (randn(2, 4),)),
    "Linear, three dimensions": (lambda: nn.Linear(4, 3), lambda: (randn(2, 5, 4),)),
    "Linear without bias": (lambda: nn.Linear(4, 3, bias=False), lambda: (randn(4),)),
    "Bilinear": (lambda: nn.Bilinear(3, 4, 5), lambda: (randn(2, 3), randn(2, 4))),
    # Convolutions
    "Conv1d": (lambda: nn.Conv1d(3, 4, 3, 2, 1), lambda: (randn(2, 3, 9),)),
    "Conv2d": (lambda: nn.Conv2d(4, 6, (3, 2), (1, 2), (2, 0), 2, 2), lambda: (randn(2, 4, 8, 9),)),
    "Conv2d, same": (lambda: nn.Conv2d(3, 4, 4, padding="same"), lambda: (randn(1, 3, 7, 8),)),
    "Conv2d, reflected": (
        lambda: nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"),
        lambda: (randn(1, 3, 5, 6),),
    ),
    "Conv2d without a batch": (lambda: nn.Conv2d(3, 4, 3), lambda: (randn(3, 5, 6),)),
    "Conv3d": (lambda: nn.Conv3d(2, 3, 2, bias=False), lambda: (randn(1, 2, 4, 5, 3),)),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(3, 4, 3, 2, 1, 1), lambda: (randn(2, 3, 5),)),
    "ConvTranspose2d": (
        lambda: nn.ConvTranspose2d(4, 6, 3, (2, 1), 1, (1, 0), 2, dilation=1),
        lambda: (randn(2, 4, 4, 5),),
    ),
    "ConvTranspose3d": (lambda: nn.ConvTranspose3d(2, 3, 2), lambda: (randn(1, 2, 3, 3, 2),)),
    "Fold": (lambda: nn.Fold((4, 5), (2, 2), padding=1, stride=2), lambda: (randn(2, 12, 9),)),
    "Unfold": (lambda: nn.Unfold((2, 3), 1, 1, (2, 1)), lambda: (randn(2, 3, 5, 6),)),
    # Pooling
    "MaxPool1d": (lambda: nn.MaxPool1d(3, 2, 1), lambda: (randn(2, 3, 9),)),
    "MaxPool2d": (lambda: nn.MaxPool2d(2, ceil_mode=True), lambda: (randn(2, 3, 7, 6),)),
    "MaxPool2d with indices": (
        lambda: nn.MaxPool2d(2, 1, dilation=2, return_indices=True),
        lambda: (randn(2, 3, 7, 6),),
    ),
    "MaxPool3d": (lambda: nn.MaxPool3d(2), lambda: (randn(1, 2, 4, 5, 4),)),
    "MaxUnpool1d": (
        lambda: nn.MaxUnpool1d(2),
        lambda: nn.MaxPool1d(2, return_indices=True)(randn(1, 2, 6)),
    ),
    "MaxUnpool2d": (
        lambda: nn.MaxUnpool2d(2),
        lambda: nn.MaxPool2d(2, return_indices=True)(randn(2, 2, 4, 6)),
    ),
    "MaxUnpool3d": (
        lambda: nn.MaxUnpool3d(2),
        lambda: nn.MaxPool3d(2, return_indices=True)(randn(1, 2, 4, 4, 2)),
    ),
    "AvgPool1d": (lambda: nn.AvgPool1d(3, 2, 1), lambda: (randn(2, 3, 9),)),
    "AvgPool2d": (
        lambda: nn.AvgPool2d(3, 2, 1, count_include_pad=False),
        lambda: (randn(2, 3, 7, 8),),
    ),
    "AvgPool2d, ceil_mode": (
        lambda: nn.AvgPool2d(2, 3, 1, ceil_mode=True),
        lambda: (randn(1, 2, 5, 8),),
    ),
    "MaxPool2d, ceil_mode": (
        lambda: nn.MaxPool2d(2, 3, 1, dilation=2, ceil_mode=True, return_indices=True),
        lambda: (randn(1, 2, 5, 8),),
    ),
    "AvgPool2d, divisor": (
        lambda: nn.AvgPool2d((2, 3), divisor_override=5),
        lambda: (randn(3, 7, 8),),
    ),
    "AvgPool3d": (lambda: nn.AvgPool3d(2), lambda: (randn(1, 2, 4, 5, 4),)),
    "AdaptiveAvgPool1d": (lambda: nn.AdaptiveAvgPool1d(3), lambda: (randn(2, 3, 8),)),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d((1, 1)), lambda: (randn(2, 3, 7, 8),)),
    "AdaptiveAvgPool2d, parts": (
        lambda: nn.AdaptiveAvgPool2d((3, None)),
        lambda: (randn(2, 3, 7, 8),),
    ),
    "AdaptiveAvgPool3d": (lambda: nn.AdaptiveAvgPool3d(2), lambda: (randn(1, 2, 4, 5, 4),)),
    "AdaptiveMaxPool1d": (lambda: nn.AdaptiveMaxPool1d(3), lambda: (randn(2, 3, 8),)),
    "AdaptiveMaxPool2d": (lambda: nn.AdaptiveMaxPool2d(3), lambda: (randn(2, 3, 7, 8),)),
    "AdaptiveMaxPool3d": (lambda: nn.AdaptiveMaxPool3d(2), lambda: (randn(1, 2, 4, 5, 4),)),
    "LPPool1d": (lambda: nn.LPPool1d(2, 3), lambda: (randn(2, 3, 9),)),
    "LPPool2d": (lambda: nn.LPPool2d(1.5, 2), lambda: (rand(2, 3, 6, 6),)),
    "LPPool3d": (lambda: nn.LPPool3d(2, 2), lambda: (rand(1, 2, 4, 4, 4),)),
    # Padding
    **{
        f"{kind}Pad{rank}d": (
            lambda kind=kind, rank=rank: getattr(nn, f"{kind}Pad{rank}d")(
                tuple(range(1, 2 * rank + 1)) if kind in ("Zero", "Replication") else 2
            ),
            lambda rank=rank: (randn(1, 2, *[4, 5, 3][:rank]),),
        )
        for kind in ("Circular", "Reflection", "Replication", "Zero")
        for rank in (1, 2, 3)
    },
    **{
        f"ConstantPad{rank}d": (
            lambda rank=rank: getattr(nn, f"ConstantPad{rank}d")(1, 2.5),
            lambda rank=rank: (randn(1, 2, *[4, 5, 3][:rank]),),
        )
        for rank in (1, 2, 3)
    },
    # Normalisation
    "BatchNorm1d": (lambda: nn.BatchNorm1d(3), lambda: (randn(4, 3),)),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(3, affine=False), lambda: (randn(2, 3, 4, 5),)),
    "BatchNorm3d": (
        lambda: nn.BatchNorm3d(3, track_running_stats=False),
        lambda: (randn(2, 3, 2, 2, 3),),
    ),
    "SyncBatchNorm": (lambda: nn.SyncBatchNorm(3), lambda: (randn(4, 3, 2),)),
    "InstanceNorm1d": (lambda: nn.InstanceNorm1d(3), lambda: (randn(2, 3, 5),)),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(3, affine=True), lambda: (randn(2, 3, 4, 5),)),
    "InstanceNorm3d": (
        lambda: nn.InstanceNorm3d(3, track_running_stats=True),
        lambda: (randn(2, 3, 2, 2, 3),),
    ),
    "LayerNorm": (lambda: nn.LayerNorm((3, 4)), lambda: (randn(2, 3, 4),)),
    "LayerNorm, plain": (
        lambda: nn.LayerNorm(4, elementwise_affine=False),
        lambda: (randn(2, 3, 4),),
    ),
    "GroupNorm": (lambda: nn.GroupNorm(2, 6), lambda: (randn(2, 6, 4, 3),)),
    "RMSNorm": (lambda: nn.RMSNorm(4), lambda: (randn(2, 3, 4),)),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(2), lambda: (randn(2, 4, 5, 5),)),
    "CrossMapLRN2d": (lambda: nn.CrossMapLRN2d(3), lambda: (randn(2, 4, 5, 5),)),
    # Activations
    **{
        name: (getattr(nn, name), lambda: (3 * randn(4, 5),))
        for name in (
            *("CELU", "ELU", "GELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh"),
            *("LeakyReLU", "LogSigmoid", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU"),
            *("SiLU", "Sigmoid", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink"),
        )
    },
    "CELU, alpha": (lambda: nn.CELU(0.5), lambda: (randn(4, 5),)),
    "GELU, tanh": (lambda: nn.GELU("tanh"), lambda: (randn(4, 5),)),
    "GLU": (lambda: nn.GLU(1), lambda: (randn(4, 6),)),
    "PReLU of channels": (lambda: nn.PReLU(3), lambda: (randn(2, 3, 4, 4),)),
    "Softplus, beta": (lambda: nn.Softplus(2, 3), lambda: (3 * randn(4, 5),)),
    "Threshold": (lambda: nn.Threshold(0.1, 20), lambda: (randn(4, 5),)),
    "Softmax": (lambda: nn.Softmax(1), lambda: (randn(2, 3, 4),)),
    "Softmax2d": (nn.Softmax2d, lambda: (randn(2, 3, 4, 4),)),
    "Softmin": (lambda: nn.Softmin(-1), lambda: (randn(2, 3),)),
    "LogSoftmax": (lambda: nn.LogSoftmax(-1), lambda: (randn(2, 3),)),
    "AdaptiveLogSoftmaxWithLoss": (
        lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 8, [3, 5]).log_prob,
        lambda: (randn(3, 4),),
    ),
    # Dropout
    **{
        name: (getattr(nn, name), lambda: (randn(2, 3, 4, 4, 2),))
        for name in ("AlphaDropout", "Dropout", "Dropout3d", "FeatureAlphaDropout")
    },
    "Dropout1d": (nn.Dropout1d, lambda: (randn(2, 3, 4),)),
    "Dropout2d": (nn.Dropout2d, lambda: (randn(2, 3, 4, 4),)),
    # Sparse
    "Embedding": (lambda: nn.Embedding(5, 3, padding_idx=0), lambda: (classes(2, 4),)),
    "EmbeddingBag": (lambda: nn.EmbeddingBag(5, 3), lambda: (classes(2, 4),)),
    "EmbeddingBag, sum": (lambda: nn.EmbeddingBag(5, 3, mode="sum"), lambda: (classes(2, 4),)),
    "EmbeddingBag, max": (lambda: nn.EmbeddingBag(5, 3, mode="max"), lambda: (classes(2, 4),)),
    # Recurrent
    "RNN": (lambda: nn.RNN(3, 4, 2), lambda: (randn(5, 2, 3),)),
    "RNN, relu": (
        lambda: nn.RNN(3, 4, nonlinearity="relu", bidirectional=True, bias=False),
        lambda: (randn(5, 2, 3), randn(2, 2, 4)),
    ),
    "LSTM": (lambda: nn.LSTM(3, 4, 2, bidirectional=True), lambda: (randn(5, 2, 3),)),
    "LSTM with states": (
        lambda: nn.LSTM(3, 4, 2, batch_first=True),
        lambda: (randn(2, 5, 3), (randn(2, 2, 4), randn(2, 2, 4))),
    ),
    "LSTM, projected": (lambda: nn.LSTM(3, 4, proj_size=2), lambda: (randn(5, 2, 3),)),
    "LSTM without a batch": (lambda: nn.LSTM(3, 4), lambda: (randn(5, 3),)),
    "GRU": (
        lambda: nn.GRU(3, 4, 2, bidirectional=True, batch_first=True),
        lambda: (randn(2, 5, 3), randn(4, 2, 4)),
    ),
    "RNNBase": (lambda: nn.RNNBase("GRU", 3, 4), lambda: (randn(5, 2, 3),)),
    "RNNCell": (lambda: nn.RNNCell(3, 4), lambda: (randn(2, 3), randn(2, 4))),
    "LSTMCell": (lambda: nn.LSTMCell(3, 4), lambda: (randn(2, 3), (randn(2, 4), randn(2, 4)))),
    "GRUCell": (lambda: nn.GRUCell(3, 4), lambda: (randn(2, 3),)),
    # Attention
    "MultiheadAttention": (
        lambda: nn.MultiheadAttention(8, 2),
        lambda: (randn(4, 2, 8), randn(3, 2, 8), randn(3, 2, 8)),
    ),
    "MultiheadAttention, masked": (
        lambda: nn.MultiheadAttention(8, 2, kdim=6, vdim=5, batch_first=True),
        lambda: (
            *(randn(2, 4, 8), randn(2, 3, 6), randn(2, 3, 5)),
            plugrad.tensor([[False, False, True], [False, False, False]]),
            False,
        ),
    ),
    "TransformerEncoderLayer": (
        lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu"),
        lambda: (randn(2, 3, 8),),
    ),
    "TransformerEncoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, norm_first=True), 2),
        lambda: (randn(3, 2, 8), nn.Transformer.generate_square_subsequent_mask(3), None, False),
    ),
    "TransformerDecoderLayer": (
        lambda: nn.TransformerDecoderLayer(8, 2, 16),
        lambda: (randn(3, 2, 8), randn(4, 2, 8)),
    ),
    "TransformerDecoder": (
        lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 1),
        lambda: (randn(3, 2, 8), randn(4, 2, 8)),
    ),
    "Transformer": (
        lambda: nn.Transformer(8, 2, 1, 1, 16),
        lambda: (randn(3, 2, 8), randn(4, 2, 8)),
    ),
    # Images, shapes, distances
    **{
        f"Upsample, {mode}": (
            lambda mode=mode, align=align: nn.Upsample(
                scale_factor=1.5, mode=mode, align_corners=align
            ),
            lambda rank=rank: (randn(2, 3, *[4, 6, 4][:rank]),),
        )
        for mode, rank, align in (
            *(("nearest", 1, None), ("nearest", 2, None), ("nearest", 3, None)),
            *(("linear", 1, False), ("bilinear", 2, False), ("bicubic", 2, False)),
            ("trilinear", 3, False),
        )
    },
    "Upsample, size": (
        lambda: nn.Upsample((7, 5), mode="bilinear", align_corners=True),
        lambda: (randn(2, 3, 4, 6),),
    ),
    "Upsample, bicubic corners": (
        lambda: nn.Upsample((7, 5), mode="bicubic", align_corners=True),
        lambda: (randn(2, 3, 4, 6),),
    ),
    "Upsample, nearest-exact": (
        lambda: nn.Upsample((7, 5), mode="nearest-exact"),
        lambda: (randn(2, 3, 4, 6),),
    ),
    "UpsamplingBilinear2d": (
        lambda: nn.UpsamplingBilinear2d(scale_factor=2),
        lambda: (randn(1, 2, 3, 4),),
    ),
    "UpsamplingNearest2d": (lambda: nn.UpsamplingNearest2d((5, 7)), lambda: (randn(1, 2, 3, 4),)),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), lambda: (randn(1, 8, 3, 4),)),
    "PixelUnshuffle": (lambda: nn.PixelUnshuffle(2), lambda: (randn(1, 2, 4, 6),)),
    "ChannelShuffle": (lambda: nn.ChannelShuffle(2), lambda: (randn(1, 4, 2, 2),)),
    "Flatten": (lambda: nn.Flatten(), lambda: (randn(2, 3, 4),)),
    "Unflatten": (lambda: nn.Unflatten(1, (2, 3)), lambda: (randn(2, 6, 4),)),
    "CosineSimilarity": (lambda: nn.CosineSimilarity(), lambda: (randn(2, 3), randn(2, 3))),
    "PairwiseDistance": (lambda: nn.PairwiseDistance(), lambda: (randn(2, 3), randn(2, 3))),
    # Losses
    "L1Loss": (nn.L1Loss, lambda: (randn(3, 4), randn(3, 4))),
    "MSELoss": (lambda: nn.MSELoss(reduction="sum"), lambda: (randn(3, 4), randn(3, 4))),
    "HuberLoss": (nn.HuberLoss, lambda: (2 * randn(3, 4), randn(3, 4))),
    "SmoothL1Loss": (nn.SmoothL1Loss, lambda: (2 * randn(3, 4), randn(3, 4))),
    "BCELoss": (nn.BCELoss, lambda: (rand(3, 4), rand(3, 4))),
    "BCEWithLogitsLoss": (
        lambda: nn.BCEWithLogitsLoss(pos_weight=plugrad.tensor([1.0, 2.0, 3.0, 0.5])),
        lambda: (randn(3, 4), rand(3, 4)),
    ),
    "CrossEntropyLoss": (
        lambda: nn.CrossEntropyLoss(weight=plugrad.rand(5), label_smoothing=0.1),
        lambda: (randn(3, 5), classes(3)),
    ),
    "CrossEntropyLoss, images": (
        nn.CrossEntropyLoss,
        lambda: (randn(2, 5, 3, 3), classes(2, 3, 3)),
    ),
    "CrossEntropyLoss, probabilities": (
        nn.CrossEntropyLoss,
        lambda: (randn(3, 5), plugrad.softmax(randn(3, 5), 1)),
    ),
    "NLLLoss": (
        lambda: nn.NLLLoss(ignore_index=1, reduction="none"),
        lambda: (plugrad.log_softmax(randn(3, 5), 1), classes(3)),
    ),
    "NLLLoss2d": (nn.NLLLoss2d, lambda: (randn(2, 5, 3, 3), classes(2, 3, 3))),
    "KLDivLoss": (
        lambda: nn.KLDivLoss(reduction="batchmean"),
        lambda: (plugrad.log_softmax(randn(3, 5), 1), plugrad.softmax(randn(3, 5), 1)),
    ),
    "LinearCrossEntropyLoss": (
        lambda: nn.LinearCrossEntropyLoss(4, 5),
        lambda: (randn(3, 4), classes(3)),
    ),
    "PoissonNLLLoss": (lambda: nn.PoissonNLLLoss(full=True), lambda: (randn(3, 4), 4 * rand(3, 4))),
    "HingeEmbeddingLoss": (
        nn.HingeEmbeddingLoss,
        lambda: (randn(3, 4), plugrad.sign(randn(3, 4))),
    ),
    "SoftMarginLoss": (nn.SoftMarginLoss, lambda: (randn(3, 4), plugrad.sign(randn(3, 4)))),
    "MarginRankingLoss": (
        lambda: nn.MarginRankingLoss(0.2),
        lambda: (randn(3), randn(3), plugrad.sign(randn(3))),
    ),
    "MultiLabelMarginLoss": (
        nn.MultiLabelMarginLoss,
        lambda: (randn(2, 4), plugrad.tensor([[3, 0, -1, 1], [1, -1, 2, 0]])),
    ),
    "MultiLabelSoftMarginLoss": (
        nn.MultiLabelSoftMarginLoss,
        lambda: (randn(2, 4), randint(0, 2, (2, 4)).float()),
    ),
    "MultiMarginLoss": (nn.MultiMarginLoss, lambda: (randn(3, 5), classes(3))),
    "CosineEmbeddingLoss": (
        nn.CosineEmbeddingLoss,
        lambda: (randn(3, 4), randn(3, 4), plugrad.sign(randn(3))),
    ),
    "TripletMarginLoss": (nn.TripletMarginLoss, lambda: (randn(3, 4), randn(3, 4), randn(3, 4))),
    "TripletMarginWithDistanceLoss": (
        nn.TripletMarginWithDistanceLoss,
        lambda: (randn(3, 4), randn(3, 4), randn(3, 4)),
    ),
    # Containers
    "Sequential": (
        lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True)),
        lambda: (randn(2, 3),),
    ),
    "DataParallel": (lambda: nn.DataParallel(nn.Linear(3, 4)), lambda: (randn(2, 3),)),
}


# They draw random numbers in evaluation, too; look at values; have no lowering.
REFUSED = {
    "FractionalMaxPool2d": (
        lambda: nn.FractionalMaxPool2d(2, output_size=3),
        lambda: (randn(1, 2, 6, 6),),
        "draws random numbers",
    ),
    "FractionalMaxPool3d": (
        lambda: nn.FractionalMaxPool3d(2, output_size=2),
        lambda: (randn(1, 2, 4, 4, 4),),
        "draws random numbers",
    ),
    "GaussianNLLLoss": (
        nn.GaussianNLLLoss,
        lambda: (randn(3), randn(3), rand(3)),
        "the value of any is read",
    ),
    "CTCLoss": (
        nn.CTCLoss,
        lambda: (
            randn(5, 1, 4).log_softmax(2),
            plugrad.tensor([[1, 2]]),
            plugrad.tensor([5]),
            plugrad.tensor([2]),
        ),
        "no lowering for the operator plugrad::ctc_loss",
    ),
}
# Parts of other layers; lazy layers become others at their first call.
BASES = {"Container", "Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList"}
BASES |= {"RNNCellBase"}


def test_all_layers_are_tried() -> None:
    tried = {name.split(",")[0].split(" ")[0] for name in (*LAYERS, *REFUSED)}
    kinds = [getattr(nn, name) for name in dir(nn)]
    names = {
        kind.__name__ for kind in kinds if isinstance(kind, type) and issubclass(kind, nn.Module)
    }
    assert {name for name in names - tried - BASES if not name.startswith("Lazy")} == set()


@pytest.mark.parametrize("name", REFUSED)
def test_layer_that_is_refused(name: str) -> None:
    made, arguments, words = REFUSED[name]
    with pytest.raises(OnnxExporterError, match=words):
        plugrad.onnx.export(made().eval(), arguments())


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name: str) -> None:
    made, arguments = LAYERS[name]
    layer = made()
    if isinstance(layer, nn.Module):
        layer.eval()
    agrees(layer, *arguments())
