"""Recurrent layers and padding as one operator each, which become single ONNX nodes.

They normally run as several operators, in a recurrent layer once for each step of the example's
sequence. During an export they call `plugrad_onnx::recurrent` and `plugrad_onnx::pad` instead.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import plugrad
from plugrad.library import Library
from plugrad.overrides import PlugradFunctionMode

LIBRARY = Library("plugrad_onnx", "DEF")
LIBRARY.define(
    "recurrent(Tensor input, Tensor[] states, Tensor[] weights, str mode, int hidden_size, "
    "int num_layers, bool bias, bool batch_first, bool bidirectional, int layer) -> Tensor[]"
)
LIBRARY.define("pad(Tensor input, int[] pad, str mode, Scalar value) -> Tensor")


class _Layers(threading.local):
    """The recurrent layers of the model that a thread exports, and their own `forward`."""

    def __init__(self) -> None:
        self.found: list[tuple[Any, Callable[..., Any]]] = []


_LAYERS = _Layers()


def _run(input: Any, states: Any, weights: Any, mode: str, *settings: Any) -> tuple[Any, ...]:
    _, forward = _LAYERS.found[settings[-1]]
    given = None if not states else tuple(states) if mode == "LSTM" else states[0]
    output, last = forward(input, given)
    return (output, *last) if mode == "LSTM" else (output, last)


def _pad(input: Any, pad: Any, mode: str, value: Any) -> Any:
    fill = {"value": value} if mode == "constant" else {}
    return plugrad.nn.functional.pad(input, pad, mode, **fill)


LIBRARY.impl("recurrent", _run, "CompositeImplicitAutograd")
LIBRARY.impl("pad", _pad, "CompositeImplicitAutograd")


class _WholePadding(PlugradFunctionMode):
    """A block in which `pad` calls a single operator."""

    def __plugrad_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is plugrad.nn.functional.pad:
            return self.padded(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))

    def padded(self, input: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
        adds = any(width > 0 for width in pad) and (mode == "constant" or min(pad) >= 0)
        if not adds or mode not in ("constant", "reflect", "replicate", "circular"):
            return plugrad.nn.functional.pad(input, pad, mode, value)
        fill = 0.0 if value is None else value
        return plugrad.ops.plugrad_onnx.pad.default(input, list(pad), mode, fill)


def _whole(number: int) -> Callable[..., Any]:
    """The replacement for a layer's `forward`."""
    layer, forward = _LAYERS.found[number]

    def call(input: Any, hx: Any = None) -> Any:
        plain = isinstance(input, plugrad.Tensor) and input.ndim == 3 and input.is_floating_point()
        if not plain or layer.proj_size or (layer.training and layer.dropout):
            return forward(input, hx)
        states = [] if hx is None else list(hx) if layer.mode == "LSTM" else [hx]
        weights = [weight for group in layer.all_weights for weight in group]
        run = plugrad.ops.plugrad_onnx.recurrent.default
        output, *last = run(
            input, states, weights, layer.mode, layer.hidden_size, layer.num_layers, layer.bias,
            layer.batch_first, layer.bidirectional, number,
        )  # fmt: skip
        return output, tuple(last) if layer.mode == "LSTM" else last[0]

    return call


@contextmanager
def whole_layers(model: Any) -> Iterator[None]:
    """A block in which each recurrent layer of a model, and each padding, calls a single
    operator."""
    modules = model.modules() if isinstance(model, plugrad.nn.Module) else ()
    layers = [each for each in modules if isinstance(each, plugrad.nn.RNNBase)]
    _LAYERS.found = [(each, each.forward) for each in layers]
    with _WholePadding(), ExitStack() as stack:
        stack.callback(_LAYERS.found.clear)
        for number, layer in enumerate(layers):
            if "forward" not in vars(layer) and type(layer).forward in _FORWARDS:
                object.__setattr__(layer, "forward", _whole(number))
                stack.callback(object.__delattr__, layer, "forward")
        yield


# A subclass with its own `forward` is exported operator by operator.
_FORWARDS = tuple(
    kind.forward for kind in (plugrad.nn.RNNBase, plugrad.nn.RNN, plugrad.nn.LSTM, plugrad.nn.GRU)
)
