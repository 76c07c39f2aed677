"""The kernels of the operators, on arrays of a backend.

Each is one function on NumPy arrays, or on CuPy arrays if the group's carrier takes these. Other
arrays are copied to the host and back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plugrad_distributed.arrays import namespace_of
from plugrad_distributed.carriers.carrier import Carrier
from plugrad_distributed.groups.process_group import ProcessGroup
from plugrad_distributed.groups.world import group_named
from plugrad_distributed.reduce_op import ReduceOp

__all__ = ["CPU", "CUDA", "JAX"]

Array = Any


def _run(
    group: ProcessGroup, what: str, array: Any, begin: Callable[[Carrier], Any], *more: object
) -> None:
    carrier = _carrier_of(group, array)
    detail = ", ".join(map(str, more))
    shown = f"{what}({array.dtype} {list(array.shape)}{', ' if detail else ''}{detail})"
    group.start(shown, carrier, lambda: begin(carrier)).wait()


def _carrier_of(group: ProcessGroup, array: Any) -> Carrier:
    return group.carrier("cpu" if namespace_of(array) is np else "cuda")


def _averaged(array: Array, op: str, size: int) -> Array:
    return array / array.dtype.type(size) if op == "avg" else array


def _plain(op: str) -> ReduceOp:
    return ReduceOp.SUM if op == "avg" else ReduceOp(op)


def all_reduce(array: Array, op: str, group: str) -> Array:
    ranks, xp = group_named(group), namespace_of(array)
    array = xp.ascontiguousarray(array).reshape(array.shape)
    out = xp.empty_like(array)
    _run(ranks, "all_reduce", array, lambda c: c.all_reduce(out, array, _plain(op)), op)
    return _averaged(out, op, ranks.size())


def reduce(array: Array, dst: int, op: str, group: str) -> Array:
    ranks, xp = group_named(group), namespace_of(array)
    array = xp.ascontiguousarray(array).reshape(array.shape)
    out = xp.zeros_like(array)
    _run(ranks, "reduce", array, lambda c: c.reduce(out, array, dst, _plain(op)), op, f"to {dst}")
    return _averaged(out, op, ranks.size())


def broadcast(array: Array, src: int, group: str) -> Array:
    ranks, xp = group_named(group), namespace_of(array)
    out = xp.array(array, order="C")
    _run(ranks, "broadcast", array, lambda c: c.broadcast(out, src), f"from {src}")
    return out


def _to_front(array: Array, dim: int) -> Array:
    """Contiguous, with the dimension first."""
    xp = namespace_of(array)
    array = array.reshape(1) if array.ndim == 0 else array
    return xp.ascontiguousarray(xp.moveaxis(array, dim, 0))


def all_gather(array: Array, dim: int, group: str) -> Array:
    ranks, xp = group_named(group), namespace_of(array)
    part = _to_front(array, dim)
    out = xp.empty((ranks.size() * part.shape[0], *part.shape[1:]), part.dtype)
    _run(ranks, "all_gather", part, lambda c: c.all_gather(out, part))
    return xp.moveaxis(out, 0, dim)


def reduce_scatter(array: Array, dim: int, op: str, group: str) -> Array:
    ranks, xp = group_named(group), namespace_of(array)
    whole = _to_front(array, dim)
    out = xp.empty((whole.shape[0] // ranks.size(), *whole.shape[1:]), whole.dtype)
    _run(ranks, "reduce_scatter", whole, lambda c: c.reduce_scatter(out, whole, _plain(op)), op)
    return xp.moveaxis(_averaged(out, op, ranks.size()), 0, dim)


def all_to_all_single(
    array: Array, out_sizes: Sequence[int], in_sizes: Sequence[int], group: str
) -> Array:
    ranks, xp = group_named(group), namespace_of(array)
    array = xp.ascontiguousarray(array)
    out = xp.empty((sum(out_sizes), *array.shape[1:]), array.dtype)
    each = math.prod(array.shape[1:])
    out_counts = [size * each for size in out_sizes]
    in_counts = [size * each for size in in_sizes]
    carrier = _carrier_of(ranks, array)
    ranks.start(
        f"all_to_all_single({array.dtype})",
        carrier,
        lambda: carrier.all_to_all(out, array, out_counts, in_counts),
    ).wait()
    return out


def gather(array: Array, dst: int, dim: int, group: str) -> Array:
    ranks, xp = group_named(group), namespace_of(array)
    part = _to_front(array, dim)
    own = ranks.rank() == dst
    out = xp.empty((ranks.size() * part.shape[0] if own else 0, *part.shape[1:]), part.dtype)
    _run(ranks, "gather", part, lambda c: c.gather(out if own else None, part, dst), f"to {dst}")
    return xp.moveaxis(out, 0, dim)


def scatter(array: Array, src: int, dim: int, size: Sequence[int], group: str) -> Array:
    ranks, xp = group_named(group), namespace_of(array)
    own = ranks.rank() == src
    whole = _to_front(array, dim) if own else None
    moved = list(size) or [1]
    moved.insert(0, moved.pop(dim))
    out = xp.empty(moved, array.dtype)
    _run(ranks, "scatter", out, lambda c: c.scatter(out, whole, src), f"from {src}")
    return xp.moveaxis(out, 0, dim).reshape(tuple(size))


def send(array: Array, dst: int, tag: int, group: str) -> Array:
    ranks, xp = group_named(group), namespace_of(array)
    carrier = _carrier_of(ranks, array)
    array = xp.ascontiguousarray(array)
    what = f"send({array.dtype} {list(array.shape)}, to {dst})"
    ranks.start(what, carrier, lambda: carrier.send(array, dst, tag), alike=False).wait()
    return xp.zeros((), array.dtype)


def recv(array: Array, src: int, size: Sequence[int], tag: int, group: str) -> Array:
    ranks, xp = group_named(group), namespace_of(array)
    carrier = _carrier_of(ranks, array)
    out = xp.empty(tuple(size), array.dtype)
    what = f"recv({out.dtype} {list(size)}, from {src})"
    ranks.start(what, carrier, lambda: carrier.recv(out, src, tag), alike=False).wait()
    return out


KERNELS: tuple[Callable[..., Array], ...] = (
    *(all_reduce, reduce, broadcast, all_gather, reduce_scatter, all_to_all_single),
    *(gather, scatter, send, recv),
)


def _named(wrap: Callable[[Callable[..., Array]], Any]) -> dict[str, Any]:
    return {f"distributed::{kernel.__name__}": wrap(kernel) for kernel in KERNELS}


def _of_jax(kernel: Callable[..., Array]) -> Callable[..., Any]:
    """On JAX's arrays, which the host reads without a copy if they are on the CPU."""

    def run(array: Any, *arguments: Any) -> Any:
        import jax

        if isinstance(array, jax.core.Tracer):
            raise NotImplementedError(
                f"distributed::{kernel.__name__} cannot be part of a program that JAX compiles: "
                "call it outside, or shard arrays over jax.sharding.Mesh"
            )
        found = kernel(np.asarray(array), *arguments)
        # Otherwise JAX converts 64-bit integers and floats to 32 bits.
        with jax.enable_x64(True):
            return jax.device_put(found, array.sharding)

    return run


def _of_cuda(kernel: Callable[..., Array]) -> Callable[..., Any]:
    """On CuPy's arrays, copied to the host and back if the group's carrier does not take them."""

    def run(array: Any, *arguments: Any) -> Any:
        import cupy

        with cupy.cuda.Device(array.device.id):
            # The group is always the last argument.
            if "cuda" in group_named(arguments[-1]).carrier("cuda").devices:
                return kernel(array, *arguments)
            return cupy.asarray(kernel(cupy.asnumpy(array), *arguments))

    return run


CPU = _named(lambda kernel: kernel)
JAX = _named(_of_jax)
CUDA = _named(_of_cuda)
