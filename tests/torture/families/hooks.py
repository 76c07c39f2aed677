"""Hooks of all kinds that raise: the caller gets the error, and the next pass is right."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import plugrad
from plugrad import autograd
from plugrad.autograd.graph import (
    register_multi_grad_hook,
    saved_tensors_hooks,
)
from tests.torture.finding import Finding, counts
from tests.torture.state import differences, restore, state

NAME = "hooks"
ERRORS = 12
"""How many of them a case raises."""


class HookError(Exception):
    """What hooks raise."""


class HookInterrupt(BaseException):
    """What is no Exception."""


class Bomb:
    """A hook that raises when it is called for the n-th time, once."""

    def __init__(self, chance: random.Random) -> None:
        self.left = chance.randint(1, 6)
        self.error = chance.choice([HookError, HookError, HookInterrupt])
        self.raised = False

    def tick(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.raised = True
            raise self.error


def run_case(seed: int) -> Finding | None:
    chance = random.Random(seed)
    before = state()
    for _ in range(ERRORS):
        what = _one(chance)
        counts["hooks that raise"] += 1
        left = differences(before)
        if left:
            restore(before)
            what = f"is left: {left}"
        if what:
            return Finding(
                f"hooks: {what}",
                "from tests.torture.families.hooks import run_case  # from a checkout's root\n"
                f"print(run_case({seed}))\n",
            )
    return None


def _one(chance: random.Random) -> str:
    bomb = Bomb(chance)

    def hook(*_: Any) -> None:
        bomb.tick()

    x = plugrad.tensor([1.0, 2.0], requires_grad=True)
    y = plugrad.tensor([3.0, 5.0], requires_grad=True)
    handles: list[Any] = []
    kinds: list[Callable[[Any], Any]] = [
        lambda t: handles.append(t.register_hook(hook)),
        lambda t: handles.append(t.grad_fn.register_hook(hook)) if t.grad_fn else None,
        lambda t: handles.append(t.grad_fn.register_prehook(hook)) if t.grad_fn else None,
        lambda t: handles.append(register_multi_grad_hook([t, x], hook)),
        lambda t: handles.append(t.register_post_accumulate_grad_hook(hook)) if t.is_leaf else None,
    ]
    packs = chance.random() < 0.3

    def unpack(t: Any) -> Any:
        bomb.tick()
        return t

    def pack(t: Any) -> Any:
        return t.detach()

    values = [x, y]
    if packs:
        with saved_tensors_hooks(pack, unpack):
            loss = _loss(chance, values)
    else:
        loss = _loss(chance, values)
    for value in values:
        if chance.random() < 0.5:
            chance.choice(kinds)(value)
    # `grad` refuses hooks that wait for leaves.
    several = any(type(handle).__name__ == "_MultiHandle" for handle in handles)
    run = (
        (lambda: loss.backward(retain_graph=True))
        if several or chance.random() < 0.5
        else (lambda: autograd.grad(loss, [x, y], retain_graph=True, allow_unused=True))
    )
    try:
        run()
    except (HookError, HookInterrupt):
        if not bomb.raised:
            return "an error comes from nowhere"
    else:
        if bomb.raised:
            return "an error is lost"
    for handle in handles:
        handle.remove()
    bomb.left = -1
    found = autograd.grad(loss, [x, y], retain_graph=True, allow_unused=True)
    x.grad = y.grad = None
    loss.backward(retain_graph=True)
    for leaf, gradient in zip([x, y], found, strict=True):
        one = None if leaf.grad is None else leaf.grad.tolist()
        other = None if gradient is None else gradient.tolist()
        if one != other:
            return f"after an error backward gives {one}, grad {other}"
    fresh = _naive(loss, [x, y])
    if fresh != [None if g is None else g.tolist() for g in found]:
        return f"after an error gradients are {found}, and should be {fresh}"
    return ""


def _naive(loss: Any, leaves: list[Any]) -> list[Any]:
    from plugrad.testing.engines.naive import naive_grad

    return [None if g is None else g.tolist() for g in naive_grad([loss], leaves)]


def _loss(chance: random.Random, values: list[Any]) -> Any:
    for _ in range(chance.randint(2, 6)):
        a, b = chance.choice(values), chance.choice(values)
        values.append(chance.choice([a * b, a + b, a * 2.0, a - b, a.sin() + b]))
    return sum([value.sum() for value in values[2:]], plugrad.zeros(()))
