"""Conversions between tensors and the arrays that carriers take."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import plugrad
from plugrad import Tensor
from plugrad.autograd.graph import increment_version
from plugrad_distributed.carriers.carrier import Carrier

__all__ = [
    "Buffer",
    "as_tensor",
    "empty_like",
    "namespace_of",
    "readable",
    "rows",
    "scattered",
    "writable",
]

Buffer = Any


def readable(carrier: Carrier, tensor: Tensor) -> Buffer:
    """The tensor's elements in row-major order, for reading only: its own memory if that is
    contiguous, else a copy."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.device.type in carrier.devices:
        return tensor.contiguous().array
    staged = _staged(tensor)
    return np.ascontiguousarray(tensor.cpu().array) if staged is None else staged


def writable(carrier: Carrier, tensor: Any) -> tuple[Buffer, Callable[[], None]]:
    """Memory to receive the tensor's new elements, which initially holds the current ones, and a
    function that copies them to the tensor afterwards. Where possible it is the tensor's own
    memory."""
    own = tensor.detach()
    array = own.array
    if (
        own.device.type in carrier.devices
        and own.is_contiguous()
        and not (own.is_conj() or own.is_neg())
        and getattr(getattr(array, "flags", None), "writeable", True)
    ):

        def written() -> None:
            increment_version(tensor)

        return array, written
    own = own.resolve_conj().resolve_neg()
    if own.device.type in carrier.devices and own.device.type != "cpu":
        copied = own.contiguous()
        return copied.array, _written_back(tensor, copied)
    staged = _staged(own)
    if staged is None:
        buffer = np.array(own.cpu().array, order="C", copy=True)
        return buffer, _written_back(tensor, plugrad.from_numpy(buffer))

    def copy_back() -> None:
        # The device reads page-locked memory in the order of its stream.
        found = plugrad.from_numpy(staged).to(own.device, non_blocking=True)
        _written_back(tensor, found)()

    return staged, copy_back


def _written_back(tensor: Tensor, found: Tensor) -> Callable[[], None]:
    """A function that copies to a tensor."""

    def copy_back() -> None:
        with plugrad.no_grad():
            tensor.copy_(found)

    return copy_back


def _staged(tensor: Tensor) -> Buffer | None:
    """A copy in page-locked host memory, for a tensor on a device with streams, which can access
    such memory directly; None for other devices."""
    streams = getattr(getattr(plugrad, tensor.device.type, None), "current_stream", None)
    if tensor.device.type == "cpu" or streams is None:
        return None
    copied = tensor.contiguous().to("cpu", non_blocking=True).array
    # The copy is in progress on this stream.
    streams(tensor.device).synchronize()
    return copied


def as_tensor(array: Buffer, like: Tensor) -> Tensor:
    """A carrier's array as a tensor on the device of another."""
    found = plugrad.from_numpy(array) if isinstance(array, np.ndarray) else like.new_tensor(array)
    return found if like.device.type == "cpu" else found.to(like.device)


def rows(tensors: Sequence[Tensor], carrier: Carrier) -> Buffer:
    """The elements of tensors of one size, concatenated."""
    parts = [readable(carrier, tensor).reshape(-1) for tensor in tensors]
    return namespace_of(parts[0]).stack(parts)


def scattered(parts: Any, tensors: Sequence[Tensor], carrier: Carrier) -> Any:
    """A function that writes rows of an array to tensors."""

    def write() -> None:
        for row, tensor in zip(parts, tensors, strict=True):
            array, written = writable(carrier, tensor)
            array[...] = row.reshape(array.shape)
            written()

    return write


def empty_like(like: Any, shape: tuple[int, ...]) -> Any:
    """Memory of an array's kind and dtype, on its device."""
    namespace = namespace_of(like)
    if namespace is np:
        return np.empty(shape, like.dtype)
    with namespace.cuda.Device(like.device.id):
        return namespace.empty(shape, like.dtype)


def namespace_of(array: Any) -> Any:
    """NumPy for its arrays, CuPy for others: carriers take only these two kinds."""
    return importlib.import_module("cupy") if hasattr(array, "__cuda_array_interface__") else np
