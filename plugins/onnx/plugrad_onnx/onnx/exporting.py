"""`export`: a model, captured once or at several sizes, becomes an ONNX model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any

import onnx

import plugrad
from plugrad.transforms.capture import CaptureError
from plugrad.transforms.capture.trees import flatten, unflatten
from plugrad_onnx.onnx.dynamic import dynamic_sizes, resized
from plugrad_onnx.onnx.errors import OnnxExporterError
from plugrad_onnx.onnx.program import ONNXProgram
from plugrad_onnx.onnx.recording import record
from plugrad_onnx.onnx.sizes import Symbols
from plugrad_onnx.onnx.translation import Translation

OLDEST, DEFAULT = 18, 18


def export(
    model: Callable[..., Any],
    args: tuple[Any, ...] = (),
    f: str | PathLike[str] | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamic_axes: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    export_params: bool = True,
    verbose: bool | None = None,
    external_data: bool | None = None,
    **others: Any,
) -> ONNXProgram:
    """Make an ONNX model of a module or function, and write it to a file.

    The model runs with the example arguments, in its current mode and with grad off; call
    `model.eval()` first. Its operators become ONNX nodes. Parameters and buffers become
    initializers with their names from the state dict. See docs/onnx.md.

    Args:
        model: a module, or a function of tensors.
        args: examples of the positional arguments. Tensors, at any depth of lists, tuples and
            dicts, become inputs; anything else becomes a constant.
        f: the path of the file; None writes no file.
        kwargs: examples of the keyword arguments.
        input_names, output_names: names of the tensors, in order. By default inputs are named after
            the arguments, and results "output", or "output_0", ....
        opset_version: the version of ONNX's operators, 18 or newer. Newer versions have single
            nodes for gelu (20), attention and rms_norm (23).
        dynamic_axes: dimensions that may have other sizes later, by names of inputs:
            `{"x": {0: "batch"}}` or `{"x": [0]}`.
        dynamic_shapes: the same by arguments: `{"x": {0: "batch"}}` by name, or a tuple in their
            order.
        export_params: False makes parameters and buffers inputs of the graph.
        verbose: print the graph.
        external_data: put parameters into a file beside `f`; by default from 2 GB on.
        others: further arguments of `torch.onnx.export`, which have no effect here.

    Raises:
        OnnxExporterError: an operator cannot be exported, or the model does something that a graph
            cannot express, such as reading a tensor's value. The message says what, where, and how
            to fix it.

    >>> import plugrad
    >>> from plugrad import nn
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).eval()
    >>> x = plugrad.ones(3, 4)
    >>> program = plugrad.onnx.export(
    ...     model, (x,), input_names=["x"], dynamic_axes={"x": {0: "batch"}}
    ... )
    >>> [node.op_type for node in program.model_proto.graph.node]
    ['Gemm', 'Relu', 'Gemm']
    """
    _check_others(others)
    opset = _opset(opset_version)
    if isinstance(args, plugrad.Tensor):
        args = (args,)
    if not callable(model):
        raise TypeError(f"export(): model must be a module or function, not {type(model).__name__}")
    named = [*(input_names or ()), *(output_names or ())]
    if len(set(named)) < len(named):
        twice = next(name for name in named if named.count(name) > 1)
        raise ValueError(f"export(): the name {twice!r} is given twice")
    given = dict(kwargs or {})
    leaves, tree = flatten((tuple(args), given), sort=True)
    names = _input_names(model, tuple(args), given, input_names)
    tensors = [n for n, leaf in enumerate(leaves) if isinstance(leaf, plugrad.Tensor)]
    axes, sizes = dynamic_sizes(
        _forward(model), tuple(args), given, names, dynamic_axes, dynamic_shapes
    )
    symbols = Symbols.of(sizes)
    graphs = []
    places = None
    for row in symbols.rows:
        values = dict(zip(symbols.names, row, strict=True))
        changed = list(leaves)
        same: dict[Any, Any] = {}  # a tensor that is given twice becomes one input
        for place, dimensions in zip(tensors, axes, strict=True):
            key = (id(leaves[place]), tuple(dimensions.items()))
            if key not in same:
                same[key] = resized(leaves[place], dimensions, values)
            changed[place] = same[key]
        these, those = unflatten(tree, changed)
        try:
            graph, where = record(model, these, those)
        except CaptureError as error:
            said = str(error).removeprefix("capture(): ")
            raise OnnxExporterError(f"export(): {said}") from error
        except Exception as error:
            if values == sizes or not values:
                raise
            raise OnnxExporterError(
                f"export(): the model fails where the dynamic sizes are {values}: "
                f"{type(error).__name__}: {error}; leave dimensions out of dynamic_axes or "
                "dynamic_shapes that cannot be other than in the example"
            ) from error
        places = places or where
        graphs.append(graph)
    assert places is not None  # there is at least one row
    _check_mutations(graphs[0], model)
    translation = Translation(graphs, places, symbols, opset, _stored(model))
    translation.run(names, output_names)
    proto = translation.model(type(model).__name__, export_params)
    program = ONNXProgram(proto)
    if verbose:
        print(onnx.printer.to_text(proto))
    if f is not None:
        program.save(f, external_data=external_data)
    return program


# Arguments of torch.onnx.export that select or tune its exporters.
_IGNORED = frozenset(
    [
        *("autograd_inlining", "custom_opsets", "do_constant_folding", "dump_exported_program"),
        *("dynamo", "export_modules_as_functions", "fallback", "keep_initializers_as_inputs"),
        *("operator_export_type", "optimize", "profile", "report", "training", "verify"),
        *("artifacts_dir",),
    ]
)


def _check_others(others: Mapping[str, Any]) -> None:
    for name, value in others.items():
        if name == "custom_translation_table" and not value:
            continue
        if name == "custom_translation_table":
            raise TypeError(
                "export(): custom_translation_table is made of onnxscript's functions; say how an "
                "operator is lowered with plugrad.onnx.register_lowering"
            )
        if name not in _IGNORED:
            raise TypeError(f"export() got an unexpected keyword argument {name!r}")


def _opset(version: int | None) -> int:
    newest: int = onnx.defs.onnx_opset_version()
    if version is None:
        return DEFAULT
    if type(version) is not int or not OLDEST <= version <= newest:
        raise ValueError(
            f"export(): opset_version must be an int from {OLDEST} to {newest}, the newest that "
            f"the installed onnx {onnx.__version__} knows, got {version!r}"
        )
    return version


def _stored(model: Any) -> dict[int, str]:
    """The names of a model's parameters and buffers in its state dict."""
    found: dict[int, str] = {}
    for named in ("named_parameters", "named_buffers"):
        if hasattr(model, named):
            for name, tensor in getattr(model, named)():
                found.setdefault(id(tensor), name)
    return found


