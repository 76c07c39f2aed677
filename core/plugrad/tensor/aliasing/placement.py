"""Where the elements of an array are, for backends with arrays that can span several devices.

Most backends have one place for each device, and need nothing here. A backend with more defines how
to move an array to the place of another one. Then a write leaves a tensor where it was, and the
gradient of a leaf moves to the leaf's place.
"""

from __future__ import annotations

from typing import Any, Final, final

from plugrad.tensor.base import TensorBase, replace_array


@final
class _Placement:
    """The backends' functions; `keep` is None as long as none has."""

    def __init__(self) -> None:
        self.keep: Any = None
        self.keeps: list[Any] = []

    def in_turn(self, array: Any, former: Any) -> Any:
        """The result of the backend that owns the array; all others return it unchanged."""
        for keep in self.keeps:
            array = keep(array, former)
        return array


PLACEMENT: Final = _Placement()


def set_placement(keep: Any) -> None:
    """`keep(array, former)` returns `array` in the place of `former`, or unchanged. It is called
    for arrays of all backends and returns foreign ones unchanged. Each backend has one."""
    if any(keep is one for one in PLACEMENT.keeps):
        return
    PLACEMENT.keeps = [*PLACEMENT.keeps, keep]
    PLACEMENT.keep = keep if len(PLACEMENT.keeps) == 1 else PLACEMENT.in_turn


def placed_like(array: Any, former: Any) -> Any:
    """The array in the place of a former one that it replaces."""
    keep = PLACEMENT.keep  # called as an attribute, it would be looked up by name
    return array if keep is None else keep(array, former)


def put_where(tensor: TensorBase, other: TensorBase) -> None:
    """Move a new tensor, without other references, to the place of another one."""
    keep = PLACEMENT.keep
    if keep is None:
        return
    array = keep(tensor._backend_array, other._backend_array)
    if array is not tensor._backend_array:
        replace_array(tensor, array)
