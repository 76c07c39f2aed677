"""Exports a model, has onnx check the file's rules, and onnxruntime compute it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import onnx

import plugrad
from plugrad.testing.cases import flatten


def exported(model: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The program of a model, which onnx finds right."""
    program = plugrad.onnx.export(model, args, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        onnx.checker.check_model(program.model_proto, full_check=True)
    return program


def compare(program: Any, model: Callable[..., Any], *args: Any, tolerance: float = 1e-4) -> None:
    """Raise if onnxruntime computes something else than the model."""
    found = program(*args)  # first, since the model may write to its arguments
    with plugrad.no_grad():
        expected = [t for t in flatten(model(*args)) if isinstance(t, plugrad.Tensor)]
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        plugrad.testing.assert_close(
            ours, theirs, rtol=tolerance, atol=tolerance / 10, equal_nan=True
        )


def agrees(model: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The program of a model, which computes what the model does."""
    program = exported(model, *args, **options)
    compare(program, model, *args)
    return program


def operators(program: Any) -> list[str]:
    """What the program calls."""
    return [node.op_type for node in program.model_proto.graph.node]
