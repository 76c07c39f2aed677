"""Memory: arrays are freed with their tensors, and repeated steps need no more memory."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any

import plugrad
from plugrad.testing.conformance.kit.matrix import each
from plugrad.testing.conformance.kit.subject import Subject
from plugrad.testing.conformance.kit.trials import Selection, Trial, grouped, tensors_of

STEPS = 20
ROUNDS = 3
SIZE = 64


def references(objects: list[Any]) -> list[int]:
    """How often each object is referred to, by others than the list."""
    return [sys.getrefcount(one) for one in objects]


# The count of an object without other references.
ALONE = references([object()])[0]


def assert_alone(objects: list[Any], what: str) -> None:
    """Assert that only the list refers to these objects."""
    if max(references(objects), default=ALONE) > ALONE:
        gc.collect()
    counts = references(objects)
    found = max(counts, default=ALONE)
    if found > ALONE:
        one = objects[counts.index(found)]
        gc.unfreeze()  # or what the kit found when it began would not be among them
        holders = [each for each in gc.get_referrers(one) if each is not objects]
        gc.freeze()
        held = named(type(each) for each in holders if not isinstance(each, FrameType))
        raise AssertionError(
            f"{found - ALONE} references to {what}, of type {name_of(type(one))}, are left"
            + (f"; they are in objects of the types {held}" if held else "")
        )


def name_of(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}".removeprefix("builtins.")


def named(types: Iterable[type]) -> str:
    """How many there are of each type, most first."""
    counts = Counter(name_of(cls) for cls in types)
    return ", ".join(f"{name} ({count})" for name, count in counts.most_common(8))


def counted() -> dict[type, int]:
    """How many objects of each type there are. It makes none but the result."""
    gc.collect()
    found: dict[type, int] = {}
    for one in gc.get_objects():
        found[type(one)] = found.get(type(one), 0) + 1
    return found


def kept_by(work: Callable[[], object]) -> list[type]:
    """The types of objects that there are after the work, beyond those that there were before."""
    before = counted()
    work()
    after = counted()
    return [cls for cls in after for _ in range(after[cls] - before.get(cls, 0))]


def without_doubles(arrays: list[Any]) -> list[Any]:
    return list({id(array): array for array in arrays}.values())


def one_of_each(subject: Subject, selection: Selection) -> Iterator[Trial]:
    for group in grouped(selection.trials_on(subject)):
        yield group[0]


@each("trial", one_of_each)
def test_arrays_are_freed(subject: Subject, trial: Trial) -> None:
    given, made = _arrays_of_a_run(subject, trial)
    own = [array for array in made if not any(array is other for other in given)]
    del made
    assert_alone(own, "a result")
    del own
    assert_alone(given, "an argument")


def _arrays_of_a_run(subject: Subject, trial: Trial) -> tuple[list[Any], list[Any]]:
    """The arrays of arguments and results; the tensors are gone."""
    result, (args, kwargs) = trial.run(trial.arguments(subject))
    given = [tensor.array for tensor in tensors_of((list(args), list(kwargs.values())))]
    made = [tensor.array for tensor in tensors_of(result)]
    return without_doubles(given), without_doubles(made)


def test_arrays_from_the_host_are_freed(subject: Subject) -> None:
    array = subject.tensor([1.0, 2.0]).array
    assert_alone_of(array)


def assert_alone_of(array: Any) -> None:
    objects = [array]
    del array
    gc.collect()
    # The caller's variable is one more.
    assert references(objects)[0] <= ALONE + 2


def step(subject: Subject, x: Any, w: Any, device: Any) -> None:
    """A step of training: forward, backward, and a write to the parameter."""
    loss = ((x @ w).relu() - x).pow(2).mean()
    (grad,) = plugrad.autograd.grad(loss, [w])
    with plugrad.no_grad():
        w -= grad * 0.01
    loss.item()


def test_repeated_steps_keep_nothing(subject: Subject) -> None:
    subject.needs("mm", "relu", "mean", "sub_.Tensor")
    x = subject.random(SIZE, SIZE)
    w = subject.random(SIZE, SIZE, seed=1).requires_grad_()
    for _ in range(3):
        step(subject, x, w, subject.device)

    def steps() -> None:
        for _ in range(STEPS):
            step(subject, x, w, subject.device)

    kept = kept_by(steps)
    assert len(kept) < STEPS, f"after {STEPS} steps objects are left over, by type: {named(kept)}"


def test_repeated_steps_need_no_more_memory(subject: Subject) -> None:
    """Host memory that Python and NumPy allocate."""
    subject.needs("mm", "relu", "mean", "sub_.Tensor")
    x = subject.random(SIZE, SIZE)
    w = subject.random(SIZE, SIZE, seed=1).requires_grad_()
    grown = []
    tracemalloc.start()
    try:
        for _ in range(ROUNDS):
            gc.collect()
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(STEPS):
                step(subject, x, w, subject.device)
            gc.collect()
            grown.append(tracemalloc.get_traced_memory()[0] - before)
    finally:
        tracemalloc.stop()
    # A cache that fills once makes only one round grow. One leaked array per step would be 20 times
    # this limit in each round.
    assert min(grown) < SIZE * SIZE * 4, f"{grown} bytes more in rounds of {STEPS} steps each"


def test_backward_frees_what_forward_saved(subject: Subject) -> None:
    subject.needs("exp", "sum")
    x = subject.tensor([1.0, 2.0]).requires_grad_()
    y = x.exp()
    loss = y.sum()
    saved = [y.array]
    del y
    assert references(saved)[0] > ALONE
    loss.backward()
    assert_alone(saved, "a saved result")
