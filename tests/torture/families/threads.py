"""Several threads at once: backwards, transforms, blocks and first uses, with exact results."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import plugrad
from plugrad import func
from plugrad.autograd import checkpoint
from tests.torture.engine.random_passes import RandomPasses
from tests.torture.engine.toy_devices import have_toy_devices
from tests.torture.finding import Finding, counts
from tests.torture.state import differences, state

NAME = "threads"
SECONDS = 20.0
TURNS = 5


def run_case(seed: int) -> Finding | None:
    have_toy_devices()
    chance = random.Random(seed)
    callers = chance.randint(2, 4)
    passes = RandomPasses(chance, callers, chance.randint(3, 10))
    problems: list[str] = []
    start = threading.Barrier(callers + 1)
    works = [chance.sample(WORKS, 4) for _ in range(callers)]

    def work(caller: int) -> None:
        try:
            before = state()
            start.wait(SECONDS)
            for turn in range(TURNS):
                passes.backward(caller)
                works[caller][turn % 4](random.Random(seed + caller * 100 + turn))
            left = differences(before | {"threads that are watched": state()[_WATCHED]})
            if left:
                problems.append(f"a thread is left with {left}")
        except Exception as error:
            problems.append(f"{type(error).__name__}: {error}")

    threads = [
        threading.Thread(target=work, args=(caller,), daemon=True) for caller in range(callers)
    ]
    for thread in threads:
        thread.start()
    start.wait(SECONDS)
    for thread in threads:
        thread.join(SECONDS)
        if thread.is_alive():
            problems.append("a thread does not end")
    counts["backwards in threads"] += callers * TURNS
    if not problems:
        try:
            passes.check([TURNS] * callers)
        except AssertionError as error:
            problems.append(str(error))
    if not problems:
        return None
    return Finding(
        f"threads: {problems[0]}",
        "from tests.torture.families.threads import run_case  # from a checkout's root\n"
        f"print(run_case({seed}))\n",
    )


_WATCHED = "threads that are watched"


def _is(found: Any, wanted: list[Any]) -> None:
    assert found.tolist() == wanted, f"{found.tolist()} instead of {wanted}"


def _grad(chance: random.Random) -> None:
    value = float(chance.randint(1, 5))
    _is(func.grad(lambda v: (v * v).sum())(plugrad.full((2,), value)), [2 * value] * 2)


def _vmap(chance: random.Random) -> None:
    n = chance.randint(1, 4)
    _is(func.vmap(func.grad(lambda v: v * v))(plugrad.ones(n)), [2.0] * n)


def _jvp(chance: random.Random) -> None:
    value = float(chance.randint(1, 5))
    x = plugrad.full((2,), value)
    _is(func.jvp(lambda v: v * v, (x,), (plugrad.ones(2),))[1], [2 * value] * 2)


def _hessian(chance: random.Random) -> None:
    _is(func.hessian(lambda v: (v * v).sum())(plugrad.ones(2)), [[2.0, 0.0], [0.0, 2.0]])


def _blocks(chance: random.Random) -> None:
    x = plugrad.ones(2, requires_grad=True)
    with plugrad.no_grad():
        assert not (x * 2).requires_grad
    with plugrad.inference_mode():
        assert (x * 2).is_inference()
    with plugrad.autocast("cpu"):
        assert (plugrad.ones(2, 2) @ plugrad.ones(2, 2)).dtype is plugrad.bfloat16
    assert (x * 2).requires_grad


def _checkpoint(chance: random.Random) -> None:
    x = plugrad.ones(2, requires_grad=True)
    checkpoint.checkpoint(lambda v: v * v * v, x, use_reentrant=False).sum().backward()
    _is(x.grad, [3.0, 3.0])


def _nested(chance: random.Random) -> None:
    x = plugrad.full((2,), 3.0, requires_grad=True)
    (first,) = plugrad.autograd.grad((x * x * x).sum(), x, create_graph=True)
    (second,) = plugrad.autograd.grad(first.sum(), x)
    _is(second, [18.0, 18.0])


WORKS: list[Callable[[random.Random], None]] = [
    _grad,
    _vmap,
    _jvp,
    _hessian,
    _blocks,
    _checkpoint,
    _nested,
]