def _check_mutations(graph: Any, model: Any) -> None:
    stored = _stored(model)
    written = [name for name in graph.mutations if name in graph.held]
    names = [stored.get(id(graph.held[name].value), "") for name in written]
    if graph.gradients:
        raise OnnxExporterError(
            "export(): the model sets gradients of tensors, which an ONNX graph cannot do: return "
            "them as results, by plugrad.autograd.grad"
        )
    if names:
        said = ", ".join(repr(name) for name in names if name) or "a tensor from outside of it"
        raise OnnxExporterError(
            f"export(): the model writes to {said}, which an ONNX graph cannot keep: call "
            "model.eval() before the export, or return the new values as results"
        )


def _forward(model: Any) -> Any:
    return model.forward if isinstance(model, plugrad.nn.Module) else model


def _input_names(
    model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], given: Sequence[str] | None
) -> list[str]:
    """A name for each tensor: the argument's name, plus indices or keys where it is nested."""
    try:
        parameters = list(inspect.signature(_forward(model)).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names: list[str] = []
    for place, arg in enumerate(args):
        stem = f"input_{place}"
        if place < len(parameters) and parameters[place].kind in (
            inspect.Parameter.POSITIONAL_ONLY,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
        ):
            stem = parameters[place].name
        names += _nested_names(stem, arg)
    for key in sorted(kwargs):
        names += _nested_names(key, kwargs[key])
    if given is not None:
        if len(given) > len(names):
            raise ValueError(
                f"export(): input_names has {len(given)} names, but the arguments have "
                f"{len(names)} tensors"
            )
        names[: len(given)] = given
    return names


def _nested_names(stem: str, value: Any) -> list[str]:
    if isinstance(value, plugrad.Tensor):
        return [stem]
    if isinstance(value, dict):
        return [
            n for key in sorted(value, key=str) for n in _nested_names(f"{stem}_{key}", value[key])
        ]
    if isinstance(value, (list, tuple)):
        return [
            n for place, each in enumerate(value) for n in _nested_names(f"{stem}_{place}", each)
        ]
    return []
