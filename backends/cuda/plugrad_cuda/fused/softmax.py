"""Launches softmax, log_softmax and their gradients: one kernel each."""

from __future__ import annotations

import math
from typing import Any, Final

from plugrad_cuda.fused.launching import (
    CPP,
    FLOAT32,
    Array,
    Launcher,
    cpp,
    over_columns,
    over_rows,
)
from plugrad_cuda.fused.runtime import Runtime

# Element types of what goes in and comes out: 16-bit floats may become float32, and its gradient
# 16-bit floats again.
_FORWARD: Final = (*((t, t) for t in CPP.values()), ("half_t", "float"), ("bfloat16_t", "float"))
_BACKWARD: Final = tuple((o, t) for t, o in _FORWARD)


def _names(kernel: str, types: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    return tuple(f"{kernel}<{t}, {o}, {log}>" for t, o in types for log in (0, 1))


EXPRESSIONS: Final = {
    "softmax": (
        *_names("softmax_rows", _FORWARD),
        *_names("softmax_columns", _FORWARD),
        *_names("softmax_backward_rows", _BACKWARD),
        *_names("softmax_backward_columns", _BACKWARD),
    )
}


def _launch(run: Runtime, kernel: str, types: str, arrays: tuple[Array, ...], dim: int) -> None:
    """Along `dim` of arrays of one shape, which has elements."""
    shape = arrays[0].shape or (1,)
    outer, width, inner = math.prod(shape[:dim]), shape[dim], math.prod(shape[dim + 1 :])
    if inner == 1:
        grid, block = over_rows(outer, width)
        run.launch("softmax", f"{kernel}_rows<{types}>", grid, block, (*arrays, outer, width))
    else:
        grid, block = over_columns(outer, inner)
        name = f"{kernel}_columns<{types}>"
        run.launch("softmax", name, grid, block, (*arrays, outer, width, inner))


def _forward(run: Runtime, x: Array, dim: int, half_to_float: bool, log: int) -> Any:
    element = cpp(x)
    if element is None:
        return NotImplemented
    dtype = FLOAT32 if half_to_float else x.dtype
    out = run.xp.empty(x.shape, dtype)
    if x.size:
        types = f"{element}, {CPP[dtype.name]}, {log}"
        _launch(run, "softmax", types, (run.xp.ascontiguousarray(x), out), dim)
    return out


def softmax(run: Runtime, x: Array, dim: int, half_to_float: bool) -> Any:
    """exp(x) / sum(exp(x)) along `dim`; of 16-bit floats in float32 with `half_to_float`."""
    return _forward(run, x, dim, half_to_float, 0)


def log_softmax(run: Runtime, x: Array, dim: int, half_to_float: bool) -> Any:
    """The logarithm of that."""
    return _forward(run, x, dim, half_to_float, 1)


def _backward(
    run: Runtime, grad: Array, output: Array, dim: int, input_dtype: Any, log: int
) -> Any:
    element = cpp(output)
    if element is None or grad.dtype != output.dtype:
        return NotImplemented
    out = run.xp.empty(output.shape, input_dtype)
    result = CPP.get(out.dtype.name)
    if (element, result) not in _BACKWARD:
        return NotImplemented
    if out.size:
        contiguous = run.xp.ascontiguousarray
        arrays = (contiguous(grad), contiguous(output), out)
        _launch(run, "softmax_backward", f"{element}, {result}, {log}", arrays, dim)
    return out


def softmax_backward(run: Runtime, grad: Array, output: Array, dim: int, input_dtype: Any) -> Any:
    """grad * output - output * sum(grad * output), in the dtype of the forward's input."""
    return _backward(run, grad, output, dim, input_dtype, 0)


def log_softmax_backward(
    run: Runtime, grad: Array, output: Array, dim: int, input_dtype: Any
) -> Any:
    """grad - exp(output) * sum(grad), in the dtype of the forward's input."""
    return _backward(run, grad, output, dim, input_dtype, 1)


LAUNCHERS: Final[dict[str, Launcher]] = {
    "_softmax": softmax,
    "_log_softmax": log_softmax,
    "_softmax_backward_data": softmax_backward,
    "_log_softmax_backward_data": log_softmax_backward,
}
