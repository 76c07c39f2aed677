"""Variations of the tables' samples: other shapes and other layouts of memory."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np

import plugrad
from plugrad.dispatch.operator import find_operator
from plugrad.testing.cases import OpSample, T
from plugrad.testing.conformance.kit.compare import on_host
from plugrad.testing.conformance.kit.derivatives import first
from plugrad.testing.conformance.kit.subject import DeviceArguments, Subject, by_own_kernels
from plugrad.testing.conformance.kit.trials import (
    Selection,
    Trial,
    grouped,
    specs_replaced,
    tensors_of,
    try_out,
)

LAYOUTS: Final = ("transposed", "sliced", "expanded")

# Samples and what they are multiplied with are of the order of 1; a rounding error is 2**-52.
QUOTIENT_OF_ROUNDING: Final = 1e12

# Of one tensor: no dimensions, no elements in various places, dimensions of 1, many elements.
SHAPES: Final[dict[str, tuple[int, ...]]] = {
    "0-dim": (),
    "empty": (0,),
    "empty inside": (2, 0, 3),
    "ones": (1, 1, 1),
    "large": (17, 5, 13),
}

# Of two tensors that are broadcast.
PAIRS: Final[dict[str, tuple[tuple[int, ...], tuple[int, ...]]]] = {
    "row": ((2, 3), (3,)),
    "column and row": ((2, 1), (1, 3)),
    "0-dim first": ((), (2, 3)),
    "0-dim second": ((2, 3), ()),
    "both 0-dim": ((), ()),
    "empty": ((0, 3), (1, 3)),
    "empty by one": ((3, 1), (1, 0)),
    "more dimensions": ((4, 1, 3), (2, 1)),
    "large": ((17, 1, 13), (5, 13)),
}


def variations(subject: Subject, selection: Selection) -> Iterator[Trial]:
    """Trials in other shapes and layouts that the CPU accepts."""
    for group in grouped(selection.trials_on(subject)):
        for trial in _varied(group):
            made = _accepted(trial)
            if made is None or not subject.has(*made.operators):
                continue
            if selection.level != "core" or made.level == "core":
                yield made


def _varied(group: list[Trial]) -> Iterator[Trial]:
    """Candidates, made from the first suitable sample."""
    if group[0].case.op.endswith("_backward"):
        return  # the shapes of their arguments depend on each other, and are not checked
    op = find_operator(group[0].operator)
    if op is not None and any(given.type.base == "Generator" for given in op.schema.arguments):
        return  # backends draw random numbers of their own
    by_layout = next((trial for trial in group if _is_plain(trial, dims=2)), None)
    if by_layout is not None:
        for layout in LAYOUTS:
            if layout == "expanded" and by_layout.case.full_rank:
                continue
            yield _changed(by_layout, layout, _laid_out(by_layout.sample, layout))
    by_shape = next((trial for trial in group if _is_plain(trial, dims=1)), None)
    if by_shape is None:
        return
    tensors = by_shape.tensors()
    if len(tensors) == 1:
        for name, shape in SHAPES.items():
            yield _changed(by_shape, name, _shaped(by_shape.sample, [shape]))
    elif len(tensors) == 2 and op is not None and op.structure.startswith("binary"):
        for name, pair in PAIRS.items():
            yield _changed(by_shape, name, _shaped(by_shape.sample, list(pair)))


def _is_plain(trial: Trial, dims: int) -> bool:
    """Whether a sample's tensors have elements and dimensions that can be varied."""
    tensors = trial.tensors()
    return (
        bool(tensors)
        and (dims > 1 or all(spec.values is None and not spec.unique for spec in tensors))
        and all(0 not in spec.shape for spec in tensors)
        and max(_dims(spec) for spec in tensors) >= dims
    )


def _dims(spec: T) -> int:
    if spec.values is None:
        return len(spec.shape)
    nested, depth = spec.values, 0
    while isinstance(nested, (list, tuple)) and nested:
        nested, depth = nested[0], depth + 1
    return depth


