"""The random states of devices: saved, and restored when a function runs again."""

from __future__ import annotations

# Interpreted: what it calls takes much longer.
import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from plugrad.device import Device
from plugrad.dispatch.backends.active import active_backends, default_device, generator_of
from plugrad.dispatch.local_state import LocalState
from plugrad.dispatch.scope import Scope
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.annotations import explains


def _tensors_in(value: Any) -> Iterator[TensorBase]:
    if isinstance(value, TensorBase):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors_in(item)


def get_device_states(*args: Any) -> tuple[list[Device], list[Any]]:
    """Devices that a function of `args` may draw random numbers on, and their generators' states.

    The default device, the host, and the devices of tensors in `args`, also within lists, tuples
    and dicts.

    Args:
        args: anything.

    >>> import plugrad
    >>> devices, states = plugrad.utils.checkpoint.get_device_states(plugrad.ones(1))
    >>> devices
    [device(type='cpu')]
    """
    devices = {default_device(): None}
    for active in active_backends():
        if active.name == "cpu":
            devices[active.device(None)] = None
    for tensor in _tensors_in(args):
        devices[tensor.device] = None
    found: list[Device] = []
    states: list[Any] = []
    for device in devices:
        with contextlib.suppress(NotImplementedError):
            states.append(generator_of(device).get_state())
            found.append(device)
    return found, states


@explains
def set_device_states(devices: Iterable[Device], states: Iterable[Any]) -> None:
    """Restore the states of devices' generators that `get_device_states` returned.

    Args:
        devices: the devices of the generators.
        states: one for each device.

    >>> import plugrad
    >>> devices, states = plugrad.utils.checkpoint.get_device_states()
    >>> x = plugrad.rand(2)
    >>> plugrad.utils.checkpoint.set_device_states(devices, states)
    >>> plugrad.equal(plugrad.rand(2), x)
    True
    """
    for device, state in zip(devices, states, strict=True):
        generator_of(device).set_state(state)


class RandomState(Scope):
    """The random state at one time; as a context manager, it is that time again inside."""

    def __init__(self, preserved: bool, args: tuple[Any, ...]) -> None:
        self.devices: list[Device] = []
        self.states: list[Any] = []
        if preserved:
            self.devices, self.states = get_device_states(*args)

    def read(self, state: LocalState) -> Any:
        return [generator_of(device).get_state() for device in self.devices]

    def change(self, state: LocalState) -> None:
        set_device_states(self.devices, self.states)

    def restore(self, state: LocalState, before: Any) -> None:
        set_device_states(self.devices, before)
