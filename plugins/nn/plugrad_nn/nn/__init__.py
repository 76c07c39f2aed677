"""plugrad.nn: modules, parameters, losses; `functional` and `init` beside them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from plugrad.plugins.arguments import explain_constructors
from plugrad_nn.nn import attention, functional, grad, init, parallel, utils
from plugrad_nn.nn.activation import (
    CELU,
    ELU,
    GELU,
    GLU,
    SELU,
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    PReLU,
    ReLU,
    ReLU6,
    RReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Softmax2d,
    Softmin,
    Softplus,
    Softshrink,
    Softsign,
    Tanh,
    Tanhshrink,
    Threshold,
)
from plugrad_nn.nn.container import ModuleDict, ModuleList, Sequential
from plugrad_nn.nn.conv import Conv1d, Conv2d, Conv3d
from plugrad_nn.nn.factory import factory_kwargs
from plugrad_nn.nn.flatten import Flatten, Unflatten
from plugrad_nn.nn.functions.linear_cross_entropy_options import LinearCrossEntropyOptions
from plugrad_nn.nn.linear import Embedding, Identity, Linear
from plugrad_nn.nn.loss import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
)
from plugrad_nn.nn.module import Module
from plugrad_nn.nn.normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    Dropout,
    GroupNorm,
    LayerNorm,
    RMSNorm,
)
from plugrad_nn.nn.parameter import Buffer, Parameter
from plugrad_nn.nn.parameter_containers import ParameterDict, ParameterList
from plugrad_nn.nn.pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
)

if TYPE_CHECKING:
    from plugrad_nn.nn.modules.attention import (
        MultiheadAttention,
    )
    from plugrad_nn.nn.modules.classes import (
        AdaptiveLogSoftmaxWithLoss,
        EmbeddingBag,
    )
    from plugrad_nn.nn.modules.conv_transpose import (
        ConvTranspose1d,
        ConvTranspose2d,
        ConvTranspose3d,
    )
    from plugrad_nn.nn.modules.data_parallel import (
        DataParallel,
    )
    from plugrad_nn.nn.modules.dropout import (
        AlphaDropout,
        Dropout1d,
        Dropout2d,
        Dropout3d,
        FeatureAlphaDropout,
    )
    from plugrad_nn.nn.modules.instancenorm import (
        CrossMapLRN2d,
        InstanceNorm1d,
        InstanceNorm2d,
        InstanceNorm3d,
        LocalResponseNorm,
        SyncBatchNorm,
    )
    from plugrad_nn.nn.modules.lazy import (
        LazyBatchNorm1d,
        LazyBatchNorm2d,
        LazyBatchNorm3d,
        LazyConv1d,
        LazyConv2d,
        LazyConv3d,
        LazyConvTranspose1d,
        LazyConvTranspose2d,
        LazyConvTranspose3d,
        LazyInstanceNorm1d,
        LazyInstanceNorm2d,
        LazyInstanceNorm3d,
        LazyLinear,
    )
    from plugrad_nn.nn.modules.margin_loss import (
        CosineEmbeddingLoss,
        CTCLoss,
        GaussianNLLLoss,
        HingeEmbeddingLoss,
        LinearCrossEntropyLoss,
        MarginRankingLoss,
        MultiLabelMarginLoss,
        MultiLabelSoftMarginLoss,
        MultiMarginLoss,
        PoissonNLLLoss,
        SoftMarginLoss,
        TripletMarginLoss,
        TripletMarginWithDistanceLoss,
    )
    from plugrad_nn.nn.modules.older_names import (
        Container,
        NLLLoss2d,
    )
    from plugrad_nn.nn.modules.padding import (
        CircularPad1d,
        CircularPad2d,
        CircularPad3d,
        ConstantPad1d,
        ConstantPad2d,
        ConstantPad3d,
        ReflectionPad1d,
        ReflectionPad2d,
        ReflectionPad3d,
        ReplicationPad1d,
        ReplicationPad2d,
        ReplicationPad3d,
        ZeroPad1d,
        ZeroPad2d,
        ZeroPad3d,
    )
    from plugrad_nn.nn.modules.pairs import (
        Bilinear,
        CosineSimilarity,
        PairwiseDistance,
    )
    from plugrad_nn.nn.modules.pooling import (
        FractionalMaxPool2d,
        FractionalMaxPool3d,
        LPPool1d,
        LPPool2d,
        LPPool3d,
        MaxUnpool1d,
        MaxUnpool2d,
        MaxUnpool3d,
    )
    from plugrad_nn.nn.modules.rnn import (
        GRU,
        LSTM,
        RNN,
        RNNBase,
    )
    from plugrad_nn.nn.modules.rnn_cell import (
        GRUCell,
        LSTMCell,
        RNNCell,
        RNNCellBase,
    )
    from plugrad_nn.nn.modules.shape import (
        ChannelShuffle,
        Fold,
        PixelShuffle,
        PixelUnshuffle,
        Unfold,
        Upsample,
        UpsamplingBilinear2d,
        UpsamplingNearest2d,
    )
    from plugrad_nn.nn.modules.transformer import (
        Transformer,
        TransformerDecoder,
        TransformerDecoderLayer,
        TransformerEncoder,
        TransformerEncoderLayer,
    )
    from plugrad_nn.nn.modules.uninitialized import (
        UninitializedBuffer,
        UninitializedParameter,
    )


__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveLogSoftmaxWithLoss",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AlphaDropout",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "BCELoss",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "Bilinear",
    "Buffer",
    "CELU",
    "CTCLoss",
    "ChannelShuffle",
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "Container",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "CosineEmbeddingLoss",
    "CosineSimilarity",
    "CrossEntropyLoss",
    "CrossMapLRN2d",
    "DataParallel",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "ELU",
    "Embedding",
    "EmbeddingBag",
    "FeatureAlphaDropout",
    "Flatten",
    "Fold",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "GELU",
    "GLU",
    "GRU",
    "GRUCell",
    "GaussianNLLLoss",
    "GroupNorm",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "Identity",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "KLDivLoss",
    "L1Loss",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "LSTM",
    "LSTMCell",
    "LayerNorm",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "LazyLinear",
    "LeakyReLU",
    "Linear",
    "LinearCrossEntropyLoss",
    "LinearCrossEntropyOptions",
    "LocalResponseNorm",
    "LogSigmoid",
    "LogSoftmax",
    "MSELoss",
    "MarginRankingLoss",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
    "Mish",
    "Module",
    "ModuleDict",
    "ModuleList",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "MultiheadAttention",
    "NLLLoss",
    "NLLLoss2d",
    "PReLU",
    "PairwiseDistance",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "PixelShuffle",
    "PixelUnshuffle",
    "PoissonNLLLoss",
    "RMSNorm",
    "RNN",
    "RNNBase",
    "RNNCell",
    "RNNCellBase",
    "RReLU",
    "ReLU",
    "ReLU6",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "SELU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "SyncBatchNorm",
    "Tanh",
    "Tanhshrink",
    "Threshold",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
    "Unflatten",
    "Unfold",
    "UninitializedBuffer",
    "UninitializedParameter",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
    "attention",
    "factory_kwargs",
    "functional",
    "grad",
    "init",
    "parallel",
    "utils",
]

# Names that few programs use are loaded at first use: listed by module of `modules`.
_FAMILIES: Final = {
    "attention": "MultiheadAttention",
    "classes": "AdaptiveLogSoftmaxWithLoss EmbeddingBag",
    "conv_transpose": "ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    "data_parallel": "DataParallel",
    "dropout": "AlphaDropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout",
    "instancenorm": (
        "CrossMapLRN2d InstanceNorm1d InstanceNorm2d InstanceNorm3d LocalResponseNorm SyncBatchNorm"
    ),
    "lazy": (
        "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d "
        "LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d LazyInstanceNorm1d "
        "LazyInstanceNorm2d LazyInstanceNorm3d LazyLinear"
    ),
    "margin_loss": (
        "CTCLoss CosineEmbeddingLoss GaussianNLLLoss HingeEmbeddingLoss "
        "LinearCrossEntropyLoss MarginRankingLoss MultiLabelMarginLoss "
        "MultiLabelSoftMarginLoss MultiMarginLoss PoissonNLLLoss SoftMarginLoss "
        "TripletMarginLoss TripletMarginWithDistanceLoss"
    ),
    "older_names": "Container NLLLoss2d",
    "padding": (
        "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d "
        "ConstantPad3d ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d "
        "ReplicationPad2d ReplicationPad3d ZeroPad1d ZeroPad2d ZeroPad3d"
    ),
    "pairs": "Bilinear CosineSimilarity PairwiseDistance",
    "pooling": (
        "FractionalMaxPool2d FractionalMaxPool3d LPPool1d LPPool2d LPPool3d MaxUnpool1d "
        "MaxUnpool2d MaxUnpool3d"
    ),
    "rnn": "GRU LSTM RNN RNNBase",
    "rnn_cell": "GRUCell LSTMCell RNNCell RNNCellBase",
    "shape": (
        "ChannelShuffle Fold PixelShuffle PixelUnshuffle Unfold Upsample "
        "UpsamplingBilinear2d UpsamplingNearest2d"
    ),
    "transformer": (
        "Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder "
        "TransformerEncoderLayer"
    ),
    "uninitialized": "UninitializedBuffer UninitializedParameter",
}
_SUBMODULES: Final = ("global_hooks", "modules")
_FAMILY_OF: Final = {name: family for family, names in _FAMILIES.items() for name in names.split()}

explain_constructors(globals()[name] for name in __all__ if name not in _FAMILY_OF)


def __getattr__(name: str) -> Any:
    family = _FAMILY_OF.get(name)
    if family is None:
        if name in _SUBMODULES:
            return importlib.import_module(f"plugrad_nn.nn.{name}")
        raise AttributeError(f"module 'plugrad.nn' has no attribute {name!r}")
    module = importlib.import_module(f"plugrad_nn.nn.modules.{family}")
    loaded = {each: getattr(module, each) for each in _FAMILIES[family].split()}
    # Recurrent layers say themselves which types they take, in other words.
    if family != "rnn":
        explain_constructors(loaded.values())
    globals().update(loaded)
    return loaded[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "modules"})
