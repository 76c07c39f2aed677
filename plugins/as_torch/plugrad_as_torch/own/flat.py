"""`torch._utils`: tensors as one flat tensor, indices of devices, and their modules."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import plugrad
from plugrad import Tensor

__all__ = [
    "_flatten_dense_tensors",
    "_get_available_device_type",
    "_get_device_index",
    "_get_device_module",
    "_take_tensors",
    "_unflatten_dense_tensors",
]


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """The elements of all tensors in one tensor of one dimension."""
    flat = [tensor.contiguous().view(-1) for tensor in tensors]
    return flat[0] if len(flat) == 1 else plugrad.cat(flat)


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Views of a flat tensor, with the shapes of these tensors."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple(part.view(like.shape) for part, like in zip(parts, tensors, strict=True))


def _take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Lists of tensors of the same type, in order. A list is yielded when the next tensor would
    take it over `size_limit` bytes; the rest follow at the end."""
    waiting: dict[str, tuple[list[Tensor], int]] = {}
    for tensor in tensors:
        kind, size = tensor.type(), tensor.numel() * tensor.element_size()
        found, total = waiting.get(kind, ([], 0))
        if found and total + size > size_limit:
            yield found
            found, total = [], 0
        waiting[kind] = [*found, tensor], total + size
    yield from (found for found, _ in waiting.values() if found)


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Tensor | None]], with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[list[list[Tensor | None]], list[int]]]:
    """Lists of the same length, cut into groups by device and dtype of the first list's tensors.

    Each group has its parts of the lists, and their original positions if `with_indices`.
    """
    groups: dict[tuple[Any, Any], tuple[list[list[Tensor | None]], list[int]]] = {}
    for place, tensors in enumerate(zip(*tensorlistlist, strict=True)):
        first = tensors[0]
        if first is None:
            raise ValueError("tensorlistlist: the first list has a None")
        key = (first.device, first.dtype)
        lists, indices = groups.setdefault(key, ([[] for _ in tensorlistlist], []))
        for group, tensor in zip(lists, tensors, strict=True):
            group.append(tensor)
        if with_indices:
            indices.append(place)
    return groups


def _get_available_device_type() -> str | None:
    """`"cuda"` if there is a GPU, else None."""
    return "cuda" if plugrad.cuda.is_available() else None


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a GPU, from a device or a number; if optional, the current GPU's by default.

    Raises:
        ValueError: another device, or none where one is expected.
    """
    if isinstance(device, str):
        device = plugrad.device(device)
    if isinstance(device, plugrad.device):
        if device.type == "cpu" and allow_cpu:
            return -1
        if device.type != "cuda":
            raise ValueError(f"Expected a cuda device, but got: {device}")
        if device.index is not None or not optional:
            return -1 if device.index is None else device.index
        device = None
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    if device is None and optional:
        return int(plugrad.cuda.current_device())
    raise ValueError(
        f"Expected a torch.device with a specified index or an integer, but got:{device}"
    )


def _get_device_module(device_type: str) -> Any:
    """The module of a kind of device: `torch.cuda`.

    Raises:
        RuntimeError: there is none.
    """
    name = f"torch.{device_type}"
    if device_type in ("cpu", "cuda", "mps", "xpu"):
        return importlib.import_module(name)
    raise RuntimeError(
        f"Device '{device_type}' does not have a corresponding module registered as '{name}'."
    )
