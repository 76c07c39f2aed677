"""Adding and writing at positions that may occur more than once.

Adding takes CUDA's atomicAdd, in an order that differs between runs. Where
`plugrad.use_deterministic_algorithms` forbids that, places are sorted first; none of this waits for
the device.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

import plugrad
from plugrad_cuda.kernels.family import FLOAT32, is_bfloat16, widen
from plugrad_cuda.kernels.namespace import ATOMIC, Array, Namespace

_UINT64: Final = np.dtype(np.uint64)
_INT32: Final = np.dtype(np.int32)


def add_at(ns: Namespace, target: Array, where: Any, values: Array) -> None:
    """Adds to `target[where]` as often as a position occurs.

    Sums of 64-bit integers are the same bits with and without a sign; smaller ones, bools and
    bfloat16, which the hardware does not add, are added in a copy.
    """
    dtype = target.dtype
    if dtype.kind in "fcV" and plugrad.are_deterministic_algorithms_enabled():
        _add_in_order(ns, target, where, values)
    elif dtype.name in ATOMIC:
        ns.scatter_add(target, where, values)
    elif dtype.name == "int64":
        ns.scatter_add(target.view(_UINT64), where, values.astype(dtype).view(_UINT64))
    else:
        wide = FLOAT32 if is_bfloat16(target) else _INT32
        total = target.astype(wide)
        ns.scatter_add(total, where, values.astype(wide))
        ns.xp.copyto(target, total, casting="unsafe")


def write_at(ns: Namespace, target: Array, where: Any, values: Array) -> None:
    """Writes to `target[where]`: of values at one place any, or the last where runs must agree."""
    if np.ndim(values) == 0 or not plugrad.are_deterministic_algorithms_enabled():
        target[where] = values
        return
    places, sources = _sorted(ns, target, where, values)
    if places.size == 0:
        return
    # What is not the last goes behind the others, and is dropped.
    memory = ns.xp.empty(target.size + 1, target.dtype)
    memory[:-1] = target.reshape(-1)
    memory[ns.xp.where(_is_last(ns, places), places, target.size)] = sources
    ns.xp.copyto(target, memory[:-1].reshape(target.shape))


def _sorted(ns: Namespace, target: Array, where: Any, values: Array) -> tuple[Array, Array]:
    """Places in the target's elements, in rising order, and what belongs to each."""
    xp = ns.xp
    places = xp.arange(target.size).reshape(target.shape)[where]
    sources = xp.broadcast_to(values, places.shape).reshape(-1)
    order = xp.argsort(places.reshape(-1), kind="stable")
    return places.reshape(-1)[order], sources[order]


def _is_last(ns: Namespace, places: Array) -> Array:
    """Which of sorted places are followed by another."""
    return ns.xp.concatenate((places[1:] != places[:-1], ns.xp.ones(1, np.bool_)))


def _add_in_order(ns: Namespace, target: Array, where: Any, values: Array) -> None:
    """Sums of equal places in as many rounds as their number has bits: after n of them each element
    combines the 2 ** n elements that end at it. The last one of a place is added to it."""
    xp = ns.xp
    places, sources = _sorted(ns, target, where, values)
    if places.size == 0:
        return
    sums = widen(sources)
    zero = sums.dtype.type(0)
    for bit in range(math.ceil(math.log2(places.size))):
        step = 1 << bit
        before = xp.where(places[step:] == places[:-step], sums[:-step], zero)
        sums = xp.concatenate((sums[:step], sums[step:] + before))
    total = widen(xp.ascontiguousarray(target)).reshape(-1).copy()
    # One of the summands of a place is not zero, so that their order does not matter.
    ns.scatter_add(total, (places,), xp.where(_is_last(ns, places), sums, zero))
    xp.copyto(target, total.reshape(target.shape), casting="unsafe")
