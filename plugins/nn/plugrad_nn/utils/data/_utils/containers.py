"""Rebuilds mappings and sequences of a batch with other values."""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any


def like_mapping(model: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    """The values in a mapping of the model's class, with its other attributes; in a dict if the
    class cannot be copied or created."""
    try:
        if isinstance(model, MutableMapping):
            clone = copy.copy(model)
            clone.update(values)
            return clone
        return type(model)(values)  # type: ignore[call-arg]  # most mappings are made like this
    except TypeError:
        return values


def like_sequence(model: Sequence[Any], values: list[Any]) -> Any:
    """The values in a sequence of the model's class, with its other attributes; in a list if the
    class cannot be copied or created."""
    try:
        if isinstance(model, MutableSequence):
            clone = copy.copy(model)
            for position, value in enumerate(values):
                clone[position] = value
            return clone
        return type(model)(values)  # type: ignore[call-arg]  # most sequences are made like this
    except TypeError:
        return values
