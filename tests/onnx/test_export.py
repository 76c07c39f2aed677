"""Arguments of `export`, names in the model, files, dtypes, errors."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import plugrad
from plugrad import Tensor, nn
from plugrad.onnx import OnnxExporterError, UnsupportedOperatorError
from tests.onnx.exported import agrees, compare, exported, operators


def names(program: Any) -> dict[str, list[str]]:
    graph = program.model_proto.graph
    return {
        "inputs": [each.name for each in graph.input],
        "outputs": [each.name for each in graph.output],
        "initializers": [each.name for each in graph.initializer],
        "nodes": [each.name for each in graph.node],
    }


class Two(nn.Module):
    """Two inputs, one of them nested and by name, two results."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.second = nn.Sequential(nn.Linear(4, 2), nn.ReLU())

    def forward(self, left: Tensor, *, more: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        hidden = self.first(left) + more["a"] * more["b"]
        return self.second(hidden), hidden


MORE = {"b": plugrad.randn(2, 4), "a": plugrad.randn(4)}


def test_names_are_those_of_arguments_parameters_and_modules() -> None:
    program = exported(Two(), plugrad.randn(2, 3), kwargs={"more": MORE})
    assert names(program) == {
        "inputs": ["left", "more_a", "more_b"],
        "outputs": ["output_0", "output_1"],
        "initializers": ["first.weight", "first.bias", "second.0.weight", "second.0.bias"],
        "nodes": ["/first/Gemm", "/Mul", "/Add", "/second/0/Gemm", "/second/1/Relu"],
    }


def test_given_names_come_first() -> None:
    program = exported(
        Two(),
        plugrad.randn(2, 3),
        kwargs={"more": MORE},
        input_names=["x", "y"],
        output_names=["scores"],
    )
    assert names(program)["inputs"] == ["x", "y", "more_b"]
    assert names(program)["outputs"] == ["scores", "output_1"]


def test_parameters_make_way_for_given_names() -> None:
    program = exported(nn.Linear(3, 4), plugrad.randn(2, 3), output_names=["weight"])
    assert names(program)["outputs"] == ["weight"]
    assert names(program)["initializers"] == ["weight_1", "bias"]


def test_gradients_are_results_and_not_set() -> None:
    def gradient(x: Tensor) -> Tensor:
        with plugrad.enable_grad():
            y = x.detach().requires_grad_()
            return plugrad.autograd.grad((y.sin() * y).sum(), y)[0]

    agrees(gradient, plugrad.randn(3))
    weight = plugrad.ones(3, requires_grad=True)

    def backward(x: Tensor) -> Tensor:
        with plugrad.enable_grad():
            (x * weight).sum().backward()
        return x

    with pytest.raises(OnnxExporterError, match="sets gradients"):
        plugrad.onnx.export(backward, (plugrad.ones(3),))


def test_keyword_arguments_are_inputs() -> None:
    model = Two()
    left = plugrad.randn(2, 3)
    program = exported(model, left, kwargs={"more": MORE})
    found = program(left, more_a=MORE["a"], more_b=MORE["b"])
    for ours, theirs in zip(found, model(left, more=MORE), strict=True):
        plugrad.testing.assert_close(ours, theirs.detach(), rtol=1e-4, atol=1e-5)
    with pytest.raises(TypeError, match=r"expected 3 tensors, .* more_a, more_b, got 1"):
        program(left)


def test_parameters_may_be_inputs() -> None:
    program = exported(nn.Linear(3, 2), plugrad.randn(1, 3), export_params=False)
    assert names(program)["inputs"] == ["input", "weight", "bias"]
    assert names(program)["initializers"] == []


def test_shared_parameters_are_there_once() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
    model[2].weight = model[0].weight
    assert names(agrees(model, plugrad.randn(2, 3)))["initializers"] == [
        "0.weight",
        "0.bias",
        "2.bias",
    ]


def test_results_that_are_inputs_parameters_or_the_same() -> None:
    weight = plugrad.randn(3)

    def model(x: Tensor) -> tuple[Tensor, ...]:
        y = x + weight
        return x, weight, y, y

    agrees(model, plugrad.randn(3))


def test_the_graph_holds_no_more_than_the_results_need() -> None:
    def model(x: Tensor) -> Tensor:
        x.exp()
        return x.sin()

    assert operators(exported(model, plugrad.randn(3))) == ["Sin"]


@pytest.mark.parametrize("external", [False, True])
def test_files(tmp_path: Path, external: bool) -> None:
    model = nn.Linear(64, 64)
    x = plugrad.randn(2, 64)
    path = tmp_path / "model.onnx"
    program = plugrad.onnx.export(model, (x,), path, external_data=external)
    program.save(path, external_data=external)  # again: nothing of the first file is left
    assert sorted(each.name for each in tmp_path.iterdir()) == (
        ["model.onnx", "model.onnx.data"] if external else ["model.onnx"]
    )
    if external:
        assert (tmp_path / "model.onnx.data").stat().st_size < 4 * 64 * 66 + 8192
    onnx.checker.check_model(str(path))
    (found,) = ReferenceEvaluator(onnx.load(path)).run(None, {"input": x.numpy()})
    np.testing.assert_allclose(found, model(x).detach().numpy(), rtol=1e-4, atol=1e-5)
    compare(program, model, x)


def test_what_is_too_large_for_one_file_goes_to_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plugrad_onnx.onnx.program.LARGEST", 10_000)
    model, x = nn.Linear(64, 64), plugrad.randn(2, 64)
    program = exported(model, x)
    program.save(tmp_path / "model.onnx")
    assert len(list(tmp_path.iterdir())) == 2
    compare(program, model, x)


def test_the_model_keeps_its_mode_hooks_and_layers() -> None:
    model = nn.Sequential(nn.LSTM(3, 4)).train()
    exported(model, plugrad.randn(2, 1, 3))
    assert model.training
    assert "forward" not in vars(model[0])
    assert not model[0]._forward_pre_hooks
    assert not model[0]._forward_hooks
    with pytest.raises(RuntimeError, match="must be equal to input_size"):
        exported(model, plugrad.randn(2, 1, 5))
    assert "forward" not in vars(model[0])


def test_a_model_knows_that_it_is_exported() -> None:
    def model(x: Tensor) -> Tensor:
        return x.cos() if plugrad.onnx.is_in_onnx_export() else x.sin()

    assert operators(exported(model, plugrad.ones(2))) == ["Cos"]
    assert not plugrad.onnx.is_in_onnx_export()


@pytest.mark.parametrize("opset", [18, 19, 20, 21, 22, 23])
def test_opsets(opset: int) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.RMSNorm(4)
            self.gelu = nn.GELU()

        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.scaled_dot_product_attention(x, self.norm(x), self.gelu(x))

    program = agrees(Model(), plugrad.randn(1, 2, 3, 4), opset_version=opset)
    assert program.model_proto.opset_import[0].version == opset
    assert ("Gelu" in operators(program)) == (opset >= 20)
    assert ("Attention" in operators(program)) == (opset >= 23)
    assert ("RMSNormalization" in operators(program)) == (opset >= 23)


def test_verbose_prints_the_graph(capsys: pytest.CaptureFixture[str]) -> None:
    exported(nn.ReLU(), plugrad.ones(2), verbose=True)
    assert "Relu" in capsys.readouterr().out


@pytest.mark.parametrize(
    "dtype",
    ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"],
)
def test_dtypes(dtype: str) -> None:
    def model(x: Tensor, y: Tensor) -> Any:
        z = x + y
        return z, x * 2, z.sum(), x > y, plugrad.where(x > y, x, y), x.float(), x.view(-1)[1:]

    kind = getattr(plugrad, dtype)
    x, y = (plugrad.randint(0, 5, (2, 3)).to(kind) for _ in range(2))
    agrees(model, x, y)


def test_bfloat16_is_exported() -> None:
    model = nn.Linear(3, 2).bfloat16()
    program = exported(model, plugrad.ones(1, 3, dtype=plugrad.bfloat16))
    graph = program.model_proto.graph
    assert {each.data_type for each in graph.initializer} == {onnx.TensorProto.BFLOAT16}
    assert graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16


def test_without_onnxruntime_onnxs_own_evaluator_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # importing it fails
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.GELU(), nn.Flatten(), nn.Linear(8, 3)).eval()
    program = agrees(model, plugrad.randn(2, 1, 4, 4))
    assert isinstance(program._session, ReferenceEvaluator)


