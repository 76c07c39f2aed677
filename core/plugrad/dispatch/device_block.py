"""``with plugrad.device(...):`` as a scope, which restores the former choice however it is left."""

from __future__ import annotations

from typing import Any, final

from plugrad.device import Device, choose_devices, chosen_devices, thread_default
from plugrad.dispatch.local_state import LocalState
from plugrad.dispatch.scope import Scope


@final
class DeviceBlock(Scope):
    """What `with` gets instead of a `Device`, which is one object for all blocks.

    A device that has a name, as in ``with x.device:``, is entered itself. An interrupt while that
    block is left may leave the thread with the device as its default.
    """

    def __init__(self, device: Device) -> None:
        self.device = device

    def read(self, state: LocalState) -> Any:
        chosen = chosen_devices()
        return chosen[1] if chosen else ()

    def change(self, state: LocalState) -> None:
        self.device.__enter__()

    def restore(self, state: LocalState, before: Any) -> None:
        # What `set_default_device` chose within the block stays.
        choose_devices((thread_default(), before))

    def value(self) -> Device:
        return self.device
