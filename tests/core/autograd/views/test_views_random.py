"""Random programs of views and in-place operators, step by step against PyTorch.

Each step must give the same elements, the same place in the graph, or the same error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import plugrad
from tests.core.drawing import drawn

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]  # the oracle is optional

pytestmark = pytest.mark.skipif(
    torch is None, reason="PyTorch is not installed: make test ORACLE=torch"
)

Step = tuple[str, int, int, int]

VIEWS: dict[str, Callable[[Any, int], Any]] = {
    "select": lambda t, n: t.select(n % t.dim(), n % t.shape[n % t.dim()]),
    "slice": lambda t, n: t[n % t.shape[0] :],
    "step": lambda t, n: t[:: 1 + n % 2],
    "transpose": lambda t, n: t.transpose(0, n % t.dim()),
    "flat": lambda t, n: t.view(-1),
    "reshape": lambda t, n: t.reshape(2, -1),
    "unsqueeze": lambda t, n: t.unsqueeze(n % (t.dim() + 1)),
    "squeeze": lambda t, n: t.squeeze(),
    "expand": lambda t, n: t.expand(2, *t.shape),
    "diagonal": lambda t, n: t.diagonal(),
    "unbind": lambda t, n: t.unbind(0)[n % t.shape[0]],
    "split": lambda t, n: t.split(1)[n % t.shape[0]],
    "narrow": lambda t, n: t.narrow(n % t.dim(), 0, 1),
    "view_as": lambda t, n: t.view_as(t),
    # PyTorch gives what is detached from an inference tensor a version counter.
    "detach": lambda t, n: t.view_as(t) if t.is_inference() else t.detach(),
}
FUNCTIONS: dict[str, Callable[[Any, Any, int], Any]] = {
    "mul": lambda t, o, n: t * o,
    "add": lambda t, o, n: t + o,
    "square": lambda t, o, n: t * t,
    "sin": lambda t, o, n: t.sin(),
    "sigmoid": lambda t, o, n: t.sigmoid(),
    "neg": lambda t, o, n: -t,
}
WRITES: dict[str, Callable[[Any, Any, int], Any]] = {
    "mul_": lambda t, o, n: t.mul_(o),
    "add_": lambda t, o, n: t.add_(o),
    "copy_": lambda t, o, n: t.copy_(o),
    "mul_scalar_": lambda t, o, n: t.mul_(0.5 + n),
    "sin_": lambda t, o, n: t.sin_(),
    "sigmoid_": lambda t, o, n: t.sigmoid_(),
    "zero_": lambda t, o, n: t.zero_(),
    "setitem": lambda t, o, n: t.__setitem__(n % t.shape[0], o),
}
FLAGS: dict[str, Callable[[Any, int], Any]] = {
    "requires_grad_": lambda t, n: t.requires_grad_(bool(n % 2)),
    "detach_": lambda t, n: t.detach_(),
}
NAMES = [*VIEWS, *VIEWS, *FUNCTIONS, *WRITES, *WRITES, *FLAGS]
MODES = ["grad"] * 6 + ["no_grad", "inference"]

steps = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.integers(0, 40),
        st.integers(0, 40),
        st.integers(0, 3),
        st.sampled_from(MODES),
    ),
    min_size=1,
    max_size=14,
)


class Run:
    """One library's side of a program: its tensors so far."""

    def __init__(self, library: Any) -> None:
        self.library = library
        first = np.linspace(0.5, 1.5, 4).reshape(2, 2)
        self.leaves = [
            library.from_numpy(first.copy()).requires_grad_(),
            library.from_numpy(first[0].copy()).requires_grad_(),
        ]
        self.tensors = [*self.leaves, *(leaf * 2 for leaf in self.leaves)]
        self.tensors += [library.from_numpy(first.copy() + 1), self.leaves[0] * 1]

    def step(self, name: str, first: int, second: int, number: int, mode: str) -> Any:
        """What the step gave: a tensor, or the error's type and words."""
        tensor = self.tensors[-1 - first % len(self.tensors)]
        other = self.tensors[-1 - second % len(self.tensors)]
        modes = {
            "grad": self.library.enable_grad,
            "no_grad": self.library.no_grad,
            "inference": self.library.inference_mode,
        }
        try:
            with modes[mode]():
                # Whatever has no dimensions fits every shape.
                if sizes(other) != sizes(tensor):
                    other = other.sum()
                elif name in WRITES:
                    other = other * 1  # or the result would depend on the order of the elements
                if name in VIEWS:
                    self.tensors.append(VIEWS[name](tensor, number))
                elif name in FUNCTIONS:
                    if not (tensor.is_contiguous() and other.is_contiguous()):
                        # The result's memory layout depends on the backend.
                        tensor, other = tensor.sum(), other.sum()
                    self.tensors.append(FUNCTIONS[name](tensor, other, number))
                elif name in WRITES:
                    WRITES[name](tensor, other, number)
                else:
                    FLAGS[name](tensor, number)
        except (RuntimeError, IndexError, ZeroDivisionError, ValueError) as error:
            return words_of(error)
        return None


