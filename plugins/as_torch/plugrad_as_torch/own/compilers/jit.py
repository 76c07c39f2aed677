"""`torch.jit`: nothing is compiled; programs run as written."""

from __future__ import annotations

import builtins
import typing
from typing import Any

import plugrad

__all__ = ["Final", "ScriptModule", "annotate", "isinstance"]

Final = typing.Final


class ScriptModule(plugrad.nn.Module):
    """A base class for annotations and subclasses; no module is ever compiled."""


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Python's `isinstance`, for a type without parameters or a tuple of such types."""
    types = target_type if builtins.isinstance(target_type, tuple) else (target_type,)
    plain: Any = tuple(typing.get_origin(one) or one for one in types)
    return builtins.isinstance(obj, plain)


class _BroadcastingList:
    """In annotations of scripts: a list, for which a single number may be given."""

    def __getitem__(self, element: Any) -> None:
        return None


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _BroadcastingList()
BroadcastingList4 = BroadcastingList5 = BroadcastingList6 = _BroadcastingList()
