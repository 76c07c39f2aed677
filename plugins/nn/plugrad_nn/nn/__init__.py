"""plugrad.nn: modules, parameters, losses; `functional` and `init` beside them."""

from plugrad_nn.nn import functional, init, utils
from plugrad_nn.nn.activation import (
    ELU,
    GELU,
    LeakyReLU,
    LogSoftmax,
    ReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Tanh,
)
from plugrad_nn.nn.container import ModuleDict, ModuleList, ParameterList, Sequential
from plugrad_nn.nn.conv import Conv1d, Conv2d
from plugrad_nn.nn.flatten import Flatten, Unflatten
from plugrad_nn.nn.linear import Embedding, Identity, Linear
from plugrad_nn.nn.loss import (
    BCEWithLogitsLoss,
    CrossEntropyLoss,
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
from plugrad_nn.nn.pooling import AdaptiveAvgPool2d, AvgPool2d, MaxPool2d

__all__ = [
    "ELU",
    "GELU",
    "AdaptiveAvgPool2d",
    "AvgPool2d",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "Conv1d",
    "Conv2d",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "GroupNorm",
    "Identity",
    "L1Loss",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSoftmax",
    "MSELoss",
    "MaxPool2d",
    "Module",
    "ModuleDict",
    "ModuleList",
    "NLLLoss",
    "Parameter",
    "ParameterList",
    "RMSNorm",
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SmoothL1Loss",
    "Softmax",
    "Softplus",
    "Tanh",
    "Unflatten",
    "functional",
    "init",
    "utils",
]
