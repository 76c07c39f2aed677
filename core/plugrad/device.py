"""Devices: a backend's name and, if it has several devices, an index."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final, final

HOST_TYPES: Final = ("cpu", "meta")


@final
class Device:
    """The device of a tensor: ``plugrad.device("cuda:1")`` or ``plugrad.device("cuda", 1)``.

    Devices are interned: equal devices are the same object, so `is` compares them.
    Use `as_device` to make one.

    Attributes:
        type: the backend's name.
        index: the number of the device, None if the backend has only one.
        is_host: whether the engine runs its nodes on the thread that called backward.
    """

    def __init__(self, type: str, index: int | None = None) -> None:
        self.type = type
        self.index = index
        self.is_host: bool = type in HOST_TYPES
        self.text: str = type if index is None else f"{type}:{index}"

    def __repr__(self) -> str:
        if self.index is None:
            return f"device(type='{self.type}')"
        return f"device(type='{self.type}', index={self.index})"

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> Any:
        return (as_device, (self.text,))

    def __copy__(self) -> Device:
        return self

    def __deepcopy__(self, memo: object) -> Device:
        return self

    def __enter__(self) -> Device:
        """Within ``with device:`` this thread creates tensors on the device by default."""
        _choices.made = True
        _local.contexts = (*_contexts(), self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        _local.contexts = _contexts()[:-1]


_interned: Final[dict[tuple[str, int | None], Device]] = {}


def _intern(type: str, index: int | None) -> Device:
    key = (type, index)
    found = _interned.get(key)
    if found is None:
        found = _interned.setdefault(key, Device(type, index))
    return found


CPU: Final = _intern("cpu", None)


@final
class _Accelerator:
    """The device type that a bare number stands for; a higher layer sets it."""

    def __init__(self) -> None:
        self.source: Callable[[], str] | None = None


_accelerator: Final = _Accelerator()


def set_accelerator_source(source: Callable[[], str]) -> None:
    """`source()` returns the device type of a plain number, as in ``device=1``."""
    _accelerator.source = source


def accelerator_type() -> str:
    """The device type of a plain number; RuntimeError if there is none."""
    if _accelerator.source is None:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return _accelerator.source()


def as_device(device: object, index: int | None = None) -> Device:
    """The interned device for a `Device`, a string such as ``"cuda:1"``, a type and an index, or
    a number, which is one of the accelerator's devices.

    Raises:
        TypeError: `device` is neither a Device nor a string nor a number.
        RuntimeError: the string is not of the form ``type`` or ``type:index``; or a number was
            given, and there is no accelerator.
    """
    if isinstance(device, Device):
        if index is not None and index != device.index:
            return _intern(device.type, index)
        return device
    if isinstance(device, int) and not isinstance(device, bool) and index is None:
        if device < 0:
            raise RuntimeError(f"Device index must not be negative, got {device}")
        return _intern(accelerator_type(), device)
    if not isinstance(device, str):
        raise TypeError(
            f"device(): argument 'type' must be str or device, not {type(device).__name__}"
        )
    name, colon, number = device.partition(":")
    if not name.isidentifier() or (colon and not number.isdecimal()):
        raise RuntimeError(
            f"Invalid device string: {device!r}; expected a backend's name, "
            "or a name and an index such as 'cuda:0'"
        )
    if colon:
        if index is not None:
            raise RuntimeError(
                f"type (string) must not include an index because index was passed explicitly: "
                f"{device}"
            )
        index = int(number)
    return _intern(name, index)


# By thread: `contexts`, the blocks ``with device:`` that it is in, and `default`.
_local: Final[Any] = threading.local()


@final
class _Choices:
    """Whether any thread ever chose a device; until then there is nothing to look up."""

    def __init__(self) -> None:
        self.made: bool = False


_choices: Final = _Choices()


def _contexts() -> tuple[Device, ...]:
    found: tuple[Device, ...] = getattr(_local, "contexts", ())
    return found


def context_device() -> Device | None:
    """The device of the innermost ``with device:`` block of this thread."""
    contexts = _contexts()
    return contexts[-1] if contexts else None


def thread_default() -> Device | None:
    """What `set_default_device` chose on this thread."""
    found: Device | None = getattr(_local, "default", None)
    return found


def set_thread_default(device: Device | None) -> None:
    """Choose the device of tensors that this thread makes outside of ``with device:``."""
    _choices.made = True
    _local.default = device


def chosen_device() -> Device | None:
    """The device that this thread chose for new tensors, in either way."""
    if not _choices.made:
        return None
    contexts = _contexts()
    return contexts[-1] if contexts else thread_default()


# A default, and the devices of the blocks, innermost last.
Chosen = tuple[Any, tuple[Any, ...]]


def chosen_devices() -> Chosen | None:
    """All choices of this thread, for `choose_devices` on another one; None if there are none."""
    return (thread_default(), _contexts()) if _choices.made else None


def choose_devices(chosen: Chosen | None) -> None:
    """Apply the result of `chosen_devices` of another thread, or of an earlier time."""
    if chosen is None:
        if not _choices.made:
            return
        chosen = (None, ())
    _local.default = chosen[0]
    _local.contexts = chosen[1]
