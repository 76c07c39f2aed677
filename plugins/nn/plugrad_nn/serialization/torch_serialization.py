"""The smaller names of `torch.serialization`: constants of its files, versions, types, devices."""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

import plugrad
from plugrad_nn.serialization.locations import default_restore_location
from plugrad_nn.serialization.storage_types import NAMES_OF_STORAGES, STORAGES

# The pickle protocol of the files, and the separator in the keys of storages that are a view.
DEFAULT_PROTOCOL: Final = 2
STORAGE_KEY_SEPARATOR: Final = ","


class StorageType:
    """The dtype for the name of a storage class in files.

    Args:
        name: such as ``"FloatStorage"``.

    Raises:
        KeyError: nothing has that name.

    >>> import plugrad
    >>> plugrad.serialization.StorageType("FloatStorage")
    StorageType(dtype=plugrad.float32)
    """

    def __init__(self, name: str) -> None:
        self._dtype: plugrad.dtype = STORAGES[name].dtype

    @property
    def dtype(self) -> plugrad.dtype:
        """Of the storages' elements."""
        return self._dtype

    def __repr__(self) -> str:
        return f"StorageType(dtype={self._dtype})"


class SourceChangeWarning(Warning):
    """PyTorch's warning when the source of a class differs from that in an old file. plugrad does
    not read the source in files, and never gives this warning. It exists for programs that filter
    it.

    >>> import plugrad, warnings
    >>> warnings.simplefilter("ignore", plugrad.serialization.SourceChangeWarning)
    """


@contextlib.contextmanager
def mkdtemp() -> Iterator[str]:
    """Context manager: a new folder, which is deleted with its contents after the block.

    >>> import os, plugrad
    >>> with plugrad.serialization.mkdtemp() as folder:
    ...     os.listdir(folder)
    []
    >>> os.path.exists(folder)
    False
    """
    with tempfile.TemporaryDirectory() as folder:
        yield folder


def check_module_version_greater_or_equal(
    module: ModuleType, req_version_tuple: tuple[Any, ...], error_if_malformed: bool = True
) -> bool:
    """Whether a module's ``__version__`` is at least the one given.

    Args:
        module: the module with the version to compare.
        req_version_tuple: the parts of the least version; each part of the module's is converted
            to its type.
        error_if_malformed: False warns, and answers True, where the version cannot be read.

    Raises:
        RuntimeError: it cannot be read.

    >>> import numpy, plugrad
    >>> plugrad.serialization.check_module_version_greater_or_equal(numpy, (1, 20))
    True
    """
    try:
        parts = module.__version__.split(".")
        found = tuple(type(part)(parts[place]) for place, part in enumerate(req_version_tuple))
        return found >= req_version_tuple
    except Exception as error:
        message = (
            f"'{module.__name__}' module version string is malformed "
            f"'{getattr(module, '__version__', None)}' and cannot be compared with tuple "
            f"{req_version_tuple}"
        )
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(f"{message}, but continuing assuming that requirement is met", stacklevel=2)
        return True


def validate_cuda_device(location: str) -> int:
    """The index of the CUDA device that a tag in a file names.

    Args:
        location: the tag, such as ``"cuda:0"``.

    Raises:
        ValueError: it names another kind of device.
        RuntimeError: there is no such device.

    >>> import plugrad
    >>> plugrad.serialization.validate_cuda_device("cpu")
    Traceback (most recent call last):
    ValueError: Expected a cuda device, but got: cpu
    """
    return _index_of("cuda", location)


def validate_hpu_device(location: str) -> int:
    """The index of the HPU device that a tag in a file names.

    Args:
        location: the tag, such as ``"hpu:0"``.

    Raises:
        ValueError: it names another kind of device.
        RuntimeError: there is no such device; plugrad has no backend for them.

    >>> import plugrad
    >>> plugrad.serialization.validate_hpu_device("cpu")
    Traceback (most recent call last):
    ValueError: Expected a hpu device, but got: cpu
    """
    return _index_of("hpu", location)


def _index_of(kind: str, location: str) -> int:
    if location.partition(":")[0] != kind:
        raise ValueError(f"Expected a {kind} device, but got: {location}")
    there = default_restore_location(plugrad.UntypedStorage(0), location)
    return int(there.device.index or 0)


def normalize_storage_type(storage_type: type) -> type:
    """The class of storages of that name, such as `plugrad.FloatStorage`.

    Args:
        storage_type: a class of the same name from another module.

    Raises:
        AttributeError: nothing has that name.

    >>> import plugrad
    >>> plugrad.serialization.normalize_storage_type(plugrad.FloatStorage)
    <class 'plugrad.FloatStorage'>
    """
    name = storage_type.__name__
    if name not in STORAGES and name not in ("TypedStorage", "UntypedStorage"):
        raise AttributeError(f"module 'plugrad' has no class of storages {name!r}")
    found: type = getattr(plugrad, name)
    return found


def storage_to_tensor_type(storage: plugrad.TypedStorage) -> Any:
    """The class of tensors with the elements of a storage, such as `plugrad.FloatTensor`.

    Args:
        storage: one that has a dtype.

    Raises:
        TypeError: it has none, or no class of tensors has its dtype.

    >>> import plugrad
    >>> plugrad.serialization.storage_to_tensor_type(plugrad.FloatStorage(2))
    <class 'plugrad.FloatTensor'>
    """
    typed = isinstance(storage, plugrad.TypedStorage)
    name = NAMES_OF_STORAGES.get(storage.dtype, "").replace("Storage", "Tensor") if typed else ""
    if not hasattr(plugrad, name):
        raise TypeError(
            "storage_to_tensor_type(): argument 'storage' (position 1) must be a storage with a "
            f"dtype that a class of tensors has, not {type(storage).__name__}"
        )
    return getattr(plugrad, name)
