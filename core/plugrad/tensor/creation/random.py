"""Random numbers: seeding, and the state of the default generators."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, final

import numpy as np

from plugrad.device import CPU, Device
from plugrad.dispatch.backends.active import (
    active_backends,
    canonical_device,
    generator_of,
    seed_everything,
)
from plugrad.dispatch.local_state import LocalState
from plugrad.dispatch.scope import Scope, SetAtOnce
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.arguments import raise_argument_error, type_name
from plugrad.tensor.interop.arrays import host_array, share_numpy


def manual_seed(seed: Any) -> Any:
    """Seed the generators of all devices; returns the default device's generator.

    >>> import plugrad
    >>> _ = plugrad.manual_seed(0)
    >>> a = plugrad.rand(2)
    >>> _ = plugrad.manual_seed(0)
    >>> bool((plugrad.rand(2) == a).all())
    True
    """
    if isinstance(seed, (str, bytes)) or not (
        hasattr(type(seed), "__int__") or hasattr(type(seed), "__index__")
    ):
        raise TypeError(f"manual_seed expected a long, but got {type_name(seed)}")
    number = int(seed)
    seed_everything(number)
    return default_generator()


def seed() -> int:
    """Seed the generators of all devices with a number from the operating system; returns it.

    >>> import plugrad
    >>> plugrad.seed() == plugrad.initial_seed()
    True
    """
    number = int.from_bytes(os.urandom(8), "little") >> 1
    seed_everything(number)
    return number


def default_generator(device: object = None) -> Any:
    """The generator that a device's random operators draw from, unless they are given one.

    Args:
        device: by default the default device.

    Raises:
        TypeError, RuntimeError: `device` names no device.

    >>> import plugrad
    >>> plugrad.default_generator.initial_seed() == plugrad.initial_seed()
    True
    """
    return generator_of(canonical_device(device))


def initial_seed() -> int:
    """The seed that the default device's generator started from.

    >>> import plugrad
    >>> _ = plugrad.manual_seed(7)
    >>> _ = plugrad.rand(3)
    >>> plugrad.initial_seed()
    7
    """
    found: int = default_generator().initial_seed()
    return found


def get_rng_state() -> Any:
    """The state of the default device's generator, as a tensor of bytes.

    >>> import plugrad
    >>> state = plugrad.get_rng_state()
    >>> first = plugrad.rand(3)
    >>> plugrad.set_rng_state(state)
    >>> bool((plugrad.rand(3) == first).all())
    True
    """
    return share_numpy(np.asarray(default_generator().get_state()), CPU)


def set_rng_state(new_state: Any) -> None:
    """Put the default device's generator into a state that `get_rng_state` returned.

    >>> import plugrad
    >>> state = plugrad.manual_seed(0).get_state()
    >>> first = plugrad.rand(3)
    >>> plugrad.set_rng_state(state)
    >>> bool((plugrad.rand(3) == first).all())
    True
    """
    state: Any = host_array(new_state) if isinstance(new_state, TensorBase) else new_state
    default_generator().set_state(state)


@final
class fork_rng(Scope):
    """Within the block random numbers are drawn as usual; after it the generators are restored.

    Args:
        devices: the devices with generators to save, by name or index, in addition to the host's;
            by default all.
        enabled: False makes it do nothing.
        device_type: the type of devices that are given only by index.

    >>> import plugrad
    >>> with plugrad.random.fork_rng():
    ...     a = plugrad.rand(2)
    >>> bool((plugrad.rand(2) == a).all())
    True
    """

    def __init__(
        self, devices: Any = None, enabled: bool = True, *, device_type: str = "cuda"
    ) -> None:
        self.enabled = enabled
        self.places: list[Device] = [CPU]
        if devices is None:
            for active in active_backends():
                for index in range(active.backend.device_count()):
                    self._add(active.device(index))
        else:
            if not isinstance(devices, Iterable):
                raise_argument_error("fork_rng", "devices", 1, "sequence", devices)
            for device in devices:
                named = f"{device_type}:{device}" if isinstance(device, int) else device
                self._add(canonical_device(named))

    def _add(self, place: Device) -> None:
        if place not in self.places:
            self.places.append(place)

    def read(self, state: LocalState) -> Any:
        if not self.enabled:
            return []
        return [generator_of(place).get_state() for place in self.places]

    def change(self, state: LocalState) -> None:
        pass

    def restore(self, state: LocalState, before: Any) -> None:
        for place, random_state in zip(self.places, before):  # noqa: B905  # none if not enabled
            generator_of(place).set_state(random_state)


@final
class use_host_numbers(SetAtOnce):
    """All devices get random numbers that the CPU's generator draws: one seed, the same numbers.

    For tests that compare devices. It holds for the calling thread, until it is called with False;
    as a context manager, until the end of the block. Generators that are passed must be the CPU's.
    A function that is being traced cannot draw so: RuntimeError.

    Args:
        mode: False lets backends draw by themselves again.

    >>> import plugrad
    >>> with plugrad.random.use_host_numbers():
    ...     _ = plugrad.manual_seed(0)
    ...     a = plugrad.rand(2)
    """

    def prepare(self, mode: bool = True) -> None:
        self.mode = mode

    def read(self, state: LocalState) -> Any:
        return state.host_numbers

    def change(self, state: LocalState) -> None:
        state.host_numbers = self.mode

    def restore(self, state: LocalState, before: Any) -> None:
        state.host_numbers = before
