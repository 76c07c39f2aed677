"""Random numbers: seeding, and the state of the default generators."""

from __future__ import annotations

import os
from typing import Any

from plugrad.dispatch.backend import canonical_device, find_backend, generator_of, seed_everything


def manual_seed(seed: Any) -> Any:
    """Seed the generators of all devices; returns the default device's generator.

    >>> import plugrad
    >>> _ = plugrad.manual_seed(0)
    >>> a = plugrad.rand(2)
    >>> _ = plugrad.manual_seed(0)
    >>> bool((plugrad.rand(2) == a).all())
    True
    """
    number = int(seed)
    seed_everything(number)
    return default_generator()


def seed() -> int:
    """Seed the generators of all devices with a number from the operating system; returns it."""
    number = int.from_bytes(os.urandom(8), "little") >> 1
    seed_everything(number)
    return number


def default_generator() -> Any:
    """The generator of the default device."""
    return generator_of(canonical_device(None))


def initial_seed() -> int:
    """The seed that the default device's generator started from."""
    found: int = default_generator().initial_seed()
    return found


def get_rng_state() -> Any:
    """The state of the default device's generator."""
    return default_generator().get_state()


def set_rng_state(new_state: Any) -> None:
    """Put the default device's generator into a state that `get_rng_state` returned."""
    default_generator().set_state(new_state)


def Generator(device: object = "cpu") -> Any:
    """A new random generator for a device, to be passed as `generator=`."""
    place = canonical_device(device)
    return find_backend(place.type).backend.make_generator(place.index or 0)
