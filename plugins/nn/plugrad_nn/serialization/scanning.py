"""Looks through a pickle without making anything: which names it uses, and which storages."""

from __future__ import annotations

from typing import Any, BinaryIO

from plugrad_nn.serialization.opcodes import SafeUnpickler


class Placeholder:
    """A placeholder for an object in a pickle.

    Attributes:
        name: the full name if the pickle names it; else empty.
    """

    def __init__(self, name: str = "") -> None:
        self.name = name

    def append(self, item: Any) -> None:
        """Nothing is kept."""

    def __setitem__(self, key: Any, value: Any) -> None:
        """Nothing is kept."""


class Scan:
    """The contents found in a pickle.

    Args:
        file: its position is the start of the pickle, and afterwards its end.
        length: how many bytes are left in the file.

    Attributes:
        names: all names, in the order of their first use.
        identifiers: the persistent ids of storages; classes in them are placeholders.

    Raises:
        pickle.UnpicklingError: the pickle is damaged.
    """

    def __init__(self, file: BinaryIO, length: int) -> None:
        self.names: dict[str, None] = {}
        self.identifiers: list[Any] = []
        SafeUnpickler(file, length, self, self._identifier).load()

    def _identifier(self, identifier: Any) -> Placeholder:
        self.identifiers.append(identifier)
        return Placeholder()

    # The lookups of the unpickler.

    def find(self, module: str, name: str) -> Placeholder:
        """Notes a name."""
        full = f"{module}.{name}"
        self.names[full] = None
        return Placeholder(full)

    def call(self, function: Any, args: tuple[Any, ...]) -> Placeholder:
        """Calls nothing."""
        return Placeholder()

    def new(self, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Placeholder:
        """Makes nothing."""
        return Placeholder()

    def set_state(self, instance: Any, state: Any) -> None:
        """Changes nothing."""

    def is_allowed_type(self, cls: type) -> bool:
        """Placeholders take anything."""
        return cls is Placeholder
