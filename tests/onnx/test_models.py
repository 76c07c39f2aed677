"""Whole models, at other batch sizes than in the export."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad
from plugrad import Tensor, nn
from tests.onnx.exported import compare, exported, operators


class Residual(nn.Module):
    """A convolutional block as in a ResNet."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        hidden = nn.functional.relu(self.norm(self.first(x)), inplace=True)
        hidden = self.second(hidden)
        hidden += x
        return nn.functional.relu_(hidden)


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(), nn.Linear(16, 3))


def convolutional() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(3, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU(), Residual(8)),
        *(nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)),
    )


class Classifier(nn.Module):
    """Words through an LSTM: the last states give the class."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.lstm = nn.LSTM(8, 6, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(12, 3)

    def forward(self, words: Tensor) -> Tensor:
        _, (hidden, _) = self.lstm(self.embedding(words))
        return self.head(plugrad.cat([hidden[-2], hidden[-1]], dim=1))


class Language(nn.Module):
    """A small transformer over words, with positions and a causal mask."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 16)
        self.positions = nn.Embedding(32, 16)
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 20, bias=False)

    def forward(self, words: Tensor) -> Tensor:
        time = words.shape[1]
        x = self.words(words) + self.positions(plugrad.arange(time, device=words.device))
        mask = plugrad.ones(time, time, dtype=plugrad.bool).triu(1)
        return self.head(self.encoder(x, mask=mask, is_causal=False))


class Attention(nn.Module):
    """Attention as programs write it by hand: view, transpose, one product for all."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        batch, time, width = x.shape
        parts = self.project(x).view(batch, time, 3, 2, width // 2).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        found = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(found.transpose(1, 2).reshape(batch, time, width))


def words(*shape: int) -> Tensor:
    return plugrad.randint(0, 20, shape)


MODELS: dict[str, tuple[Any, Any, dict[int, str], list[tuple[int, ...]]]] = {
    "perceptron": (perceptron, plugrad.randn, {0: "batch"}, [(2, 6), (1, 6), (5, 6)]),
    "convolutional": (convolutional, plugrad.randn, {0: "batch"}, [(1, 3, 12, 12), (4, 3, 12, 12)]),
    "lstm": (Classifier, words, {0: "batch", 1: "time"}, [(2, 5), (1, 9), (4, 1)]),
    "transformer": (Language, words, {0: "batch", 1: "time"}, [(2, 6), (1, 1), (3, 11)]),
    "attention": (Attention, plugrad.randn, {0: "batch", 1: "time"}, [(2, 3, 8), (1, 7, 8)]),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("opset", [18, 23])
def test_models(name: str, opset: int) -> None:
    made, data, dynamic, shapes = MODELS[name]
    model = made().eval()
    program = exported(model, data(*shapes[0]), dynamic_shapes=(dynamic,), opset_version=opset)
    for shape in shapes:
        compare(program, model, data(*shape))


def test_a_residual_network_has_one_node_for_each_layer() -> None:
    found = operators(exported(convolutional().eval(), plugrad.randn(1, 3, 12, 12)))
    assert found == [
        *("Conv", "BatchNormalization", "Relu", "Conv", "BatchNormalization", "Relu", "Conv"),
        *("Add", "Relu", "MaxPool", "ReduceMean", "Reshape", "Gemm"),
    ]
