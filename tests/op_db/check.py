"""Runs entries of PyTorch's table on plugrad and reports the differences.

For each sample: the value, the method, the in-place form, `out=`, gradients, gradients of gradients
and forward mode; for each entry the inputs that have to fail.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import torch
import torch.autograd.forward_ad as their_forward

import plugrad
import plugrad.autograd.forward_ad as our_forward
from tests.op_db.entries import ABSENT_DTYPES, BY_SHAPE, GAUGED
from tests.op_db.ties import has_ties, picked
from tests.torch_tables.compare import difference, flat
from tests.torch_tables.findings import Attempt, Finding, call_words
from tests.torch_tables.gradients import differentiable, grad, numbers
from tests.torch_tables.translate import Samples, function_of, our_function

# Decompositions and inverses lose digits where a matrix is nearly singular.
LOOSE = ("linalg", "matrix_exp", "cdist", "lu", "cholesky", "svd", "pinverse", "ormqr", "lobpcg")
# PyTorch's polynomials are right to 6 digits of float64, plugrad's to all that SciPy's have.
ROUGH = ("special.airy_ai", "special.bessel_")


def _place(sample: Any) -> str:
    return call_words((sample.input, *sample.args), sample.kwargs)


def findings(entry: Any, dtype: torch.dtype, most: int, deep: bool = True) -> Iterator[Finding]:
    """What differs in the first `most` samples of an entry for a dtype.

    Args:
        deep: also double gradients, forward mode, methods, in-place forms and `out=`.
    """
    function = function_of(entry)
    if function is None:
        yield Finding("missing", entry.name, "plugrad has no such function")
        return
    if str(dtype).partition(".")[2] in ABSENT_DTYPES.get(entry.name, ()):
        return
    inexact = dtype.is_floating_point or dtype.is_complex
    wanted = entry.supports_autograd and inexact and dtype.itemsize >= 4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in islice(_samples(entry, dtype, wanted), most):
            yield from _of_sample(entry, function, sample, wanted, deep)


def _samples(entry: Any, dtype: torch.dtype, requires_grad: bool) -> Iterator[Any]:
    """What `entry.sample_inputs` gives; that looks through the stack of callers for a test."""
    samples = iter(entry.sample_inputs_func(entry, "cpu", dtype, requires_grad))
    while True:
        random.seed(1234)
        np.random.seed(1234)
        torch.default_generator.manual_seed(1234)
        sample = next(samples, None)
        if sample is None:
            return
        yield sample


def _of_sample(
    entry: Any, function: Any, sample: Any, wanted: bool, deep: bool
) -> Iterator[Finding]:
    where = _place(sample)
    slack = 100.0 if entry.name.startswith(LOOSE) else 1.0
    if entry.name.startswith(ROUGH) and sample.input.dtype is torch.float64:
        slack = 1000.0
    samples = Samples()
    theirs = Attempt(lambda: entry(sample.input, *sample.args, **sample.kwargs))
    args = (samples.of(sample.input), *samples.of(sample.args))
    kwargs = samples.of(sample.kwargs)
    ours = Attempt(lambda: function(*args, **kwargs))
    if theirs.error is not None or ours.error is not None:
        if words := ours.differs(theirs, slack):
            yield Finding("value", where, words)
        return
    if entry.name in BY_SHAPE:
        zero = difference(_zeros(ours.result, plugrad), _zeros(theirs.result, torch), slack)
        if zero:
            yield Finding("shape", where, zero)
        return
    mine, other = ours.result, theirs.result
    if entry.name in GAUGED:
        mine, other = _processed(sample, mine, other)
    tied = has_ties(entry, sample)
    if tied:
        mine = picked(entry, sample, args[0], mine)
        other = picked(entry, sample, sample.input, other)
    if words := difference(mine, other, slack):
        yield Finding("value", where, words)
    if words or tied:
        return
    if deep and entry.name not in GAUGED:
        yield from _forms(entry, function, sample, args, kwargs, theirs.result, slack)
    if wanted:
        call = Differentiation(entry, function, sample, samples, args, kwargs)
        yield from call.findings(ours.result, theirs.result, slack, deep, where)


def _zeros(result: Any, library: Any) -> list[Any]:
    tensors = flat(result, library.Tensor)
    return [library.zeros(tuple(t.shape), dtype=t.dtype) for t in tensors]


def _processed(sample: Any, ours: Any, theirs: Any) -> tuple[Any, Any]:
    """The part of the results that a loss may depend on, without parts that are not unique."""
    process = sample.output_process_fn_grad
    return (our_function(process) or process)(ours), process(theirs)


def _forms(
    entry: Any, function: Any, sample: Any, args: Any, kwargs: Any, theirs: Any, slack: float
) -> Iterator[Finding]:
    where = _place(sample)
    if not isinstance(sample.input, torch.Tensor):
        return
    with torch.no_grad(), plugrad.no_grad():
        name = getattr(entry.method_variant, "__name__", "")
        if name.isidentifier() and hasattr(torch.Tensor, name):
            method = getattr(plugrad.Tensor, name, None)
            words = "there is no such method"
            if method is not None:
                attempt = Attempt(lambda: method(*args, **kwargs))
                words = attempt.differs(Attempt(lambda: theirs), slack)
            if words:
                yield Finding(f"Tensor.{name}", where, words)
        inplace = entry.inplace_variant
        if inplace is not None:
            name = getattr(inplace, "__name__", "")
            target = sample.input.detach().clone()
            wanted = Attempt(lambda: inplace(target, *sample.args, **sample.kwargs))
            own = getattr(plugrad.Tensor, name, None) or our_function(inplace)
            copy = args[0].detach().clone()
            found = Attempt(lambda: own(copy, *args[1:], **kwargs))
            if words := found.differs(wanted, slack):
                yield Finding("in-place", where, words)
        if entry.supports_out and flat(theirs, torch.Tensor):
            yield from _out(entry, function, sample, args, kwargs, theirs, slack)


def _out(
    entry: Any, function: Any, sample: Any, args: Any, kwargs: Any, theirs: Any, slack: float
) -> Iterator[Finding]:
    tensors = flat(theirs, torch.Tensor)
    if not all(isinstance(item, torch.Tensor) for item in tensors):
        return
    alone = isinstance(theirs, torch.Tensor)
    wanted_out = [torch.empty_like(item) for item in tensors]
    samples = Samples()
    found_out = [samples.of(torch.zeros_like(item)) for item in tensors]

    def call(f: Any, out: list[Any], given: Any, named: Any) -> list[Any]:
        f(*given, **named, out=out[0] if alone else tuple(out))
        return out

    given = (sample.input, *sample.args)
    wanted = Attempt(lambda: call(entry, wanted_out, given, sample.kwargs))
    found = Attempt(lambda: call(function, found_out, args, kwargs))
    if wanted.error is None:
        # What `out` has to hold. PyTorch's own `ihfftn` leaves it as it was where it transforms
        # one dimension that is not the last.
        wanted.result = tensors
    if words := found.differs(wanted, slack):
        yield Finding("out=", _place(sample), words)


class Differentiation:
    """Derivatives of one sample, in both libraries."""

    def __init__(
        self, entry: Any, function: Any, sample: Any, samples: Samples, args: Any, kwargs: Any
    ) -> None:
        self.entry, self.function, self.sample = entry, function, sample
        self.args, self.kwargs = args, kwargs
        self.given = (sample.input, sample.args, sample.kwargs)
        self.theirs = differentiable(self.given)
        # Derivatives by weights in float32 have no more digits than these.
        self.narrow = any(
            t.dtype.itemsize == 4 and not t.is_complex() for t in self.theirs
        ) and any(t.dtype.itemsize > 4 for t in self.theirs)
        self.ours = [samples.tensor(t) for t in self.theirs]

    def findings(
        self, ours: Any, theirs: Any, slack: float, deep: bool, where: str
    ) -> Iterator[Finding]:
        mine, other = _processed(self.sample, ours, theirs)
        outs = [t for t in flat(mine, plugrad.Tensor) if getattr(t, "requires_grad", False)]
        wanted = [t for t in flat(other, torch.Tensor) if getattr(t, "requires_grad", False)]
        if len(outs) != len(wanted):
            words = f"{len(outs)} results require grad, expected {len(wanted)}"
            yield Finding("gradient", where, words)
        if len(outs) != len(wanted) or not outs:
            return
        deep = deep and self.entry.supports_gradgrad
        if self.narrow:
            slack *= 1e4
        seeds = numbers(wanted, 5)
        their_grads = Attempt(lambda: grad(torch, wanted, self.theirs, seeds, True))
        our_grads = Attempt(lambda: grad(plugrad, outs, self.ours, seeds, True))
        if words := our_grads.differs(their_grads, slack * 10):
            yield Finding("gradient", where, words)
            return
        if their_grads.error is not None:
            return
        if deep:
            again = [n for n, g in enumerate(their_grads.result) if g.requires_grad]
            seeds = numbers([their_grads.result[n] for n in again], 6)
            wanted_again = Attempt(
                lambda: grad(
                    torch, [their_grads.result[n] for n in again], self.theirs, seeds, False
                )
            )
            found_again = Attempt(
                lambda: grad(plugrad, [our_grads.result[n] for n in again], self.ours, seeds, False)
            )
            words = found_again.differs(wanted_again, slack * 100)
            if again and wanted_again.error is None and words:
                yield Finding("double gradient", where, words)
        if deep and self.entry.supports_forward_ad:
            yield from self._forward(slack, where)

    def _forward(self, slack: float, where: str) -> Iterator[Finding]:
        directions = numbers(self.theirs, 7)

        def theirs() -> list[Any]:
            with their_forward.dual_level():
                duals = _duals(torch, their_forward, self.theirs, directions)
                first, args, kwargs = _replaced(self.given, duals)
                out = self.sample.output_process_fn_grad(self.entry(first, *args, **kwargs))
                return _tangents(their_forward, out, torch)

        def ours() -> list[Any]:
            with our_forward.dual_level():
                duals = _duals(plugrad, our_forward, self.ours, directions)
                args, kwargs = _replaced((self.args, self.kwargs), duals)
                process = self.sample.output_process_fn_grad
                out = (our_function(process) or process)(self.function(*args, **kwargs))
                return _tangents(our_forward, out, plugrad)

        wanted = Attempt(theirs)
        if wanted.error is None and (words := Attempt(ours).differs(wanted, slack * 10)):
            yield Finding("forward mode", where, words)


def _duals(library: Any, forward: Any, tensors: Any, directions: Any) -> dict[int, Any]:
    return {
        id(tensor): forward.make_dual(tensor.detach(), library.tensor(direction).to(tensor.dtype))
        for tensor, direction in zip(tensors, directions, strict=True)
    }


def _replaced(value: Any, duals: dict[int, Any]) -> Any:
    if id(value) in duals:
        return duals[id(value)]
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_replaced(item, duals) for item in value)
    if isinstance(value, dict):
        return {key: _replaced(item, duals) for key, item in value.items()}
    return value


def _tangents(forward: Any, out: Any, library: Any) -> list[Any]:
    """The tangent of each result; zeros if it has none, because that may be known or not."""
    found = []
    for tensor in flat(out, library.Tensor):
        if isinstance(tensor, library.Tensor):
            primal, tangent = forward.unpack_dual(tensor)
            found.append(library.zeros_like(primal) if tangent is None else tangent)
    return found


def error_findings(entry: Any) -> Iterator[Finding]:
    """Inputs that PyTorch refuses and we take, or refuse with another type of error."""
    function = function_of(entry)
    if entry.error_inputs_func is None or function is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Before PyTorch runs: what fails may have changed the size of `out`, also of later inputs.
        asked = []
        for item in entry.error_inputs("cpu"):
            sample, samples = item.sample_input, Samples()
            given = (sample.input, *sample.args)
            # NumPy's arrays have 64 dimensions at most, so there is no input with more.
            if not any(getattr(t, "ndim", 0) > 64 for t in flat(given, torch.Tensor)):
                asked.append((item, given, samples.of(given), samples.of(sample.kwargs)))
        for item, given, args, kwargs in asked:
            sample = item.sample_input
            theirs = Attempt(lambda s=sample, g=given: entry(*g, **s.kwargs))
            if theirs.error is None:
                continue
            ours = Attempt(lambda a=args, k=kwargs: function(*a, **k))
            if ours.error is None or not isinstance(ours.error, item.error_type):
                got = type(ours.error).__name__ if ours.error else "no error"
                words = f"{got}, expected {item.error_type}: {str(theirs.error)[:120]}"
                yield Finding("error", _place(sample), words)
