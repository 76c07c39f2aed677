"""Decides whether an operator on lists of tensors is one call of a backend's kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plugrad.dispatch.backends.active import ActiveBackend, find_backend
from plugrad.dispatch.local_state import current_state
from plugrad.dtype import float32, float64
from plugrad.tensor.base import TensorBase, needs_grad, sizes_of


def runs_at_once(operator: str, lists: Sequence[Sequence[Any]]) -> bool:
    """Whether a backend has a kernel for an operator of lists, and takes these lists.

    Args:
        operator: its name, without a namespace: `"_update_adam"`.
        lists: of equal length, with at least one tensor each; see `are_alike`.
    """
    active: ActiveBackend = find_backend(lists[0][0].device.type)
    return active.raw_kernel(operator, "") is not None and are_alike(active, lists)


def are_alike(active: ActiveBackend, lists: Sequence[Sequence[Any]]) -> bool:
    """Whether all tensors have one dtype, float32 or float64, and one device, whether shapes agree
    place by place, and whether none requires a gradient or is wrapped by a transform."""
    first: Any = lists[0][0]
    dtype, device, plain = first.dtype, first.device, active.tensor_keyset
    if dtype is not float32 and dtype is not float64:
        return False
    recorded = current_state().grad_enabled
    for place, tensor in enumerate(lists[0]):
        sizes = sizes_of(tensor)
        for tensors in lists:
            item: Any = tensors[place]
            if (
                not isinstance(item, TensorBase)
                or item._keyset != plain
                or item.dtype is not dtype
                or item.device is not device
                or (item is not tensor and sizes_of(item) != sizes)
                or (recorded and needs_grad(item))
            ):
                return False
    return True
