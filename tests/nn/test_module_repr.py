"""Modules print exactly as PyTorch's do (oracle: torch)."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

import plugrad

EXPRESSIONS = [
    "nn.Linear(2, 3)",
    "nn.Linear(2, 3, bias=False)",
    "nn.Identity(3, a=1)",
    "nn.Conv2d(3, 4, (1, 2), stride=2, padding=1, dilation=2)",
    "nn.Conv2d(4, 4, 3, padding='same', groups=2, bias=False, padding_mode='circular')",
    "nn.Conv1d(3, 4, 2, stride=2, padding=1, dilation=2)",
    "nn.AdaptiveAvgPool2d((3, None))",
    "nn.Unflatten(1, (2, -1))",
    "nn.RMSNorm(3)",
    "nn.RMSNorm((2, 3), eps=0.1, elementwise_affine=False)",
    "nn.GroupNorm(2, 4)",
    "nn.GroupNorm(2, 4, affine=False)",
    "nn.MaxPool2d(2)",
    "nn.MaxPool2d(3, stride=(1, 2), padding=1, ceil_mode=True)",
    "nn.AvgPool1d(2, 1)",
    "nn.AvgPool2d(2, 1)",
    "nn.Flatten()",
    "nn.BatchNorm1d(3)",
    "nn.BatchNorm2d(3, momentum=None, affine=False, track_running_stats=False)",
    "nn.LayerNorm(3)",
    "nn.LayerNorm((2, 3), elementwise_affine=False)",
    "nn.LayerNorm([2, 3], bias=False)",
    "nn.Embedding(3, 4)",
    "nn.Embedding(3, 4, padding_idx=-1, max_norm=1.0, norm_type=1.0, scale_grad_by_freq=True)",
    "nn.Dropout(0.3)",
    "nn.ReLU()",
    "nn.ReLU(True)",
    "nn.GELU()",
    "nn.GELU('tanh')",
    "nn.SiLU()",
    "nn.SiLU(inplace=True)",
    "nn.Sigmoid()",
    "nn.Tanh()",
    "nn.Softplus()",
    "nn.Softplus(2, 10)",
    "nn.LeakyReLU(0.2, True)",
    "nn.ELU()",
    "nn.ReLU6(True)",
    "nn.SELU()",
    "nn.CELU(0.5, True)",
    "nn.Mish()",
    "nn.Hardsigmoid(True)",
    "nn.Hardswish()",
    "nn.Hardtanh(0, 2)",
    "nn.Threshold(0.1, 20)",
    "nn.LogSigmoid()",
    "nn.GLU(0)",
    "nn.PReLU(3)",
    "nn.HuberLoss()",
    "nn.BCELoss()",
    "nn.KLDivLoss()",
    "nn.Softmax(dim=1)",
    "nn.LogSoftmax()",
    "nn.CrossEntropyLoss()",
    "nn.NLLLoss()",
    "nn.MSELoss()",
    "nn.L1Loss()",
    "nn.SmoothL1Loss()",
    "nn.BCEWithLogitsLoss()",
    "nn.Sequential()",
    "nn.Sequential(nn.Linear(1, 2), nn.Sequential(nn.ReLU(), nn.Linear(2, 1)))",
    "nn.Sequential(OrderedDict(first=nn.Linear(1, 2), second=nn.ReLU()))",
    "nn.ModuleList()",
    "nn.ModuleList([nn.Linear(1, 2), nn.Linear(1, 2), nn.ReLU()])",
    "nn.ModuleList([nn.Sequential(nn.ReLU()), nn.Sequential(nn.ReLU())])",
    "nn.ModuleDict({'a': nn.Linear(1, 2), 'b': nn.ReLU()})",
    "nn.ParameterList([nn.Parameter(lib.ones(2, 3))])",
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_repr_is_torchs(torch: Any, expression: str) -> None:
    actual, expected = (
        repr(eval(expression, {"nn": library.nn, "lib": library, "OrderedDict": OrderedDict}))
        for library in (plugrad, torch)
    )
    assert actual.replace("plugrad.", "torch.") == expected
