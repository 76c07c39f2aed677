"""Random graphs for property-based tests (needs hypothesis).

A `Program` is a list of steps on small tensors: shared subexpressions, several outputs per node,
broadcasting, views, reductions, detached branches. It runs on any library with PyTorch's names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

Shape = tuple[int, ...]

SHAPES: tuple[Shape, ...] = ((), (3,), (1,), (2, 3), (2, 1), (1, 3))
UNARY = ("sin", "tanh", "sigmoid", "neg", "half", "square")
BINARY = ("add", "sub", "mul", "atan2", "maximum")
SHAPED = ("sum_first", "mean_keepdim", "transpose", "flatten", "expand", "unbind", "split")
OTHER = ("detach",)


@dataclass(frozen=True)
class Step:
    """One operation on values made earlier, by their position in the list of all values."""

    op: str
    operands: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """Leaves, steps, which values are outputs and with respect to which gradients are taken.

    Attributes:
        leaves: shape and whether it requires grad, for each.
        steps: in order; a step with several results appends them all.
        outputs: positions of values that require grad; one may occur twice.
        inputs: positions of values that require grad, leaves or not.
        seed: what the leaves' values are drawn with.
    """

    leaves: tuple[tuple[Shape, bool], ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    inputs: tuple[int, ...]
    seed: int

    def run(self, library: Any) -> list[Any]:
        """All values: the leaves (new ones, float64), then what the steps made."""
        rng = np.random.default_rng(self.seed)
        values: list[Any] = []
        for shape, requires_grad in self.leaves:
            leaf = library.from_numpy(np.asarray(rng.uniform(-1.0, 1.0, shape)))
            values.append(leaf.requires_grad_(requires_grad))
        for step in self.steps:
            values.extend(_apply(library, step.op, [values[i] for i in step.operands]))
        return values


def _apply(library: Any, op: str, operands: list[Any]) -> list[Any]:
    x = operands[0]
    if op == "half":
        return [x * 0.5]
    if op == "square":
        return [x * x]
    if op in UNARY or op in BINARY:
        return [getattr(library, op)(*operands)]
    if op == "sum_first":
        return [x.sum(0)]
    if op == "mean_keepdim":
        return [x.mean(-1, keepdim=True)]
    if op == "transpose":
        return [x.transpose(0, -1)]
    if op == "flatten":
        return [x.reshape(-1)]
    if op == "expand":
        return [x.expand(2, *x.shape)]
    if op == "unbind":
        return list(x.unbind(0))
    if op == "split":
        return list(x.split(1, -1))
    return [x.detach()]


def _result_shapes(op: str, shapes: list[Shape]) -> list[Shape] | None:
    """Shapes of the results; None if the operation does not take such operands."""
    shape = shapes[0]
    if op in BINARY:
        try:
            return [np.broadcast_shapes(*shapes)]
        except ValueError:
            return None
    if op in SHAPED and not shape and op not in ("flatten", "expand"):
        return None
    if op == "expand" and len(shape) > 2:
        return None
    results: dict[str, list[Shape]] = {
        "sum_first": [shape[1:]],
        "mean_keepdim": [(*shape[:-1], 1)],
        "transpose": [(shape[-1], *shape[1:-1], shape[0]) if len(shape) > 1 else shape],
        "flatten": [(int(np.prod(shape)),)],
        "expand": [(2, *shape)],
        "unbind": [shape[1:]] * (shape[0] if shape else 0),
        "split": [(*shape[:-1], 1)] * (shape[-1] if shape else 0),
    }
    return results.get(op, [shape])


@st.composite
def programs(draw: st.DrawFn, max_steps: int = 12) -> Program:
    """Programs with at least one output that requires grad."""
    leaves = draw(st.lists(st.tuples(st.sampled_from(SHAPES), st.booleans()), max_size=3))
    leaves = [(draw(st.sampled_from(SHAPES)), True), *leaves]
    shapes = [shape for shape, _ in leaves]
    needs_grad = [flag for _, flag in leaves]
    steps = []
    for _ in range(draw(st.integers(1, max_steps))):
        op = draw(st.sampled_from(UNARY + BINARY + SHAPED + OTHER))
        count = 2 if op in BINARY else 1
        # Small numbers are recent values: hypothesis then shrinks to chains.
        back = [draw(st.integers(0, len(shapes) - 1)) for _ in range(count)]
        operands = tuple(len(shapes) - 1 - b for b in back)
        made = _result_shapes(op, [shapes[i] for i in operands])
        if made is None:
            continue
        steps.append(Step(op, operands))
        shapes.extend(made)
        flag = op != "detach" and any(needs_grad[i] for i in operands)
        needs_grad.extend([flag] * len(made))
    candidates = [i for i, flag in enumerate(needs_grad) if flag]
    recent = st.integers(0, len(candidates) - 1).map(lambda b: candidates[len(candidates) - 1 - b])
    outputs = draw(st.lists(recent, min_size=1, max_size=3))
    inputs = draw(st.lists(st.sampled_from(candidates), min_size=1, max_size=4))
    return Program(
        tuple(leaves), tuple(steps), tuple(outputs), tuple(inputs), draw(st.integers(0, 99))
    )
