"""Lowerings of operators from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import plugrad
from plugrad import Tensor
from plugrad.library import custom_op
from plugrad.onnx import Builder, UnsupportedOperatorError, Value, register_lowering
from plugrad_onnx.onnx import registry
from tests.onnx.exported import agrees, compare, exported, operators


@custom_op("onnx_tests::scaled", mutates_args=())
def scaled(x: Tensor, factor: float, shift: int = 1) -> Tensor:
    return plugrad.from_numpy(x.numpy() * factor + shift)


@custom_op("onnx_tests::halves", mutates_args=())
def halves(x: Tensor) -> tuple[Tensor, Tensor]:
    count = x.shape[0] // 2
    return x[:count].clone(), x[count:].clone()


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = dict(registry._LOWERINGS)
    yield
    registry._LOWERINGS.clear()
    registry._LOWERINGS.update(before)


def lower_scaled(b: Builder, x: Value, factor: float, shift: int = 1) -> Value:
    product: Value = b.op("Mul", x, b.number(factor, x.dtype))
    found: Value = b.op("Add", product, b.number(shift, x.dtype))
    return found


@pytest.mark.parametrize(
    "operator",
    [
        scaled,
        plugrad.ops.onnx_tests.scaled,
        plugrad.ops.onnx_tests.scaled.default,
        "onnx_tests::scaled",
    ],
)
def test_a_custom_operator(operator: Any) -> None:
    assert register_lowering(operator, lower_scaled) is None
    program = agrees(lambda x: scaled(x, 2.5).relu(), plugrad.randn(3))
    assert operators(program) == ["Mul", "Add", "Relu"]


def test_without_a_lowering_the_error_says_how_to_add_one() -> None:
    with pytest.raises(
        UnsupportedOperatorError,
        match=r"operator onnx_tests::scaled.*plugrad.onnx.register_lowering adds one",
    ):
        plugrad.onnx.export(lambda x: scaled(x, 2.0), (plugrad.ones(2),))


def test_several_results_and_dynamic_sizes() -> None:
    def lower(b: Builder, x: Value) -> tuple[Value, ...]:
        sizes = b.integers([shape[0] for shape in b.shapes])
        return tuple(b.op("Split", x, sizes, outputs=2, axis=0))

    def model(x: Tensor) -> Any:
        return halves(plugrad.cat([x, x]))

    register_lowering(halves, lower)
    program = exported(model, plugrad.randn(2, 3), dynamic_axes={"x": {0: "n"}})
    compare(program, model, plugrad.randn(5, 3))


def test_the_former_lowering_of_an_operator_of_plugrad_is_given_back() -> None:
    def lower(b: Builder, x: Value) -> Value:
        found: Value = b.op("HardSwish", x)
        return found

    before = register_lowering("plugrad::silu", lower)
    assert operators(plugrad.onnx.export(plugrad.nn.SiLU(), (plugrad.ones(2),))) == ["HardSwish"]
    assert before is not None
    register_lowering("plugrad::silu", before)
    assert operators(exported(plugrad.nn.SiLU(), plugrad.ones(2))) == ["Sigmoid", "Mul"]


def test_operators_of_other_domains() -> None:
    register_lowering(
        scaled, lambda b, x, *rest: b.op("Scaled", x, domain="my.domain", factor=rest[0])
    )
    program = plugrad.onnx.export(lambda x: scaled(x, 2.0), (plugrad.ones(2),))
    assert [each.domain for each in program.model_proto.opset_import] == ["", "my.domain"]
    assert program.model_proto.graph.node[0].attribute[0].f == 2.0


@pytest.mark.parametrize(
    ("operator", "function", "words"),
    [
        ("scaled", lower_scaled, "must be an operator or a name such as 'mine::wave'"),
        (3, lower_scaled, "not 3"),
        (scaled, None, "function must be callable, not NoneType"),
    ],
)
def test_registrations_that_are_wrong(operator: Any, function: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        register_lowering(operator, function)


def test_a_lowering_with_too_many_results_is_named() -> None:
    register_lowering(scaled, lambda b, x, *rest: (x, x))
    with pytest.raises(plugrad.onnx.OnnxExporterError, match="gave 2 results, expected 1"):
        plugrad.onnx.export(lambda x: scaled(x, 2.0), (plugrad.ones(2),))
