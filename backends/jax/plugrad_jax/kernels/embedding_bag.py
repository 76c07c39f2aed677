"""The bag of each index of an embedding bag, as a program that can be traced."""

from __future__ import annotations

from typing import Any, Final

import jax.numpy as jnp

from plugrad_jax.deferred import raise_later
from plugrad_jax.kernels.programs import Array, Kernel, program


def _places(indices: Array, offsets: Array, rows: int) -> tuple[Array, Array, Array]:
    """The bags, and whether an index and whether an offset is out of range."""
    found = jnp.searchsorted(offsets, jnp.arange(indices.size), side="right") - 1
    outside = jnp.any((indices < 0) | (indices >= rows))
    wrong = jnp.any(offsets[1:] < offsets[:-1])
    if offsets.size:
        wrong = wrong | (offsets[0] != 0) | (offsets[-1] > indices.size)
    return found.astype(jnp.int64), outside, wrong


def _outside(detail: Any) -> Exception:
    return RuntimeError("embedding_bag: an index of input is not in the range of the table's rows")


def _wrong(detail: Any) -> Exception:
    return RuntimeError(
        "embedding_bag: offsets have to begin with 0, must not decrease and must not be greater "
        "than input's length"
    )


_program: Final = program(_places)


def places(indices: Array, offsets: Array, rows: int, include_last_offset: bool) -> Array:
    if include_last_offset and offsets.size == 0:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    found, outside, wrong = _program(indices, offsets, rows)
    raise_later(outside, _outside)
    raise_later(wrong, _wrong)
    return found


KERNELS: Final[dict[str, Kernel]] = {"_embedding_bag_places": places}
