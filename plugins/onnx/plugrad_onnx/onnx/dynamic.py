"""The dynamic dimensions of the inputs, and inputs of other sizes."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import plugrad

# The name of a dynamic size, by axis.
Dimensions = dict[int, str]


def dynamic_sizes(
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    names: Sequence[str],
    dynamic_axes: Mapping[str, Any] | None,
    dynamic_shapes: Any,
) -> tuple[list[Dimensions], dict[str, int]]:
    """The dynamic dimensions of each input, and their sizes in the example.

    Raises:
        ValueError: an input or dimension does not exist, or two dimensions with the same name
            differ.
        TypeError: a description has the wrong type.
    """
    if dynamic_axes and dynamic_shapes:
        raise ValueError("export(): give dynamic_axes or dynamic_shapes, not both")
    tensors = [t for _, t in _tensors((args, {key: kwargs[key] for key in sorted(kwargs)}))]
    if dynamic_shapes is not None:
        found = _by_shapes(function, args, kwargs, names, dynamic_shapes)
    else:
        found = _by_axes(names, dynamic_axes or {})
    sizes: dict[str, int] = {}
    owners: dict[str, str] = {}
    checked: list[Dimensions] = []
    for name, tensor, dimensions in zip(names, tensors, found, strict=True):
        made: Dimensions = {}
        for axis, symbol in dimensions.items():
            if not -tensor.ndim <= axis < tensor.ndim:
                raise ValueError(
                    f"export(): the dimension {axis} of the input {name!r} cannot be dynamic: it "
                    f"has {tensor.ndim} dimensions"
                )
            made[axis % tensor.ndim] = symbol
            size = tensor.shape[axis]
            if sizes.setdefault(symbol, size) != size:
                raise ValueError(
                    f"export(): the dynamic size {symbol!r} is {sizes[symbol]} in "
                    f"{owners[symbol]}, but {size} in dimension {axis} of {name!r}: give "
                    "dimensions that differ names of their own"
                )
            owners.setdefault(symbol, f"dimension {axis} of {name!r}")
            if size == 0:
                raise ValueError(
                    f"export(): the dimension {axis} of the input {name!r} has no elements: give "
                    "an example with some"
                )
        checked.append(made)
    return checked, sizes


def _by_axes(names: Sequence[str], dynamic_axes: Mapping[str, Any]) -> list[Dimensions]:
    unknown = [name for name in dynamic_axes if name not in names]
    if unknown:
        raise ValueError(
            f"export(): dynamic_axes has {unknown[0]!r}, expected names of inputs, which are "
            f"{', '.join(names)}"
        )
    return [_dimensions(name, dynamic_axes.get(name)) for name in names]


def _by_shapes(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], names: Sequence[str], shapes: Any
) -> list[Dimensions]:
    given: list[Any]
    by_name: dict[str, Any] = {}
    if isinstance(shapes, Mapping):
        parameters = list(inspect.signature(function).parameters)
        known = {*parameters[: len(args)], *kwargs}
        unknown = [name for name in shapes if name not in known]
        if unknown:
            raise ValueError(
                f"export(): dynamic_shapes has {unknown[0]!r}, expected names of arguments: "
                f"{', '.join(sorted(known))}"
            )
        given = [shapes.get(name) for name in parameters[: len(args)]]
        by_name = dict(shapes)
    elif isinstance(shapes, (list, tuple)):
        if len(shapes) != len(args):
            raise ValueError(
                f"export(): dynamic_shapes has {len(shapes)} entries for {len(args)} arguments"
            )
        given = list(shapes)
    else:
        raise TypeError(
            f"export(): dynamic_shapes must be a dict or a tuple, not {type(shapes).__name__}"
        )
    pairs = [*zip(args, given, strict=True), *[(kwargs[n], by_name.get(n)) for n in sorted(kwargs)]]
    specs = [spec for arg, shape in pairs for spec in _specs(arg, shape)]
    return [_dimensions(name, spec) for name, spec in zip(names, specs, strict=True)]


def _specs(value: Any, shape: Any) -> list[Any]:
    """The given description of each tensor's shape in an argument."""
    if isinstance(value, plugrad.Tensor):
        return [shape]
    if isinstance(value, dict):
        inner = shape or {}
        return [
            spec for key in sorted(value, key=str) for spec in _specs(value[key], inner.get(key))
        ]
    if isinstance(value, (list, tuple)):
        parts = shape if shape is not None else [None] * len(value)
        return [
            spec for each, part in zip(value, parts, strict=True) for spec in _specs(each, part)
        ]
    return []


def _dimensions(name: str, spec: Any) -> Dimensions:
    """Names by axis, from `{0: "batch"}`, `[0]`, or a tuple with an entry for each dimension."""
    if spec is None:
        return {}
    if isinstance(spec, Mapping):
        pairs = list(spec.items())
    elif isinstance(spec, (list, tuple)) and all(type(axis) is int for axis in spec):
        pairs = [(axis, f"{name}_dim_{axis}") for axis in spec]
    elif isinstance(spec, (list, tuple)):
        pairs = list(enumerate(spec))
    else:
        raise TypeError(
            f"export(): expected the dynamic dimensions of {name!r} as a dict such as "
            f"{{0: 'batch'}} or a list of dimensions, got {spec!r}"
        )
    made: Dimensions = {}
    for axis, symbol in pairs:
        if type(axis) is not int:
            raise TypeError(f"export(): a dimension of {name!r} must be an int, got {axis!r}")
        if symbol is None or type(symbol) is int:
            continue  # a fixed dimension
        named = symbol if isinstance(symbol, str) else getattr(symbol, "__name__", None)
        made[axis] = named or f"{name}_dim_{axis}"
    return made


def _tensors(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, plugrad.Tensor):
        return [("", value)]
    if isinstance(value, dict):
        return [pair for key in sorted(value, key=str) for pair in _tensors(value[key])]
    if isinstance(value, (list, tuple)):
        return [pair for each in value for pair in _tensors(each)]
    return []


def resized(tensor: Any, dimensions: Dimensions, sizes: Mapping[str, int]) -> Any:
    """The tensor with rows repeated or dropped, so that its dynamic dimensions have these sizes."""
    for axis, symbol in dimensions.items():
        size = tensor.shape[axis]
        if sizes[symbol] != size:
            rows = plugrad.arange(sizes[symbol], device=tensor.device) % size
            tensor = tensor.detach().index_select(axis, rows)
    return tensor
