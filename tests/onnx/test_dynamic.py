"""Dynamic sizes: exported at some sizes, computed at others."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad
from plugrad import Tensor, nn
from plugrad.onnx import OnnxExporterError
from tests.onnx.exported import compare, exported, operators

BATCH = {"dynamic_axes": {"x": {0: "batch"}}}


class Named(nn.Module):
    """A layer with an input called x."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Any:
        return self.layer(x)


def shape_of(info: Any) -> list[Any]:
    return [d.dim_value or d.dim_param for d in info.type.tensor_type.shape.dim]


LAYERS = {
    "linear": (nn.Linear(4, 3), (4,)),
    "convolution": (nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Flatten()), (2, 5, 6)),
    "transposed convolution": (nn.ConvTranspose1d(2, 3, 3, 2), (2, 5)),
    "pooling": (nn.Sequential(nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(2)), (2, 6, 6)),
    "group norm": (nn.GroupNorm(2, 4), (4, 3, 3)),
    "instance norm": (nn.InstanceNorm1d(3), (3, 5)),
    "batch statistics": (nn.BatchNorm1d(3, track_running_stats=False), (3, 4)),
    "padding": (nn.CircularPad2d(1), (2, 3, 3)),
    "encoder": (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (3, 8)),
    "lstm": (nn.LSTM(3, 4, 2, bidirectional=True, batch_first=True), (5, 3)),
    "gru cell": (nn.GRUCell(3, 4), (3,)),
    "upsampling": (nn.Upsample(scale_factor=2), (2, 3, 3)),
    "unfold": (nn.Unfold(2), (2, 4, 5)),
    "fold": (nn.Fold((3, 4), 2), (8, 6)),
    "pixel shuffle": (nn.PixelShuffle(2), (4, 2, 2)),
    "response norm": (nn.LocalResponseNorm(2), (4, 3, 3)),
    "maximum with indices": (nn.AdaptiveMaxPool2d(2, return_indices=True), (2, 4, 4)),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("size", [1, 2])
def test_layers_take_another_batch(name: str, size: int) -> None:
    layer, shape = LAYERS[name]
    model = Named(layer).eval()
    program = exported(model, plugrad.randn(size, *shape), **BATCH)
    for batch in (1, 2, 7):
        compare(program, model, plugrad.randn(batch, *shape))


def test_dimensions_have_their_names() -> None:
    program = exported(Named(nn.Flatten(0, 1)), plugrad.ones(2, 3), **BATCH)
    assert shape_of(program.model_proto.graph.input[0]) == ["batch", 3]
    assert shape_of(program.model_proto.graph.output[0]) == ["3*batch"]


def test_several_dimensions_of_several_inputs() -> None:
    def attend(query: Tensor, key: Tensor) -> Tensor:
        batch, count, _ = query.shape
        scores = query @ key.transpose(1, 2)
        return scores.reshape(batch * count, key.shape[1]).softmax(-1)

    axes = {"query": {0: "batch", 1: "queries"}, "key": {0: "batch", 1: "keys"}}
    program = exported(attend, plugrad.randn(2, 2, 4), plugrad.randn(2, 2, 4), dynamic_axes=axes)
    for b, q, k in ((1, 1, 1), (3, 5, 2), (4, 2, 6)):
        compare(program, attend, plugrad.randn(b, q, 4), plugrad.randn(b, k, 4))


def test_dynamic_length_of_a_recurrent_layer() -> None:
    model = Named(nn.LSTM(3, 4))
    program = exported(model, plugrad.randn(5, 2, 3), dynamic_axes={"x": [0, 1]})
    compare(program, model, plugrad.randn(9, 3, 3))


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_dynamic_images_that_are_padded(mode: str) -> None:
    def padded(x: Tensor) -> Tensor:
        return nn.functional.pad(x, (1, 2, 2, 0), mode)

    axes = {"x": {2: "h", 3: "w"}}
    program = exported(padded, plugrad.randn(1, 2, 4, 4), dynamic_axes=axes)
    compare(program, padded, plugrad.randn(1, 2, 5, 7))


def test_dynamic_images_of_a_convolution() -> None:
    model = Named(nn.Sequential(nn.Conv2d(2, 3, 3, 2, 1), nn.ReLU(), nn.Flatten(2))).eval()
    program = exported(model, plugrad.randn(1, 2, 20, 16), dynamic_axes={"x": {2: "h", 3: "w"}})
    for h, w in ((16, 16), (21, 30)):
        compare(program, model, plugrad.randn(1, 2, h, w))


def test_a_table_of_positions_may_end_at_the_size_of_the_example() -> None:
    table = nn.Embedding(16, 4)

    def positions(x: Tensor) -> Tensor:
        return x + table(plugrad.arange(x.shape[1]))

    program = exported(positions, plugrad.randn(2, 16, 4), dynamic_axes={"x": {1: "time"}})
    compare(program, positions, plugrad.randn(2, 9, 4))


def test_masks_are_made_of_sizes() -> None:
    def causal(x: Tensor) -> Tensor:
        size = x.shape[-1]
        mask = plugrad.ones(size, size, dtype=plugrad.bool).tril()
        return x.masked_fill(~mask, -1.0)

    program = exported(causal, plugrad.randn(2, 4, 4), dynamic_axes={"x": {1: "n", 2: "n"}})
    compare(program, causal, plugrad.randn(2, 6, 6))


