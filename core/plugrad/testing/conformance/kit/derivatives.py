"""First and second derivatives of a trial, as the engine computes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import plugrad
from plugrad.testing.cases import resolve
from plugrad.testing.conformance.kit.subject import DeviceArguments, Subject
from plugrad.testing.conformance.kit.trials import Selection, Trial, tensors_of


def differentiable(subject: Subject, selection: Selection, *, twice: bool) -> Iterator[Trial]:
    """The trials with a gradient, in each dtype in which it is defined."""
    for trial in selection.trials_on(subject):
        case = trial.case
        if not case.gradient or not trial.has_leaf or (twice and not case.second):
            continue
        if "float64" in case.grad_dtypes:
            yield trial
        if "complex128" in case.grad_dtypes and subject.complex is not None:
            yield trial.in_dtype(subject.complex)


def first(trial: Trial, made: DeviceArguments) -> list[Any]:
    """The gradients of all leaves, under fixed gradients of the results; None where there is no
    path."""
    return _gradients(trial, made, create_graph=False)[1]


def second(trial: Trial, made: DeviceArguments) -> list[Any]:
    """The gradients of the gradients, with respect to leaves and to the results' gradients."""
    weights, grads = _gradients(trial, made, create_graph=True)
    outputs = [grad for grad in grads if grad is not None and grad.requires_grad]
    if not outputs:
        return []
    inputs = [*made.leaves, *weights]
    seeds = numbers(outputs, trial.seed() + 2, made.device, requires_grad=False)
    found: tuple[Any, ...] = plugrad.autograd.grad(outputs, inputs, seeds, allow_unused=True)
    # No path and a path of zeros are the same; which of the two depends on the decomposition.
    return [
        plugrad.zeros_like(x) if grad is None else grad
        for x, grad in zip(inputs, found, strict=True)
    ]


def _gradients(
    trial: Trial, made: DeviceArguments, *, create_graph: bool
) -> tuple[list[Any], list[Any]]:
    result, _ = trial.run(made)
    outputs = [tensor for tensor in tensors_of(result) if tensor.requires_grad]
    assert outputs, f"{trial.label}: no result requires grad"
    weights = numbers(outputs, trial.seed() + 1, made.device, requires_grad=create_graph)
    grads = plugrad.autograd.grad(
        outputs, made.leaves, weights, allow_unused=True, create_graph=create_graph
    )
    return weights, list(grads)


def numbers(like: list[Any], seed: int, device: Any, *, requires_grad: bool) -> list[Any]:
    """Numbers in [0.5, 1.5), in the shapes and dtypes of tensors."""
    rng = np.random.default_rng(seed)
    made = []
    for tensor in like:
        values = np.asarray(rng.uniform(0.5, 1.5, tuple(tensor.shape)))
        if tensor.dtype.is_complex:
            values = values + 1j * np.asarray(rng.uniform(0.5, 1.5, tuple(tensor.shape)))
        moved = plugrad.from_numpy(np.array(values, dtype=tensor.dtype.numpy)).to(device)
        made.append(moved.requires_grad_(requires_grad))
    return made


def of_leaves(trial: Trial, made: DeviceArguments) -> tuple[Any, list[Any]]:
    """The trial as a function of its leaves alone, as `gradcheck` requires, and the leaves."""
    args = made.make(tuple(trial.sample.args))
    kwargs = made.make(dict(trial.sample.kwargs))
    position = {id(leaf): index for index, leaf in enumerate(made.leaves)}
    function = resolve(trial.case.op)

    def substitute(value: Any, tensors: tuple[Any, ...]) -> Any:
        if id(value) in position:
            return tensors[position[id(value)]]
        if isinstance(value, (list, tuple)):
            return type(value)([substitute(item, tensors) for item in value])
        if isinstance(value, dict):
            return {key: substitute(item, tensors) for key, item in value.items()}
        return value

    def call(*tensors: Any) -> Any:
        result = function(*substitute(args, tensors), **substitute(kwargs, tensors))
        return tuple(tensor for tensor in tensors_of(result) if tensor.requires_grad)

    return call, made.leaves
