"""Tags: properties of an operator beyond its schema."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any


class Tag(enum.Enum):
    """Properties of an operator beyond its schema; `OpOverload.tags` lists them.

    inplace: writes to its first argument, and returns it.
    out: writes its results into keyword-only arguments, and returns these.
    pointwise: computes each element of the result from the arguments' elements at the same place.
    nondeterministic_seeded: draws random numbers from a generator.
    dynamic_output_shape: the shape of the result depends on the data.

    >>> import plugrad
    >>> with plugrad.library.Library("demo_tags", "DEF") as lib:
    ...     _ = lib.define("double(Tensor x) -> Tensor", tags=plugrad.library.Tag.pointwise)
    ...     plugrad.ops.demo_tags.double.default.tags
    [<Tag.pointwise: 3>]
    """

    inplace = enum.auto()
    out = enum.auto()
    pointwise = enum.auto()
    nondeterministic_seeded = enum.auto()
    dynamic_output_shape = enum.auto()


def as_tags(tags: Any) -> tuple[Tag, ...]:
    """One tag, several or None as a tuple; TypeError for anything else."""
    if tags is None:
        return ()
    if isinstance(tags, Tag):
        return (tags,)
    found = tuple(dict.fromkeys(tags)) if isinstance(tags, Iterable) else (tags,)
    for tag in found:
        if not isinstance(tag, Tag):
            raise TypeError(f"expected a plugrad.library.Tag, got {type(tag).__name__}")
    return found
