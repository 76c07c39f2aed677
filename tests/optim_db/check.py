"""Runs entries of PyTorch's table of optimizers on plugrad and reports the differences.

For each set of options, and each way to compute that has a flag: some steps with the same
parameters and gradients, then the parameters, the state with its dtypes and shapes, the groups and
the `repr`; for each entry the arguments that have to fail.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import torch

import plugrad
from tests.torch_tables.compare import difference, flat
from tests.torch_tables.findings import Attempt, Finding, call_words
from tests.torch_tables.translate import Samples

STEPS = 4
# By how much the tolerance of float64 is multiplied where something is rounded to float32.
ROUNDED = 1e3
SHAPES = ((3, 4), (4,), (), (2, 2))
MATRICES = ((3, 4), (2, 2))
# Ways to compute an update, by the options that choose them; "" leaves the choice.
WAYS: tuple[dict[str, bool], ...] = (
    {},
    {"foreach": True},
    {"foreach": False},
    {"fused": True},
    {"capturable": True},
    {"differentiable": True},
)


def findings(entry: Any, dtype: torch.dtype, most: int) -> Iterator[Finding]:
    """What differs with the first `most` sets of options of an entry, for a dtype."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for options in islice(_options(entry, dtype), most):
            for way in WAYS:
                if not way.keys() & options.keys():
                    yield from Comparison(entry, options | way, dtype).findings()


def _options(entry: Any, dtype: torch.dtype) -> Iterator[dict[str, Any]]:
    for sample in entry.optim_inputs_func(device="cpu", dtype=dtype):
        yield sample.kwargs


class Trained:
    """What an optimizer leaves after some steps.

    Args:
        library: torch or plugrad.
        name: the optimizer's.
        options: of the optimizer, as values of the library.
        dtype: of the parameters, of the library.
        numbers: arrays: the parameters, and the gradients of each step.
    """

    def __init__(
        self, library: Any, name: str, options: dict[str, Any], dtype: Any, numbers: list[Any]
    ) -> None:
        self.parameters = [library.tensor(array).to(dtype).requires_grad_() for array in numbers[0]]
        self.optimizer = getattr(library.optim, name)(self.parameters, **options)
        for gradients in numbers[1:]:
            for parameter, gradient in zip(self.parameters, gradients, strict=True):
                parameter.grad = library.tensor(gradient).to(dtype)
            if options.get("differentiable"):
                with library.no_grad():
                    self.optimizer.step()
            elif name == "LBFGS":
                self.optimizer.step(self._loss)
            else:
                self.optimizer.step()
        held = self.optimizer.state_dict()
        self.state = held["state"]
        self.groups = held["param_groups"]

    def _loss(self) -> Any:
        self.optimizer.zero_grad()
        loss = sum(((parameter - 1) ** 2).sum() for parameter in self.parameters)
        loss.backward()
        return loss


class Comparison:
    """An optimizer with some options, in each library."""

    def __init__(self, entry: Any, options: dict[str, Any], dtype: torch.dtype) -> None:
        self.name = entry.optim_cls.__name__
        self.options, self.dtype = options, dtype
        self.where = call_words((), options)

    def findings(self) -> Iterator[Finding]:
        """What differs."""
        samples = Samples()
        numbers = self._numbers()
        # Optimizers write into options that are tensors.
        options = copy.deepcopy(self.options)
        own_options = samples.of(copy.deepcopy(self.options))
        their = Attempt(lambda: Trained(torch, self.name, options, self.dtype, numbers))
        own_dtype = samples.of(self.dtype)
        own = Attempt(lambda: Trained(plugrad, self.name, own_options, own_dtype, numbers))
        if "If capturable=True" in str(their.error):
            # PyTorch refuses it on the CPU. Here it is the same computation.
            options = copy.deepcopy(self.options) | {"capturable": False}
            their = Attempt(lambda: Trained(torch, self.name, options, self.dtype, numbers))
            # It counts steps in tensors of float32.
            words = own.differs(their, 1.0) if own.error else ""
            words = words or self._values_difference(own.result, their.result, ROUNDED)
            if words:
                yield Finding("value", self.where, words)
            return
        if their.error is not None or own.error is not None:
            words = own.differs(their, 1.0)
            if words:
                yield Finding("refused", self.where, words)
            return
        ours, theirs = own.result, their.result
        # PyTorch's foreach form of it has step sizes in tensors of float32.
        rounded = self.name == "ASGD" and self.options.get("foreach")
        words = self._values_difference(ours, theirs, ROUNDED if rounded else 1.0)
        if words:
            yield Finding("value", self.where, words)
            return
        found = {
            "state": _state_difference(ours.state, theirs.state),
            "groups": _groups_difference(ours.groups, theirs.groups),
            "repr": _unlike(repr(ours.optimizer), repr(theirs.optimizer)),
        }
        for kind, words in found.items():
            if words:
                yield Finding(kind, self.where, words)

    def _values_difference(self, ours: Trained, theirs: Trained, slack: float) -> str:
        return difference(
            ours.parameters, theirs.parameters, slack if self.dtype is torch.float64 else 1.0
        )

    def _numbers(self) -> list[Any]:
        """Arrays: the parameters, and gradients for each step."""
        random = np.random.default_rng(0)
        shapes = MATRICES if self.name == "Muon" else SHAPES

        def some() -> list[Any]:
            made = [np.asarray(random.normal(size=shape)) for shape in shapes]
            if self.dtype.is_complex:
                made = [array + 1j * random.normal(size=array.shape) for array in made]
            return made

        return [some() for _ in range(1 + STEPS)]


