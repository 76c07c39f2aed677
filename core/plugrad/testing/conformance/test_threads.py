"""Threads: several work on the backend at once and get what one alone gets."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from plugrad.testing.conformance.kit.compare import on_host
from plugrad.testing.conformance.kit.matrix import each
from plugrad.testing.conformance.kit.subject import Subject
from plugrad.testing.conformance.kit.trials import Selection, Trial, grouped, tensors_of

THREADS = 4
ROUNDS = 25


@contextmanager
def hasty_switching() -> Iterator[None]:
    """Threads take turns as often as can be."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


def at_once(works: list[Callable[[], None]]) -> None:
    """Run functions on threads that start together; raises what one of them raises."""
    barrier = threading.Barrier(len(works))
    errors: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            barrier.wait(30)
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    with hasty_switching():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    if errors:
        raise errors[0]
    assert not any(thread.is_alive() for thread in threads), "threads wait for each other"


def chain(x: Any, w: Any) -> list[np.ndarray[Any, Any]]:
    """Forward and backward of a small computation."""
    x = x.detach().requires_grad_()
    y = ((x @ w).exp() * x.sum(0)).sum()
    y.backward()
    return [on_host(y), on_host(x.grad)]


def test_forward_and_backward(subject: Subject) -> None:
    subject.needs("mm", "exp", "sum", "mul.Tensor")
    inputs = []
    for n in range(THREADS):
        device = subject.devices[n % len(subject.devices)]
        inputs.append([subject.random(3, 3, seed=seed, device=device) for seed in (n, n + 99)])
    expected = [chain(*pair) for pair in inputs]

    def work(number: int) -> None:
        for _ in range(ROUNDS):
            for found, wanted in zip(chain(*inputs[number]), expected[number], strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-5)

    at_once([lambda number=number: work(number) for number in range(THREADS)])  # type: ignore[misc]


def kernels(subject: Subject, selection: Selection) -> Iterator[Trial]:
    """One trial for each operator that the backend has a kernel of its own for."""
    seen: set[str] = set()
    for group in grouped(selection.trials_on(subject)):
        for trial in group:
            known = subject.availability.get(trial.operator)
            native = known is not None and known.kind == "native"
            if native and trial.operator not in seen and trial.tensors():
                seen.add(trial.operator)
                yield trial


@each("trial", kernels)
def test_kernel(subject: Subject, trial: Trial) -> None:
    """Two threads call a kernel with arguments of their own."""
    other = trial.in_dtype(trial.dtype or subject.floating)
    seeds = (trial.seed(), trial.seed() + 1)

    def call(seed: int) -> list[Any]:
        made = other.arguments(subject)
        made.rng = np.random.default_rng(seed)
        return [on_host(tensor) for tensor in tensors_of(other.run(made)[0])]

    try:
        expected = [call(seed) for seed in seeds]
    except (RuntimeError, ValueError, IndexError):
        pytest.skip("other values are not valid arguments")

    def work(number: int) -> None:
        for _ in range(4):
            for found, wanted in zip(call(seeds[number]), expected[number], strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)

    at_once([lambda: work(0), lambda: work(1)])


def test_tensors_go_from_thread_to_thread(subject: Subject) -> None:
    """A graph is built on one thread and backward runs on another."""
    subject.needs("mul.Tensor", "sum")
    leaves = [subject.tensor([1.0, 2.0, 3.0]).requires_grad_() for _ in range(THREADS)]
    losses = [(leaf * leaf).sum() for leaf in leaves]
    at_once([loss.backward for loss in losses])
    for leaf in leaves:
        assert on_host(leaf.grad).tolist() == [2.0, 4.0, 6.0]
