"""Python numbers of optimizers that become inputs of the program: learning rates, step counts.

An optimizer lists in `capturable_numbers` the options, and the numbers in a parameter's state, that
its update also accepts as 0-dim tensors. While a step is traced, an option is such a tensor, and a
count is a `Count`, which records its increase; outside they stay numbers.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from plugrad.plugins.compiling.roots import Number
from plugrad_jax.capture.errors import CaptureError


class Count:
    """An unknown whole number plus a known one.

    Adding a whole number gives a `Count`; all other arithmetic gives 0-dim tensors.
    """

    def __init__(self, tensor: Any, added: int = 0) -> None:
        self._tensor = tensor
        self.added = added

    def as_tensor(self) -> Any:
        """The number as a 0-dim tensor."""
        return self._tensor + self.added if self.added else self._tensor

    def __add__(self, other: Any) -> Any:
        if type(other) is int:
            return Count(self._tensor, self.added + other)
        return self.as_tensor() + other

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other if type(other) is int else self.as_tensor() - other

    def __rsub__(self, other: Any) -> Any:
        return other - self.as_tensor()

    def __mul__(self, other: Any) -> Any:
        return self.as_tensor() * other

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self.as_tensor() / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.as_tensor()

    def __pow__(self, other: Any) -> Any:
        return self.as_tensor() ** other

    def __rpow__(self, other: Any) -> Any:
        return other ** self.as_tensor()

    def _refuse(self, *_: Any) -> Any:
        raise CaptureError(
            "an optimizer reads the value of its step count, which is unknown in a captured step; "
            "the count can only be used in arithmetic"
        )

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __bool__ = __int__ = __float__ = __index__ = __mod__ = __floordiv__ = _refuse
    __hash__ = object.__hash__


class DeviceNumber(Number):
    """One input of the program that represents a number in one or several places.

    Args:
        places: the dicts and keys that hold the number, all with one value.
    """

    def __init__(self, places: list[tuple[dict[str, Any], str]]) -> None:
        super().__init__(places)
        self._value: Any = None
        self._array: Any = None

    def read(self) -> Any:
        """The number on the device; None if the places do not agree any more.

        It is copied there only after a change outside.
        """
        value = self.known()
        if value is None:
            return None
        if value != self._value or self._array is None:
            self._array = jax.device_put(np.float64(value))
            self._value = value
        return self._array

    def advance(self, array: Any) -> None:
        """The program has run, and has added to the count: `array` is what it is now."""
        self._value = value = self._value + self.grows
        self._array = array
        self.store(value)

    def take_over(self, other: DeviceNumber) -> None:
        """Take over the state of another one that has moved to other places."""
        self.grows, self._value, self._array = other.grows, other._value, other._array