def _laid_out(sample: OpSample, layout: str) -> OpSample:
    return specs_replaced(sample, lambda spec: replace(spec, strides=layout))


def _shaped(sample: OpSample, shapes: list[tuple[int, ...]]) -> OpSample:
    left = list(shapes)
    return specs_replaced(
        sample, lambda spec: replace(spec, shape=left.pop(0), strides="contiguous")
    )


def _changed(trial: Trial, name: str, sample: OpSample) -> Trial:
    label = f"{trial.case.op}-{name.replace(' ', '_')}"
    return replace(trial, sample=sample, label=label)


def _accepted(trial: Trial) -> Trial | None:
    """The trial with its results on the CPU, None if the CPU refuses the call."""
    try:
        return try_out(trial.label, trial.case, trial.sample)
    except Exception:
        return None


def has_gradient(trial: Trial) -> bool:
    """Whether the CPU can compute the gradient of a variation, and so the backend should.

    Equal rows make a matrix singular. Where an operator has no derivative there, its formula
    divides by a rounding error, and each backend has errors of its own.
    """
    if not trial.case.gradient or not trial.has_leaf or "float64" not in trial.case.grad_dtypes:
        return False
    try:
        with by_own_kernels():
            found = first(trial, DeviceArguments("float64", trial.seed(), "cpu"))
    except Exception:
        return False
    return not any(_is_noise(grad) for grad in found if grad is not None)


def _is_noise(grad: Any) -> bool:
    """Whether a gradient has finite elements that only a division by a rounding error gives."""
    sizes = np.abs(on_host(grad))
    return bool(np.any(np.isfinite(sizes) & (sizes > QUOTIENT_OF_ROUNDING)))


def in_place_variants(subject: Subject, selection: Selection) -> Iterator[tuple[Trial, str]]:
    """Trials of functions that are methods in place too, with its name, where the CPU can."""
    for trial in selection.trials_on(subject):
        case = trial.case
        name = case.inplace or f"{case.op.removeprefix('Tensor.')}_"
        if "." in name or not hasattr(plugrad.Tensor, name) or name.startswith("_"):
            continue
        if not trial.sample.args or not isinstance(trial.sample.args[0], T):
            continue
        try:
            with plugrad.no_grad(), by_own_kernels():
                written(trial, name, DeviceArguments("float64", trial.seed(), "cpu"))
        except Exception:
            continue
        yield trial, name


def written(trial: Trial, name: str, made: DeviceArguments) -> tuple[Any, Any, Any]:
    """Run the method in place: the receiver, the result, the other arguments."""
    args = made.make(tuple(trial.sample.args))
    kwargs = made.make(dict(trial.sample.kwargs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = getattr(args[0], name)(*args[1:], **kwargs)
    return args[0], result, (args[1:], kwargs)


def out_variants(subject: Subject, selection: Selection) -> Iterator[Trial]:
    """For each case the first trial with a function that takes `out=`."""
    for group in grouped(selection.trials_on(subject)):
        for trial in group:
            if "." in trial.case.op or "::" in trial.case.op or "out" in trial.sample.kwargs:
                continue
            try:
                with plugrad.no_grad(), by_own_kernels():
                    into(trial, DeviceArguments("float64", trial.seed(), "cpu"))
            except Exception:
                continue
            yield trial
            break


def into(trial: Trial, made: DeviceArguments) -> tuple[Any, Any, Any]:
    """Run a function with `out=`: what was given for it, the result, and the result without it."""
    plain, (args, kwargs) = trial.run(made)
    (expected,) = tensors_of(plain)
    target = plugrad.zeros(tuple(expected.shape), dtype=expected.dtype, device=made.device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = getattr(plugrad, trial.case.op)(*args, **kwargs, out=target)
    return target, result, expected
