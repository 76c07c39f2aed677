"""plugrad.nn: modules, parameters, losses; `functional` and `init` beside them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from plugrad.plugins.arguments import explain_constructors
from plugrad_nn.nn import functional, grad, init, utils
from plugrad_nn.nn.activation import (
    CELU,
    ELU,
    GELU,
    GLU,
    SELU,
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
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Tanh,
    Threshold,
)
from plugrad_nn.nn.container import ModuleDict, ModuleList, ParameterList, Sequential
from plugrad_nn.nn.conv import Conv1d, Conv2d
from plugrad_nn.nn.flatten import Flatten, Unflatten
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
    Dropout,
    GroupNorm,
    LayerNorm,
    RMSNorm,
)
from plugrad_nn.nn.parameter import Parameter
from plugrad_nn.nn.pooling import AdaptiveAvgPool2d, AvgPool1d, AvgPool2d, MaxPool2d

if TYPE_CHECKING:
    from plugrad_nn.nn.modules.attention import (
        MultiheadAttention,
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
    from plugrad_nn.nn.modules.transformer import (
        Transformer,
        TransformerDecoder,
        TransformerDecoderLayer,
        TransformerEncoder,
        TransformerEncoderLayer,
    )


__all__ = [
    "AdaptiveAvgPool2d",
    "AvgPool1d",
    "AvgPool2d",
    "BCELoss",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "CELU",
    "Conv1d",
    "Conv2d",
    "CrossEntropyLoss",
    "Dropout",
    "ELU",
    "Embedding",
    "Flatten",
    "GELU",
    "GLU",
    "GRU",
    "GRUCell",
    "GroupNorm",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "HuberLoss",
    "Identity",
    "KLDivLoss",
    "L1Loss",
    "LSTM",
    "LSTMCell",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSigmoid",
    "LogSoftmax",
    "MSELoss",
    "MaxPool2d",
    "Mish",
    "Module",
    "ModuleDict",
    "ModuleList",
    "MultiheadAttention",
    "NLLLoss",
    "PReLU",
    "Parameter",
    "ParameterList",
    "RMSNorm",
    "RNN",
    "RNNBase",
    "RNNCell",
    "RNNCellBase",
    "ReLU",
    "ReLU6",
    "SELU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SmoothL1Loss",
    "Softmax",
    "Softplus",
    "Tanh",
    "Threshold",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "Unflatten",
    "functional",
    "grad",
    "init",
    "utils",
]

# What few programs use is loaded at its first use: by module of `modules`, its names.
_FAMILIES: Final = {
    "attention": "MultiheadAttention",
    "rnn": "GRU LSTM RNN RNNBase",
    "rnn_cell": "GRUCell LSTMCell RNNCell RNNCellBase",
    "transformer": (
        "Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder "
        "TransformerEncoderLayer"
    ),
}
_FAMILY_OF: Final = {name: family for family, names in _FAMILIES.items() for name in names.split()}

explain_constructors(globals()[name] for name in __all__ if name not in _FAMILY_OF)


def __getattr__(name: str) -> Any:
    family = _FAMILY_OF.get(name)
    if family is None:
        if name == "modules":
            return importlib.import_module("plugrad_nn.nn.modules")
        raise AttributeError(f"module 'plugrad.nn' has no attribute {name!r}")
    module = importlib.import_module(f"plugrad_nn.nn.modules.{family}")
    loaded = {each: getattr(module, each) for each in _FAMILIES[family].split()}
    # Recurrent layers say themselves which types they take, in other words.
    if family != "rnn":
        explain_constructors(loaded.values())
    globals().update(loaded)
    return loaded[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