def _unlike(ours: str, theirs: str) -> str:
    wanted = theirs.replace("torch.", "plugrad.")
    return "" if ours == wanted else f"{ours}, expected {wanted}"


def _state_difference(ours: Any, theirs: Any) -> str:
    """How the states of the parameters differ: names, kinds of values, tensors."""
    if [*ours] != [*theirs]:
        return f"of parameters {[*ours]}, expected {[*theirs]}"
    for number, wanted in theirs.items():
        found = ours[number]
        if sorted(found) != sorted(wanted):
            return f"{sorted(found)}, expected {sorted(wanted)}"
        for name, value in wanted.items():
            kinds = isinstance(found[name], plugrad.Tensor), isinstance(value, torch.Tensor)
            words = "" if kinds[0] == kinds[1] else "a tensor in one of both only"
            if not words and not _is_close(found[name], value):
                words = difference(found[name], value, 10.0)
            if words:
                return f"{name}: {words}"
    return ""


def _is_close(ours: Any, theirs: Any) -> bool:
    """Whether both are about the same number."""
    return (
        isinstance(ours, float)
        and isinstance(theirs, float)
        and bool(np.isclose(ours, theirs, rtol=1e-4, atol=1e-6))
    )


def _groups_difference(ours: Any, theirs: Any) -> str:
    """How the groups differ: the options, their order, their values."""
    for found, wanted in zip(ours, theirs, strict=True):
        if [*found] != [*wanted]:
            return f"{[*found]}, expected {[*wanted]}"
        for name, value in wanted.items():
            words = difference(found[name], value)
            plain = not isinstance(value, (torch.Tensor, list, tuple))
            if not words and plain and found[name] != value:
                words = f"{found[name]!r}, expected {value!r}"
            if words:
                return f"{name}: {words}"
    return ""


def error_findings(entry: Any) -> Iterator[Finding]:
    """Arguments that PyTorch refuses, or warns of, and we take, or refuse in other words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for item in entry.optim_error_inputs_func(device="cpu", dtype=torch.float32):
            yield from _of_error(entry, item)


def _of_error(entry: Any, item: Any) -> Iterator[Finding]:
    given = item.optimizer_error_input
    if any(isinstance(t, torch.Tensor) and t.is_sparse for t in flat(given.params, torch.Tensor)):
        return  # plugrad has no sparse tensors.
    samples = Samples()
    parameters, own_parameters = given.params, samples.of(given.params)
    if parameters is None:
        parameters = [torch.nn.Parameter(torch.ones(1))]
        own_parameters = [plugrad.nn.Parameter(plugrad.ones(1))]
    name = entry.optim_cls.__name__
    options, own_options = given.kwargs, samples.of(given.kwargs)
    theirs = Attempt(lambda: _warned(torch.optim, name, parameters, options))
    ours = Attempt(lambda: _warned(plugrad.optim, name, own_parameters, own_options))
    if theirs.error is None:
        words = "" if ours.result == theirs.result else f"{ours.result}, expected {theirs.result}"
        words = str(ours.error) if ours.error is not None else words
    else:
        words = ours.refused(theirs, item.error_type, item.error_regex)
    if words:
        yield Finding("error", given.desc or call_words((), given.kwargs), words)


def _warned(optim: Any, name: str, parameters: Any, options: dict[str, Any]) -> list[str]:
    """The warnings of making an optimizer."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        getattr(optim, name)(parameters, **options)
    return [str(warning.message).replace("torch", "plugrad") for warning in caught]
