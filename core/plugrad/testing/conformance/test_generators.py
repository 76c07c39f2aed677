"""Generators: seeds repeat, states are saved and restored, devices do not share a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.dispatch.backends.active import generator_of
from plugrad.testing.conformance.kit.compare import assert_sound, on_host
from plugrad.testing.conformance.kit.matrix import Item, each, on_devices
from plugrad.testing.conformance.kit.subject import Subject, skip
from plugrad.testing.conformance.kit.trials import Selection

COUNT = 20_000

# Draws of many numbers, what operators they take, and mean and standard deviation to expect.
DRAWS: dict[str, tuple[Callable[..., Any], tuple[str, ...], float, float]] = {
    "rand": (lambda **o: plugrad.rand(COUNT, **o), ("rand",), 0.5, 12**-0.5),
    "randn": (lambda **o: plugrad.randn(COUNT, **o), ("randn",), 0.0, 1.0),
    "randint": (
        lambda **o: plugrad.randint(0, 10, (COUNT,), **o),
        ("randint.low",),
        4.5,
        (99 / 12) ** 0.5,
    ),
    "bernoulli": (
        lambda device, generator=None: plugrad.bernoulli(
            plugrad.full((COUNT,), 0.25, device=device), generator=generator
        ),
        ("bernoulli",),
        0.25,
        (3 / 16) ** 0.5,
    ),
    "uniform_": (
        lambda device, generator=None: plugrad.empty(COUNT, device=device).uniform_(
            -1, 3, generator=generator
        ),
        ("uniform_",),
        1.0,
        4 * 12**-0.5,
    ),
    "normal_": (
        lambda device, generator=None: plugrad.empty(COUNT, device=device).normal_(
            2, 3, generator=generator
        ),
        ("normal_",),
        2.0,
        3.0,
    ),
    "exponential_": (
        lambda device, generator=None: plugrad.empty(COUNT, device=device).exponential_(
            2, generator=generator
        ),
        ("exponential_",),
        0.5,
        0.5,
    ),
}


def draws(subject: Subject, selection: Selection) -> list[Item]:
    return [
        Item(name, draw, f"plugrad::{draw[1][0]}")
        for name, draw in DRAWS.items()
        if subject.has(*(f"plugrad::{op}" for op in draw[1]))
    ]


def new_generator(subject: Subject, device: Any = None) -> Any:
    """A generator, or the test is skipped."""
    try:
        return plugrad.Generator(device or subject.device)
    except NotImplementedError:
        skip("the backend has no random generator")


def some(subject: Subject, generator: Any = None, device: Any = None) -> list[float]:
    """Numbers drawn with whatever of the usual operators the backend has."""
    options = {} if generator is None else {"generator": generator}
    place = device or subject.device
    name = "rand" if subject.has("plugrad::rand") else "randn"
    subject.needs(name)
    drawn: list[float] = getattr(plugrad, name)(8, device=place, **options).tolist()
    return drawn


def test_it_has_the_methods(subject: Subject) -> None:
    generator = new_generator(subject)
    for name in ("manual_seed", "seed", "initial_seed", "get_state", "set_state"):
        assert callable(getattr(generator, name)), name


def test_a_seed_repeats_the_numbers(subject: Subject) -> None:
    generator = new_generator(subject)
    generator.manual_seed(5)
    first = some(subject, generator)
    assert generator.initial_seed() == 5
    second = some(subject, generator)
    generator.manual_seed(5)
    assert some(subject, generator) == first
    assert some(subject, generator) == second
    assert first != second
    generator.manual_seed(6)
    assert some(subject, generator) != first


def test_seed_takes_another_start(subject: Subject) -> None:
    generator = new_generator(subject)
    generator.manual_seed(5)
    first = some(subject, generator)
    seed = generator.seed()
    assert generator.initial_seed() == seed
    drawn = some(subject, generator)
    assert drawn != first
    generator.manual_seed(seed)
    assert some(subject, generator) == drawn


def test_a_state_is_saved_and_restored(subject: Subject) -> None:
    generator = new_generator(subject)
    generator.manual_seed(7)
    some(subject, generator)
    state = generator.get_state()
    expected = [some(subject, generator), some(subject, generator)]
    generator.set_state(state)
    assert [some(subject, generator), some(subject, generator)] == expected
    other = new_generator(subject)
    other.set_state(state)
    assert some(subject, other) == expected[0]


def test_a_state_is_bytes(subject: Subject) -> None:
    state = np.asarray(new_generator(subject).get_state())
    assert state.dtype == np.uint8


def test_a_saved_state_does_not_move_on(subject: Subject) -> None:
    generator = new_generator(subject)
    generator.manual_seed(3)
    state = generator.get_state()
    kept = np.array(state)
    some(subject, generator)
    np.testing.assert_array_equal(np.asarray(state), kept)


def test_generators_are_independent(subject: Subject) -> None:
    first, second = new_generator(subject), new_generator(subject)
    first.manual_seed(1)
    second.manual_seed(1)
    expected = some(subject, first)
    some(subject, first)
    assert some(subject, second) == expected


@each("device", on_devices)
def test_manual_seed_seeds_every_device(subject: Subject, device: Any) -> None:
    new_generator(subject)
    plugrad.manual_seed(11)
    expected = some(subject, device=device)
    some(subject, device=device)
    plugrad.manual_seed(11)
    assert some(subject, device=device) == expected


def test_devices_have_streams_of_their_own(subject: Subject) -> None:
    new_generator(subject)
    if len(subject.devices) < 2:
        skip("the backend has one device")
    first, second = subject.devices[:2]
    assert generator_of(first) is not generator_of(second)
    plugrad.manual_seed(2)
    expected = some(subject, device=second)
    plugrad.manual_seed(2)
    some(subject, device=first)
    assert some(subject, device=second) == expected


def test_fork_rng_puts_the_state_back(subject: Subject) -> None:
    new_generator(subject)
    plugrad.manual_seed(4)
    expected = some(subject)
    plugrad.manual_seed(4)
    with plugrad.random.fork_rng([subject.device]):
        some(subject)
    assert some(subject) == expected


@each("draw", draws)
def test_moments(subject: Subject, draw: tuple[Callable[..., Any], Any, float, float]) -> None:
    function, _, mean, deviation = draw
    generator = new_generator(subject)
    generator.manual_seed(0)
    drawn = function(device=subject.device, generator=generator)
    assert_sound(subject, drawn)
    numbers = on_host(drawn).astype(float)
    # Five standard deviations of the mean; the deviation's own is of the same order.
    assert abs(numbers.mean() - mean) < 5 * deviation / COUNT**0.5
    assert abs(numbers.std() - deviation) < 8 * deviation / COUNT**0.5
    # Neighbours have nothing to do with each other.
    centred = (numbers - numbers.mean()) / numbers.std()
    assert abs((centred[1:] * centred[:-1]).mean()) < 5 / COUNT**0.5


def test_a_permutation_has_every_number_once(subject: Subject) -> None:
    subject.needs("randperm")
    new_generator(subject)
    drawn = plugrad.randperm(200, device=subject.device).tolist()
    assert sorted(drawn) == list(range(200))
    assert drawn != list(range(200))


def test_a_generator_of_another_device_is_refused_or_unused(subject: Subject) -> None:
    """A backend without generators says so."""
    if "random" in subject.capabilities:
        return
    with pytest.raises(NotImplementedError, match="no random generator"):
        plugrad.Generator(subject.device)
