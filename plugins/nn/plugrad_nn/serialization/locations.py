"""Devices in files: the tag that a storage is saved with, and where it is put when it is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import plugrad
from plugrad.plugins import BackendNotFoundError, PluginError
from plugrad.plugins.printing import printed_name
from plugrad.types import Device

Storage: TypeAlias = Any  # plugrad.UntypedStorage or plugrad.TypedStorage
Tagger = Callable[[Storage], str | None]
Deserializer = Callable[[Storage, str], Storage | None]
MapLocation: TypeAlias = Callable[[Storage, str], Storage | None] | Device | Mapping[str, str]

_packages: list[tuple[int, Tagger, Deserializer]] = []


def register_package(priority: int, tagger: Tagger, deserializer: Deserializer) -> None:
    """Say how storages of further devices are tagged in files, and restored.

    Args:
        priority: functions with a lower number are called first, and all before plugrad's own.
        tagger: gets a storage, returns its tag or None.
        deserializer: gets a storage on the CPU and a tag, returns the storage to use or None.

    >>> import plugrad
    >>> def deserializer(storage, tag):
    ...     return storage if tag == "fpga" else None
    >>> plugrad.serialization.register_package(5, lambda storage: None, deserializer)
    >>> storage = plugrad.ones(2).untyped_storage()
    >>> plugrad.serialization.default_restore_location(storage, "fpga") is storage
    True
    """
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda package: package[0])


def location_tag(storage: Storage) -> str:
    """The tag in a file for the device of a storage, such as ``"cpu"``.

    Args:
        storage: of any device.

    >>> import plugrad
    >>> plugrad.serialization.location_tag(plugrad.ones(2).untyped_storage())
    'cpu'
    """
    for _, tagger, _ in _packages:
        tag = tagger(storage)
        if tag:
            return tag
    return str(storage.device)


def default_restore_location(storage: Storage, location: str) -> Storage:
    """A storage on the device that a tag names.

    Args:
        storage: one on the CPU.
        location: the tag, such as ``"cuda:0"``.

    Raises:
        RuntimeError: the tag names no device, or a device that does not exist.

    >>> import plugrad
    >>> storage = plugrad.ones(2).untyped_storage()
    >>> plugrad.serialization.default_restore_location(storage, "meta").device
    device(type='meta')
    """
    for _, _, deserializer in _packages:
        restored = deserializer(storage, location)
        if restored is not None:
            return restored
    try:
        device = plugrad.device(location)
    except (RuntimeError, TypeError, BackendNotFoundError, PluginError) as error:
        raise _not_there(location, error) from error
    if device == storage.device:
        return storage
    try:
        return storage.to(device=device)
    except (RuntimeError, BackendNotFoundError, PluginError) as error:
        raise _not_there(str(location), error) from error


def _not_there(location: str, error: Exception) -> RuntimeError:
    kind, _, index = str(location).partition(":")
    library = printed_name()
    return RuntimeError(
        f"Attempting to deserialize object on a {kind.upper() if kind == 'cuda' else kind} device "
        f"but there is none{f' of index {index}' if index else ''}. If you are running on a "
        f"CPU-only machine, please use {library}.load with map_location={library}.device('cpu') to "
        f"map your storages to the CPU. {error}"
    )


def restore_function(map_location: MapLocation) -> Callable[[Storage, str], Storage]:
    """The function that `load` calls with each storage, on the CPU, and its tag.

    Raises:
        TypeError: `map_location` has another type.
    """
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, Mapping):
        places = map_location

        def by_tag(storage: Storage, location: str) -> Storage:
            return default_restore_location(storage, places.get(location, location))

        return by_tag
    if isinstance(map_location, str | plugrad.device):
        place = str(map_location)
        return lambda storage, location: default_restore_location(storage, place)
    if not callable(map_location):
        raise TypeError(
            "load: map_location must be a device, its name, a dict of names or a function, got "
            f"{type(map_location).__name__}"
        )
    chosen = map_location

    def by_function(storage: Storage, location: str) -> Storage:
        found = chosen(storage, location)
        if found is None:
            return default_restore_location(storage, location)
        if isinstance(found, plugrad.Tensor):
            return found.untyped_storage()
        if not isinstance(found, plugrad.TypedStorage | plugrad.UntypedStorage):
            raise TypeError(
                f"load: map_location must return a storage or None, got {type(found).__name__}"
            )
        return found

    return by_function