def sizes(tensor: Any) -> tuple[int, ...]:
    return tuple(tensor.shape)


def neutral(words: str) -> str:
    """Without names that only one of the libraries has."""
    # PyTorch's reshape has a name of its own for some of the views that it takes.
    for ours, theirs in (
        ("", "torch::autograd::"),
        ("plugrad.", "torch."),
        ("View", "ReshapeAlias"),
    ):
        words = words.replace(theirs, ours)
    return words


RULES = ("inplace", "in-place", "leaf", "nference", "detach", "requires_grad", "require grad")


def words_of(error: Exception) -> tuple[str, str]:
    """An error's type and, if it is about this chapter, its words."""
    words = str(error).split(" Hint:")[0].split("`torch.no")[0].split("`plugrad.no")[0]
    if not any(rule in words for rule in RULES):
        words = ""
    # The saved result of a write to a view: which it is depends on what else keeps nodes alive.
    words = re.sub(", which is output 0 of (AsStrided|Sigmoid),", "", words)
    return type(error).__name__, neutral(words)


def place_of(tensor: Any) -> Any:
    """Everything a tensor says about its place in the graph."""
    try:
        node = tensor.grad_fn
    except RuntimeError as error:
        return words_of(error)
    name = None if node is None else neutral(node.name())
    return (
        name,
        tensor.is_leaf,
        tensor.requires_grad,
        tensor.output_nr,
        tensor._is_view(),
        tensor.is_inference(),
        None if tensor.is_inference() else tensor._version,
    )


def gradients(run: Run) -> Any:
    """First and second derivatives of a function of all tensors, or the error."""
    total = 0
    for position, tensor in enumerate(run.tensors):
        try:
            if not tensor.is_inference():
                total = total + (position + 1) * (tensor * tensor).sum()
        except RuntimeError as error:
            if not any(words in str(error) for words in ("mode", "multiple views")):
                return words_of(error)
    leaves = [leaf for leaf in run.leaves if leaf.requires_grad]
    if not leaves or not total.requires_grad:
        return []
    try:
        grads = run.library.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
        again = sum((grad * grad).sum() for grad in grads if grad is not None)
        second = (
            run.library.autograd.grad(again, leaves, allow_unused=True)
            if isinstance(again, run.library.Tensor) and again.requires_grad
            else []
        )
    except RuntimeError as error:
        return words_of(error)
    return [None if grad is None else grad.detach().numpy() for grad in (*grads, *second)]


def assert_same_elements(ours: Any, theirs: Any) -> None:
    np.testing.assert_allclose(
        ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-9, atol=1e-12
    )


@drawn(100, HealthCheck.data_too_large)
@given(steps)
def test_programs_of_views_and_writes_agree_with_torch(program: list[Any]) -> None:
    ours, theirs = Run(plugrad), Run(torch)
    for step in program:
        our_step, their_step = ours.step(*step), theirs.step(*step)
        assert (our_step is None) == (their_step is None)
        # Of two errors, ours may find the other one first if one of them is about shapes.
        if our_step is not None and our_step[1] and their_step[1]:
            assert our_step == their_step
    for our, their in zip(ours.tensors, theirs.tensors, strict=True):
        assert sizes(our) == sizes(their)
        assert_same_elements(our, their)
        assert place_of(our) == place_of(their)
    actual, expected = gradients(ours), gradients(theirs)
    if isinstance(expected, tuple):
        assert actual == expected
        return
    for our, their in zip(actual, expected, strict=True):
        assert (our is None) == (their is None)
        if our is not None:
            np.testing.assert_allclose(our, their, rtol=1e-8, atol=1e-10)
