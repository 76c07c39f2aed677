"""Lowerings: compilers that turn a captured step into a function on arrays, by name.

A plugin registers its own, and `plugrad.compile(step, backend="its name")` uses it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

Lowering = Callable[[Any], Callable[..., list[Any]]]

_lowerings: Final[dict[str, Lowering]] = {}


def register_lowering(name: str, lower: Lowering) -> None:
    """Register a lowering.

    Args:
        name: the value of `backend` in `plugrad.compile`.
        lower: gets a `plugrad.plugins.CapturedStep`, and returns a function that is called with the
            arrays and numbers of `step.inputs`, writes to the arrays that in-place operators write
            to, and returns the list of arrays `step.outputs`. If it cannot lower the step, it
            raises NotImplementedError with the reason; the step then runs uncompiled.

    Raises:
        ValueError: there is one of that name.
        TypeError: the name is not a string, or the lowering no function.

    >>> from plugrad.plugins.compiling.lowerings import lowering_of, register_lowering
    >>> def lower(step):
    ...     print([name for name, _, _ in step.calls])
    ...     return lowering_of("tape")(step)
    >>> register_lowering("printing", lower)
    >>> import plugrad
    >>> double = plugrad.compile(lambda x: x * 2, backend="printing")
    >>> double(plugrad.ones(2))
    ['plugrad::mul.Scalar']
    tensor([2., 2.])
    """
    if not isinstance(name, str):
        raise TypeError(f"register_lowering(): name must be str, not {type(name).__name__}")
    if not callable(lower):
        raise TypeError(f"register_lowering(): lower must be callable, not {type(lower).__name__}")
    if name in _lowerings:
        raise ValueError(f"register_lowering(): there is a lowering called {name!r} already")
    _lowerings[name] = lower


def lowering_of(name: str) -> Lowering:
    """The lowering of that name; ValueError if there is none."""
    if name not in _lowerings:
        raise ValueError(f"there is no lowering called {name!r}; known: {lowering_names()}")
    return _lowerings[name]


def lowering_names() -> list[str]:
    """The names of all lowerings."""
    return sorted(_lowerings)
