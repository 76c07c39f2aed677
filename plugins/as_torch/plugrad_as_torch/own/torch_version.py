"""`torch.__version__`: text that compares as a version, with text and tuples of numbers."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["TorchVersion"]

_Key = tuple[tuple[int, ...], bool]


def _key(version: object) -> _Key:
    """The numbers, without zeros at the end; then whether it is a release: `2.0a0` is before it."""
    if isinstance(version, (tuple, list)):
        version = ".".join(map(str, version))
    found = re.match(r"v?(\d+(?:\.\d+)*)(.*)", str(version))
    if found is None:
        raise ValueError(f"not a version: {version!r}")
    numbers = [int(number) for number in found[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers), re.match(r"[._-]?(a|b|c|rc|dev|alpha|beta|pre)", found[2]) is None


class TorchVersion(str):
    """The version of PyTorch that plugrad follows.

    >>> TorchVersion("2.13.0") >= "2.4", TorchVersion("2.13.0") < (2, 14)
    (True, True)
    """

    __slots__ = ()

    def __lt__(self, other: Any) -> bool:
        return _key(self) < _key(other)

    def __le__(self, other: Any) -> bool:
        return _key(self) <= _key(other)

    def __gt__(self, other: Any) -> bool:
        return _key(self) > _key(other)

    def __ge__(self, other: Any) -> bool:
        return _key(self) >= _key(other)

    def __eq__(self, other: object) -> bool:
        try:
            return _key(self) == _key(other)
        except ValueError:
            return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__
