"""Runs entries of PyTorch's table of modules on plugrad and reports the differences.

For each sample: the module that is made, its state and `repr`, results, gradients and gradients of
gradients, the state afterwards, and the form that writes into its input; for each entry the inputs
that have to fail.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch
from torch.nn.parameter import is_lazy
from torch.testing._internal.common_modules import ModuleErrorEnum

import plugrad
from tests.torch_tables.compare import difference, flat
from tests.torch_tables.findings import Attempt, Finding, call_words
from tests.torch_tables.gradients import differentiable, grad, numbers
from tests.torch_tables.translate import Samples


def findings(
    entry: Any,
    dtype: torch.dtype,
    training: bool,
    most: int,
    device: str = "cpu",
    deep: bool = True,
) -> Iterator[Finding]:
    """What differs in the first `most` samples of an entry for a dtype.

    Args:
        training: whether the modules are in training mode, rather than evaluated.
        device: where plugrad computes.
        deep: also gradients of gradients.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in islice(_samples(entry, dtype, training), most):
            yield from Comparison(entry, sample, dtype, training, device).findings(deep)


def _samples(entry: Any, dtype: torch.dtype, training: bool) -> list[Any]:
    torch.default_generator.manual_seed(1234)
    try:
        made = entry.module_inputs_func(
            entry, device="cpu", dtype=dtype, requires_grad=True, training=training
        )
    except (NotImplementedError, RuntimeError, TypeError):
        # PyTorch cannot make samples of this dtype.
        return []
    return [sample for sample in made if sample.forward_input is not None]


class Comparison:
    """One sample, as a module of each library."""

    def __init__(
        self, entry: Any, sample: Any, dtype: torch.dtype, training: bool, device: str
    ) -> None:
        self.entry, self.dtype, self.training, self.device = entry, dtype, training, device
        self.samples = Samples(device)
        made, given = sample.constructor_input, sample.forward_input
        self.made = (made.args, made.kwargs)
        self.our_made = self.samples.of(self.made)
        # Inputs that fail when the module is made have none for the call.
        self.given = ((), {}) if given is None else (given.args, given.kwargs)
        self.our_given = self.samples.of(self.given)
        self.our_class = getattr(plugrad.nn, entry.module_cls.__name__)
        words = call_words(*self.made), call_words(*self.given)
        self.where = f"{'train' if training else 'eval'} {words[0]}{words[1]}"

    def findings(self, deep: bool) -> Iterator[Finding]:
        """What differs."""
        theirs = Attempt(lambda: _built(self.entry.module_cls, self.made))
        ours = Attempt(lambda: _built(self.our_class, self.our_made))
        if theirs.error is not None or ours.error is not None:
            yield from self._finding("construction", ours.differs(theirs, 1.0))
            return
        if self.device == "cpu":
            yield from self._finding("initial state", _state_difference(ours, theirs))
            yield from self._finding("repr", _repr_difference(ours.result, theirs.result))
            yield from self._with_dtype()
        their_module = theirs.result.to(self.dtype).train(self.training)
        our_module = ours.result.to(self.device, self.samples.of(self.dtype)).train(self.training)
        if not any(is_lazy(value) for value in their_module.state_dict().values()):
            our_module.load_state_dict(self.samples.of(their_module.state_dict()))
        yield from self._of_call(their_module, our_module, deep)
        yield from self._in_place()

    def _finding(self, kind: str, words: str) -> Iterator[Finding]:
        if words:
            yield Finding(kind, self.where, words)

    def _with_dtype(self) -> Iterator[Finding]:
        """Of modules that are made with `dtype=`."""
        takes = "dtype" in inspect.signature(self.entry.module_cls).parameters
        if not takes or "dtype" in self.made[1]:
            return
        args, kwargs = self.made
        theirs = Attempt(lambda: self.entry.module_cls(*args, **kwargs, dtype=self.dtype))
        args, kwargs = self.our_made
        dtype = self.samples.of(self.dtype)
        ours = Attempt(lambda: self.our_class(*args, **kwargs, dtype=dtype))
        if theirs.error is None and ours.error is None:
            yield from self._finding("dtype=", _state_difference(ours, theirs))
        else:
            yield from self._finding("dtype=", ours.differs(theirs, 1.0))

    def _of_call(self, their_module: Any, our_module: Any, deep: bool) -> Iterator[Finding]:
        args, kwargs = self.given
        theirs = Attempt(lambda: their_module(*args, **kwargs))
        our_args, our_kwargs = self.our_given
        ours = Attempt(lambda: our_module(*our_args, **our_kwargs))
        if theirs.error is not None or ours.error is not None:
            kind = "dtype" if theirs.lacks_dtype() else "value"
            yield from self._finding(kind, ours.differs(theirs, 1.0))
            return
        words = difference(ours.result, theirs.result)
        yield from self._finding("value", words)
        states = Attempt(our_module.state_dict), Attempt(their_module.state_dict)
        yield from self._finding("state", states[0].differs(states[1], 1.0))
        if not words:
            yield from self._gradients(their_module, our_module, theirs, ours, deep)

    def _gradients(
        self, their_module: Any, our_module: Any, theirs: Any, ours: Any, deep: bool
    ) -> Iterator[Finding]:
        wanted = [t for t in flat(theirs.result, torch.Tensor) if t.requires_grad]
        outs = [t for t in flat(ours.result, plugrad.Tensor) if t.requires_grad]
        if len(outs) != len(wanted):
            words = f"{len(outs)} results require grad, expected {len(wanted)}"
            yield Finding("gradient", self.where, words)
        if len(outs) != len(wanted) or not outs:
            return
        given = differentiable(self.given)
        parameters = dict(their_module.named_parameters())
        own = dict(our_module.named_parameters())
        inputs = [*given, *parameters.values()]
        our_inputs = [*map(self.samples.tensor, given), *(own[name] for name in parameters)]
        deep = deep and self.entry.supports_gradgrad
        seeds = numbers(wanted, 5)
        their_grads = Attempt(lambda: grad(torch, wanted, inputs, seeds, deep, zeros=False))
        our_grads = Attempt(lambda: grad(plugrad, outs, our_inputs, seeds, deep, zeros=False))
        if their_grads.lacks_dtype():
            yield from self._finding("dtype", our_grads.differs(their_grads, 1.0))
            return
        words = our_grads.differs(their_grads, 10.0)
        if not words and their_grads.error is None:
            unused = [
                [name is None for name in attempt.result] for attempt in (our_grads, their_grads)
            ]
            words = "" if unused[0] == unused[1] else f"None: {unused[0]}, expected {unused[1]}"
        yield from self._finding("gradient", words)
        if words or not deep or their_grads.error is not None:
            return
        again = [n for n, g in enumerate(their_grads.result) if g is not None and g.requires_grad]
        if not again:
            return
        firsts = [their_grads.result[n] for n in again]
        our_firsts = [our_grads.result[n] for n in again]
        seeds = numbers(firsts, 6)
        twice = Attempt(lambda: grad(torch, firsts, inputs, seeds, False))
        our_twice = Attempt(lambda: grad(plugrad, our_firsts, our_inputs, seeds, False))
        if twice.error is None:
            yield from self._finding("double gradient", our_twice.differs(twice, 100.0))

    def _in_place(self) -> Iterator[Finding]:
        """Of modules that are made with `inplace=True`."""
        if "inplace" not in inspect.signature(self.entry.module_cls).parameters:
            return
        (args, kwargs), (our_args, our_kwargs) = self.made, self.our_made
        module = self.entry.module_cls(*args, **{**kwargs, "inplace": True})
        own = self.our_class(*our_args, **{**our_kwargs, "inplace": True})
        (first, *_), _ = self.given
        (our_first, *_), _ = self.our_given
        with torch.no_grad(), plugrad.no_grad():
            copies = first.clone(), our_first.clone()
            module, own = module.train(self.training), own.train(self.training)
            theirs = Attempt(lambda: [module(copies[0]), copies[0]])
            ours = Attempt(lambda: [own(copies[1]), copies[1]])
        if not theirs.lacks_dtype():
            yield from self._finding("in-place", ours.differs(theirs, 1.0))