def test_arguments_are_those_of_pytorch(torch_oracle: ModuleType) -> None:
    theirs = list(inspect.signature(torch_oracle.onnx.export).parameters)
    for name in theirs:
        if name not in ("model", "args", "f"):
            given = {"custom_translation_table": None, "external_data": False}.get(name)
            defaults = {"export_params": True}
            value = defaults.get(name, given)
            plugrad.onnx.export(nn.ReLU(), (plugrad.ones(2),), **{name: value})


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"opset_version": 17}, ValueError, r"an int from 18 to \d+, .* got 17"),
        ({"opset_version": "18"}, ValueError, "got '18'"),
        ({"input_names": ["a", "b"]}, ValueError, "2 names, but the arguments have 1"),
        ({"output_names": ["a", "b"]}, ValueError, "2 names, but the model returns 1"),
        ({"input_names": ["a"], "output_names": ["a"]}, ValueError, "'a' is given twice"),
        ({"names": ["a"]}, TypeError, "unexpected keyword argument 'names'"),
        ({"custom_translation_table": {1: 2}}, TypeError, "register_lowering"),
    ],
)
def test_arguments_that_are_wrong(options: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        plugrad.onnx.export(nn.ReLU(), (plugrad.ones(2),), **options)


def test_a_model_must_be_callable() -> None:
    with pytest.raises(TypeError, match="must be a module or function, not int"):
        plugrad.onnx.export(3, ())  # type: ignore[arg-type]  # what is tested


def value(x: Tensor) -> Tensor:
    return x.sin() if x.sum().item() > 0 else x


def chosen(x: Tensor) -> Tensor:
    return x[x > 0]


def inverted(x: Tensor) -> Tensor:
    return plugrad.linalg.inv(x)


def transformed(x: Tensor) -> Tensor:
    return plugrad.fft.fft(x).abs()


def hot(x: Tensor) -> Tensor:
    return nn.functional.one_hot(x.long())


@pytest.mark.parametrize(
    ("model", "kind", "words"),
    [
        (
            value,
            OnnxExporterError,
            r"export\(\): the value of sum is read, at .*test_export.py",
        ),
        (chosen, OnnxExporterError, r"plugrad::index.Tensor: is asked for .*test_export.py"),
        (inverted, UnsupportedOperatorError, "no lowering for the operator plugrad::.*inv"),
        (transformed, OnnxExporterError, r"plugrad::_fft_r2c: values of plugrad.complex64 cannot"),
        (hot, OnnxExporterError, "plugrad::one_hot: .*give num_classes"),
        (lambda x: 3, OnnxExporterError, "the model returns no tensor"),
    ],
)
def test_models_that_cannot_be_exported(
    model: Callable[[Tensor], Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        plugrad.onnx.export(model, (plugrad.eye(3),))


def test_complex_inputs_are_refused_by_name() -> None:
    with pytest.raises(OnnxExporterError, match=r"the input 'x': values of plugrad\.complex64"):
        plugrad.onnx.export(lambda x: x.real, (plugrad.ones(2, dtype=plugrad.complex64),))
