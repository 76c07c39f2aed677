"""Checks whether what a traced step depended on has changed.

Runs before every step, so it is compiled. A guard stores what it was made from. It compares by
identity where that is enough, and looks at each object once.
"""

from __future__ import annotations

from typing import Any, Final, final

from plugrad.device import Device
from plugrad.dispatch.autocast import autocast_in_force
from plugrad.dispatch.local_state import current_state
from plugrad.dtype import DType
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.exchange import situation

_NOTHING: Final = object()
# With more of them, comparing each pair costs more than what it saves.
MOST_ARGUMENTS: Final = 8


@final
class SameObjects:
    """Whether objects are still in their places: in dicts and lists, under keys, in cells of
    closures.

    Args:
        dicts: compared completely, in their order.
        lists: compared completely.
        places: dicts and keys; the dicts' other items may change.
        cells: cells of closures.
        sized: dicts and lists for which only the length matters.
    """

    def __init__(
        self,
        dicts: list[dict[Any, Any]],
        lists: list[list[Any]],
        places: list[tuple[dict[Any, Any], Any]],
        cells: list[Any],
        sized: list[Any],
    ) -> None:
        self.dicts = dicts
        self.lists = lists
        self.holders: list[dict[Any, Any]] = [holder for holder, _ in places]
        self.keys: list[Any] = [key for _, key in places]
        self.cells = cells
        self.sized = sized
        self.lengths: list[int] = [len(holder) for holder in sized]
        self.counts: list[int] = [len(values) for values in dicts]
        self.counts += [len(items) for items in lists]
        # Kept alive: an object with the address of a former one would pass for it.
        self.known: list[Any] = []
        for values in dicts:
            self.known.extend(values.values())
        for items in lists:
            self.known.extend(items)
        for holder, key in places:
            self.known.append(holder[key])
        for cell in cells:
            self.known.append(cell.cell_contents)

    def hold(self) -> bool:
        """Whether they are."""
        known, counts, keys, lengths = self.known, self.counts, self.keys, self.lengths
        for number, holder in enumerate(self.sized):
            if len(holder) != lengths[number]:
                return False
        at = 0
        turn = 0
        for values in self.dicts:
            count = counts[turn]
            turn += 1
            if len(values) != count:
                return False
            if count:  # most are not: tables of hooks
                for value in values.values():
                    if known[at] is not value:
                        return False
                    at += 1
        for items in self.lists:
            if len(items) != counts[turn]:
                return False
            turn += 1
            for value in items:
                if known[at] is not value:
                    return False
                at += 1
        for number, holder in enumerate(self.holders):
            if known[at] is not holder.get(keys[number], _NOTHING):
                return False
            at += 1
        for cell in self.cells:
            if known[at] is not _contents(cell):
                return False
            at += 1
        return True


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # its variable was deleted
        return _NOTHING


@final
class SameArguments:
    """Whether a call gets tensors like an earlier call's, with no tensor twice.

    Tensors are alike if they have the same class, shape, dtype, device and `requires_grad`, and
    both or neither have a gradient. The thread's modes must also be the same.
    """

    def __init__(self, tensors: list[TensorBase]) -> None:
        self.sizes: list[tuple[int, ...]] = [sizes_of(tensor) for tensor in tensors]
        self.dtypes: list[DType] = [tensor.dtype for tensor in tensors]
        self.devices: list[Device] = [tensor.device for tensor in tensors]
        self.classes: list[type] = [type(tensor) for tensor in tensors]
        self.situation = situation(tensors)
        state = current_state()
        self.grad_enabled = state.grad_enabled
        self.inference_mode = state.inference_mode
        self.autocast: dict[str, DType] = autocast_in_force(state)

    def hold(self, arguments: tuple[Any, ...]) -> bool:
        """Whether these are such arguments; of very many it is not found out, and False."""
        count = len(arguments)
        if count != len(self.sizes) or count > MOST_ARGUMENTS:
            return False
        tensors: list[TensorBase] = []
        for number, wanted in enumerate(self.classes):
            if type(arguments[number]) is not wanted:
                return False
            tensor: TensorBase = arguments[number]
            if (
                tensor.dtype is not self.dtypes[number]
                or sizes_of(tensor) != self.sizes[number]
                or tensor.device != self.devices[number]
            ):
                return False
            for other in tensors:
                if other is tensor:
                    return False
            tensors.append(tensor)
        state = current_state()
        return (
            state.grad_enabled == self.grad_enabled
            and state.inference_mode == self.inference_mode
            and autocast_in_force(state) == self.autocast
            and situation(tensors) == self.situation
        )
