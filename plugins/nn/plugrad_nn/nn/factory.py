"""factory_kwargs: the keyword arguments of a layer that go to functions that make tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_FOR_TENSORS: Final = ("device", "dtype", "memory_format")


def factory_kwargs(kwargs: Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments `device`, `dtype` and `memory_format` among the keyword arguments of a layer.

    A layer that has such an argument itself takes those for its tensors as a dict in
    `factory_kwargs`.

    Raises:
        TypeError: there are other arguments, or one is given twice.

    >>> import plugrad
    >>> plugrad.nn.factory_kwargs({"factory_kwargs": {"device": "meta"}})
    {'device': 'meta'}
    """
    given = dict(kwargs or {})
    found = dict(given.pop("factory_kwargs", {}))
    if unexpected := given.keys() - set(_FOR_TENSORS):
        raise TypeError(f"unexpected kwargs {unexpected}")
    if twice := [name for name in _FOR_TENSORS if name in given and name in found]:
        raise TypeError(f"{twice[0]} specified twice, in **kwargs and in factory_kwargs")
    return {**found, **given}
