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
from plugrad_nn.nn.conv import AvgPool2d, Conv2d, Flatten, MaxPool2d
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
from plugrad_nn.nn.normalization import BatchNorm1d, BatchNorm2d, Dropout, LayerNorm
from plugrad_nn.nn.parameter import Parameter

__all__ = [
    "ELU",
    "GELU",
    "AvgPool2d",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "Conv2d",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
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
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SmoothL1Loss",
    "Softmax",
    "Softplus",
    "Tanh",
    "functional",
    "init",
    "utils",
]
