"""plugrad.nn: modules, parameters, losses; `functional` and `init` beside them."""

from plugrad.plugins.arguments import explain_constructors
from plugrad_nn.nn import functional, init, utils
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
    "GroupNorm",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "HuberLoss",
    "Identity",
    "KLDivLoss",
    "L1Loss",
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
    "NLLLoss",
    "PReLU",
    "Parameter",
    "ParameterList",
    "RMSNorm",
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
    "Unflatten",
    "functional",
    "init",
    "utils",
]

explain_constructors(globals()[name] for name in __all__)