def _built(made: Any, given: Any) -> Any:
    args, kwargs = given
    return made(*args, **kwargs)


def _state_difference(ours: Attempt, theirs: Attempt) -> str:
    """How names, shapes, dtypes and elements of two modules' states differ; "" if not."""
    found, wanted = ours.result.state_dict(), theirs.result.state_dict()
    if [*found] != [*wanted]:
        return f"{[*found]}, expected {[*wanted]}"
    for name, value in wanted.items():
        # Lazy modules have parameters without a shape.
        words = "" if is_lazy(value) else difference(found[name], value)
        if words:
            return f"{name}: {words}"
    lists = [
        [name for name, _ in parts(module)]
        for module in (ours.result, theirs.result)
        for parts in (type(module).named_parameters, type(module).named_modules)
    ]
    return "" if lists[:2] == lists[2:] else f"{lists[:2]}, expected {lists[2:]}"


def _repr_difference(ours: Any, theirs: Any) -> str:
    found, wanted = repr(ours), repr(theirs).replace("torch.", "plugrad.")
    return "" if found == wanted else f"{found}, expected {wanted}"


def error_findings(entry: Any) -> Iterator[Finding]:
    """Inputs that PyTorch refuses and we take, or refuse with another error."""
    if entry.module_error_inputs_func is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for training in (True, False):
            torch.default_generator.manual_seed(1234)
            for item in entry.module_error_inputs_func(
                entry, device="cpu", dtype=torch.float64, requires_grad=False, training=training
            ):
                yield from _of_error(entry, item, training)


def _of_error(entry: Any, item: Any, training: bool) -> Iterator[Finding]:
    asked = Comparison(entry, item.module_error_input, torch.float64, training, "cpu")

    def call(made: Any, constructed: Any, given: Any) -> None:
        module = _built(made, constructed)
        if item.error_on is ModuleErrorEnum.FORWARD_ERROR:
            _built(module.train(training), given)

    theirs = Attempt(lambda: call(entry.module_cls, asked.made, asked.given))
    if theirs.error is None:
        return
    ours = Attempt(lambda: call(asked.our_class, asked.our_made, asked.our_given))
    if words := ours.refused(theirs, item.error_type, item.error_regex):
        yield Finding("error", asked.where, words)
