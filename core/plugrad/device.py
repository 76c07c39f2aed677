"""Devices: a backend's name and, where it has several, an index."""

from __future__ import annotations

import threading
from typing import Any, Final, final

HOST_TYPES: Final = ("cpu", "meta")


@final
class Device:
    """Where a tensor lives: ``plugrad.device("cuda:1")`` or ``plugrad.device("cuda", 1)``.

    Devices are interned: equal devices are the same object, so `is` compares them.
    Use `as_device` to make one.

    Attributes:
        type: the backend's name.
        index: which of its devices, None if it has but one.
        is_host: whether the engine runs its nodes on the thread that called backward.
    """

    def __init__(self, type: str, index: int | None) -> None:
        self.type = type
        self.index = index
        self.is_host: bool = type in HOST_TYPES
        self.text = type if index is None else f"{type}:{index}"

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
        """Within ``with device:`` this thread makes tensors on the device unless told otherwise."""
        _context_stack().append(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        _context_stack().pop()


_interned: Final[dict[tuple[str, int | None], Device]] = {}


def _intern(type: str, index: int | None) -> Device:
    key = (type, index)
    found = _interned.get(key)
    if found is None:
        found = _interned.setdefault(key, Device(type, index))
    return found


CPU: Final = _intern("cpu", None)


def as_device(device: object, index: int | None = None) -> Device:
    """The interned device for a `Device`, a string such as ``"cuda:1"``, or a type and an index.

    Raises:
        TypeError: `device` is neither a Device nor a string.
        RuntimeError: the string is not of the form ``type`` or ``type:index``.
    """
    if isinstance(device, Device):
        if index is not None and index != device.index:
            return _intern(device.type, index)
        return device
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


_local: Final[Any] = threading.local()


def _context_stack() -> list[Device]:
    stack: list[Device] | None = getattr(_local, "contexts", None)
    if stack is None:
        stack = []
        _local.contexts = stack
    return stack


def context_device() -> Device | None:
    """The device of the innermost ``with device:`` block of this thread."""
    stack: list[Device] | None = getattr(_local, "contexts", None)
    return stack[-1] if stack else None
