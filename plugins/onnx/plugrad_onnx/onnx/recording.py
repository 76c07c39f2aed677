"""Captures a model for the export: operators with a lowering stay whole, others are decomposed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import plugrad
from plugrad.transforms.capture import Graph
from plugrad.transforms.capture.capturing import capture_with
from plugrad.transforms.capture.errors import user_line
from plugrad.transforms.capture.recorder import Recorder
from plugrad_onnx.onnx.layers import whole_layers
from plugrad_onnx.onnx.registry import functional_of, lowering_of
from plugrad_onnx.onnx.state import exporting


class Places:
    """Where each node was called: the module by its path, and the line of the user's program."""

    def __init__(self) -> None:
        self.path = ""
        self.modules: dict[str, str] = {}
        self.lines: dict[str, str] = {}

    def note(self, node: str) -> None:
        self.modules[node] = self.path
        self.lines[node] = user_line()

    def __call__(self, node: str) -> str:
        """The place as text for a message; "" if it is unknown."""
        module, line = self.modules.get(node, ""), self.lines.get(node, "")
        words = [f"in the module {module!r}"] if module else []
        words += [f"at {line}"] if line else []
        return ", ".join(words)


class ExportRecorder(Recorder):
    """Records an operator itself if it has a lowering, else the operators that it decomposes
    into."""

    def __init__(self, inputs: list[Any], kwargs: dict[str, Any], places: Places) -> None:
        super().__init__(inputs, kwargs)
        self.places = places

    def _composite(self, kind: str, op: Any, keyset: int, args: tuple[object, ...]) -> Any:
        if lowering_of(op) is not None:
            return super()._whole(kind, op, keyset, args)
        return super()._composite(kind, op, keyset, args)

    def _whole(self, kind: str, op: Any, keyset: int, args: tuple[object, ...]) -> Any:
        kinds = {argument.type.base for argument in op.schema.arguments}
        if lowering_of(op) is None and "Generator" not in kinds:
            functional = functional_of(op)
            parts = _decomposition(op)
            if functional is not None and lowering_of(functional) is None:
                # In place: compute the result by parts, then copy it.
                plugrad.ops.plugrad.copy_.default.op.call((args[0], functional.call(args), False))
                return args[0]
            if functional is None and parts is not None:
                if "Tensor" not in kinds:
                    return parts(keyset, *args)  # a constant, such as a window
                return self._by_parts(op, args, partial(parts, keyset, *args))
        return super()._whole(kind, op, keyset, args)

    def read(self, tensor: Any) -> None:
        """An operator may read values that are the same in every run."""
        name = self._names.get(id(tensor))
        if not (self._frames and (name is None or not self._is_tainted(name))):
            super().read(tensor)

    def append(self, op: Any, refs: tuple[Any, ...], args: Any, result: Any) -> None:
        super().append(op, refs, args, result)
        self.places.note(self.nodes[-1].name)


def _decomposition(op: Any) -> Any:
    """The function that computes an operator by calling others, or None."""
    for key in op.registered_keys():
        if key.name == "CompositeExplicitAutograd":
            return op.kernel_for(key)
    return None


def record(
    model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Graph, Places]:
    """The graph of a model in its current mode, with grad off, and where its nodes were called."""
    places = Places()

    def recorder(inputs: list[Any], given: dict[str, Any]) -> ExportRecorder:
        return ExportRecorder(inputs, given, places)

    with plugrad.no_grad(), exporting(), _paths(model, places), whole_layers(model):
        return capture_with(recorder, model, args, kwargs), places


@contextmanager
def _paths(model: Any, places: Places) -> Iterator[None]:
    """Records in the places which module of a model runs."""
    outer: list[str] = []

    def enter(path: str) -> Callable[..., None]:
        def hook(module: Any, args: Any) -> None:
            outer.append(places.path)
            places.path = path

        return hook

    def leave(module: Any, args: Any, result: Any) -> None:
        places.path = outer.pop()

    with ExitStack() as stack:
        modules = model.named_modules() if hasattr(model, "named_modules") else ()
        for path, module in modules:
            if path:
                stack.callback(module.register_forward_pre_hook(enter(path)).remove)
                stack.callback(module.register_forward_hook(leave).remove)
        yield
