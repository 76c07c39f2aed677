"""Operators and kernels come and go while other threads call operators: results stay exact."""

from __future__ import annotations

import itertools
import random
import threading
from typing import Any

import plugrad
from plugrad import func
from plugrad.library import Library, custom_op
from tests.torture.finding import Finding, counts

NAME = "registration"
SECONDS = 20.0
TURNS = 4
_numbers = itertools.count()


def run_case(seed: int) -> Finding | None:
    chance = random.Random(seed)
    problems: list[str] = []
    stopped = threading.Event()

    def call() -> None:
        try:
            while not stopped.is_set():
                _check_operators()
                counts["checks beside registrations"] += 1
        except Exception as error:
            problems.append(f"beside a registration: {type(error).__name__}: {error}")

    def register(seed: int) -> None:
        try:
            chance = random.Random(seed)
            for _ in range(TURNS):
                chance.choice([_custom_operator, _library, _override])(chance)
                counts["registrations"] += 1
        except Exception as error:
            problems.append(f"registration: {type(error).__name__}: {error}")

    callers = [threading.Thread(target=call, daemon=True) for _ in range(chance.randint(1, 2))]
    makers = [
        threading.Thread(target=register, args=(seed * 10 + n,), daemon=True)
        for n in range(chance.randint(1, 2))
    ]
    for thread in (*callers, *makers):
        thread.start()
    for thread in makers:
        thread.join(SECONDS)
    stopped.set()
    for thread in (*callers, *makers):
        thread.join(SECONDS)
        if thread.is_alive():
            problems.append("a thread does not end")
    if not problems:
        return None
    return Finding(
        f"registration: {problems[0]}",
        "from tests.torture.families.registration import run_case  # from a checkout's root\n"
        f"print(run_case({seed}))\n",
    )


def _check_operators() -> None:
    x = plugrad.tensor([1.0, 2.0], requires_grad=True)
    (x * x + x.neg()).sum().backward()
    assert x.grad.tolist() == [1.0, 3.0], x.grad.tolist()
    found = func.vmap(func.grad(lambda v: v * v))(plugrad.ones(2)).tolist()
    assert found == [2.0, 2.0], found


def _custom_operator(chance: random.Random) -> None:
    name = f"torture_registration::op{next(_numbers)}"
    op: Any = custom_op(name, lambda x: x * 3, mutates_args=(), schema="(Tensor x) -> Tensor")
    op.register_autograd(lambda ctx, grad: grad * 3)
    op.register_fake(lambda x: plugrad.empty_like(x))
    x = plugrad.ones(2, requires_grad=True)
    op(x).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def _library(chance: random.Random) -> None:
    space = f"torture_library{next(_numbers)}"
    with Library(space, "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
        x = plugrad.ones(2, requires_grad=True)
        getattr(plugrad.ops, space).twice(x).sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]


def _override(chance: random.Random) -> None:
    """A kernel in place of the backend's, which does the same."""
    import numpy as np

    with Library("plugrad", "IMPL") as library:
        library.impl("neg", np.negative, "CPU", allow_override=True)
        x = plugrad.ones(2, requires_grad=True)
        x.neg().sum().backward()
        assert x.grad.tolist() == [-1.0, -1.0]
    assert np.all(plugrad.ones(2).neg().numpy() == -1)