@pytest.mark.parametrize(
    "shapes",
    [
        {"x": {0: "batch"}},
        ({0: "batch"},),
        {"x": ("batch", None)},
    ],
)
def test_dynamic_shapes_are_given_by_argument(shapes: Any) -> None:
    model = Named(nn.Linear(4, 3))
    program = exported(model, plugrad.randn(2, 4), dynamic_shapes=shapes)
    assert shape_of(program.model_proto.graph.input[0]) == ["batch", 4]
    compare(program, model, plugrad.randn(5, 4))


def test_dynamic_shapes_of_nested_arguments() -> None:
    model = nn.LSTMCell(3, 4)
    args = plugrad.randn(2, 3), (plugrad.randn(2, 4), plugrad.randn(2, 4))
    shapes = ({0: "b"}, ({0: "b"}, {0: "b"}))
    program = exported(model, *args, dynamic_shapes=shapes)
    compare(program, model, plugrad.randn(5, 3), (plugrad.randn(5, 4), plugrad.randn(5, 4)))


def test_a_loop_over_a_dynamic_dimension_is_refused() -> None:
    def rows(x: Tensor) -> Tensor:
        return plugrad.stack([row.sum() for row in x])

    with pytest.raises(OnnxExporterError, match=r"another length|other operators"):
        plugrad.onnx.export(rows, (plugrad.ones(2, 3),), **BATCH)


def test_a_branch_on_a_dynamic_size_is_refused() -> None:
    def branch(x: Tensor) -> Tensor:
        return x.sin() if x.shape[0] > 4 else x.cos()

    with pytest.raises(OnnxExporterError, match=r"first at plugrad::(sin|cos) .*a branch depends"):
        plugrad.onnx.export(branch, (plugrad.ones(2, 3),), **BATCH)


def test_a_number_that_is_no_polynomial_is_refused_with_its_operator() -> None:
    def half(x: Tensor) -> Tensor:
        return x[: x.shape[0] // 2]

    with pytest.raises(OnnxExporterError, match=r"plugrad::slice.Tensor: a number is \(1, 2, 5\)"):
        plugrad.onnx.export(half, (plugrad.ones(2, 3),), **BATCH)


def test_a_float_of_a_dynamic_size_is_refused() -> None:
    with pytest.raises(OnnxExporterError, match=r"plugrad::mul.Scalar has the number"):
        plugrad.onnx.export(lambda x: x * (1 / x.shape[0]), (plugrad.ones(2),), **BATCH)


def test_a_constant_of_a_dynamic_size_is_refused() -> None:
    def numbered(x: Tensor) -> Tensor:
        return x + plugrad.tensor([float(n) for n in range(x.shape[0])])

    with pytest.raises(OnnxExporterError, match="another constant if a dynamic size"):
        plugrad.onnx.export(numbered, (plugrad.ones(2),), **BATCH)


def test_a_model_that_fails_at_another_size_is_refused() -> None:
    with pytest.raises(OnnxExporterError, match=r"the model fails where .*'width': 9"):
        plugrad.onnx.export(
            Named(nn.Linear(4, 3)), (plugrad.ones(2, 4),), dynamic_axes={"x": {1: "width"}}
        )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dynamic_axes": {"x": {5: "b"}}}, "has 2 dimensions"),
        ({"dynamic_axes": {"x": {0: "b", 1: "b"}}}, r"'b' is 2 in dimension 0 of 'x', but 4"),
        ({"dynamic_axes": {"y": {0: "b"}}}, r"dynamic_axes has 'y', expected names of inputs.* x"),
        ({"dynamic_shapes": {"y": {0: "b"}}}, "dynamic_shapes has 'y', expected names"),
        ({"dynamic_shapes": ({}, {})}, "2 entries for 1 arguments"),
        ({"dynamic_shapes": {"x": {}}, "dynamic_axes": {"x": [0]}}, "not both"),
    ],
)
def test_descriptions_that_are_wrong(options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        plugrad.onnx.export(Named(nn.Linear(4, 3)), (plugrad.ones(2, 4),), **options)


def test_operators_that_become_single_nodes() -> None:
    def called(layer: Any, *shape: int, **options: Any) -> set[str]:
        return set(operators(exported(Named(layer).eval(), plugrad.randn(*shape), **options)))

    assert called(nn.Linear(4, 3), 2, 4) == {"Gemm"}
    assert called(nn.LayerNorm(4), 2, 4) == {"LayerNormalization"}
    assert called(nn.GELU(), 2, 4, opset_version=20) == {"Gelu"}
    assert called(nn.Softmax(1), 2, 4) == {"Softmax"}
    assert called(nn.Conv2d(2, 3, 3, padding=1), 1, 2, 4, 4) == {"Conv"}
    assert called(nn.BatchNorm1d(3), 2, 3) == {"BatchNormalization"}
    assert called(nn.ReflectionPad1d(1), 2, 3) == {"Pad"}
    assert {"LSTM"} < called(nn.LSTM(3, 4), 2, 2, 3)
