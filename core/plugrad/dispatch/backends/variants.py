"""`Variant`: a kernel for an operator, with the conditions under which it is the best one.

A variant has precedence over the backend's own kernel. The processor and the dtype determine once
which variants may run; the size of each call decides whether one runs.
"""

from __future__ import annotations

# Interpreted: it runs once for a declaration, and has its own error messages.
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, final

from plugrad.dtype import ALL_DTYPES, DType
from plugrad.errors import PluginError

if TYPE_CHECKING:
    from plugrad.dispatch.backends.links import Link


@final
class Variant:
    """A kernel on arrays for one operator, and its requirements.

    The first array among the arguments determines the dtype and size of a call; for a list of
    arrays, its first one. A variant checks further requirements itself, and returns
    `NotImplemented` if they are not met. It must not have written anything in that case.

    Args:
        operator: the operator, named as for kernels: ``"gelu"``, ``"foo::bar"``.
        kernel: has the arguments and results of the backend's kernel.
        name: distinguishes it from other variants of the operator, such as ``"avx512"``.
        features: what the processor must have, as names of `Backend.features`.
        dtypes: names of the supported dtypes; empty for all.
        contiguous: whether all arrays among the arguments have to be contiguous.
        least: the smallest number of elements for which it runs.
        most: the largest such number; none by default.
        priority: if several may run, the one with the highest priority is tried first.
        takes_out: whether `kernel` accepts as `out` an array of its result's shape, strides and
            dtype, writes to it and returns it. Compiled steps use this to reuse memory. It must
            decline before it writes.
        joins: fuses several elementwise calls of variants with the same `joins`; compiled steps
            call it. It gets a list of `Link` and returns a function of their inputs, which returns
            the last link's result and accepts `out`, or None. All arrays are contiguous and have
            one shape and dtype, and only the last link's result is needed. The bits must equal
            those of the separate calls.
        problem: returns why it cannot be used here, for example a missing library; empty if it
            can. It is called once for each operator and dtype, at the first call that is large
            enough.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: there is no such dtype, the name is empty, `least` is negative, or `most` is
            less than `least`.

    >>> import numpy as np
    >>> from plugrad.plugins import Variant
    >>> Variant("exp", np.exp, name="wide", features=["avx512f"], dtypes=["float32"], least=4096)
    <Variant 'wide' of 'exp': avx512f, float32, from 4096 elements>
    """

    def __init__(
        self,
        operator: str,
        kernel: Callable[..., Any],
        *,
        name: str,
        features: Iterable[str] = (),
        dtypes: Iterable[str | DType] = (),
        contiguous: bool = False,
        least: int = 0,
        most: int | None = None,
        priority: int = 0,
        takes_out: bool = False,
        joins: Callable[[list[Link]], Callable[..., Any] | None] | None = None,
        problem: Callable[[], str] | None = None,
    ) -> None:
        given: dict[str, Any] = {"operator": operator, "name": name}
        for what, text in given.items():
            if not isinstance(text, str):
                raise TypeError(f"Variant(): {what} must be a string, got {_type(text)}")
            if not text:
                raise ValueError(f"Variant(): {what} must not be empty")
        who = f"the variant {name!r} of {operator!r}"
        if not callable(kernel):
            raise TypeError(f"{who}: kernel must be callable, got {_type(kernel)}")
        for what, function in {"problem": problem, "joins": joins}.items():
            if function is not None and not callable(function):
                raise TypeError(f"{who}: {what} must be callable, got {_type(function)}")
        numbers: dict[str, Any] = {"least": least, "priority": priority}
        if most is not None:
            numbers["most"] = most
        for what, number in numbers.items():
            if isinstance(number, bool) or not isinstance(number, int):
                raise TypeError(f"{who}: {what} must be an integer, got {_type(number)}")
        if least < 0:
            raise ValueError(f"{who}: least must be at least 0, got {least}")
        if most is not None and most < least:
            raise ValueError(f"{who}: most must be at least {least}, which least is, got {most}")
        flags: dict[str, Any] = {"contiguous": contiguous, "takes_out": takes_out}
        for what, flag in flags.items():
            if not isinstance(flag, bool):
                raise TypeError(f"{who}: {what} must be True or False, got {_type(flag)}")
        self.operator = operator
        self.kernel: Any = kernel
        self.name = name
        self.features: tuple[str, ...] = _words(features, "features", who)
        self.dtypes: tuple[str, ...] = _words(dtypes, "dtypes", who)
        known = [dtype.name for dtype in ALL_DTYPES]
        for dtype in self.dtypes:
            if dtype not in known:
                raise ValueError(f"{who}: there is no dtype {dtype!r}; {nearest(dtype, known)}")
        self.contiguous = contiguous
        self.least = least
        self.most = most
        self.priority = priority
        self.takes_out = takes_out
        self.joins: Any = joins
        self.problem: Any = problem

    def missing(self, features: Mapping[str, bool]) -> list[str]:
        """The required features that kernels may not use."""
        return [name for name in self.features if not features.get(name, False)]

    def needs(self) -> str:
        """Its requirements, in words; empty if there are none."""
        words = list(self.features)
        words += [" or ".join(self.dtypes)] if self.dtypes else []
        words += ["contiguous"] if self.contiguous else []
        sizes = [f"from {self.least}"] if self.least else []
        sizes += [f"up to {self.most}"] if self.most is not None else []
        words += [f"{' '.join(sizes)} elements"] if sizes else []
        return ", ".join(words)

    def __repr__(self) -> str:
        return f"<Variant {self.name!r} of {self.operator!r}: {self.needs() or 'any call'}>"


def checked_variants(given: object) -> list[Variant]:
    """The variants that a package declares, in the order in which they are tried.

    Raises:
        TypeError: it is not a list of `Variant` objects.
        PluginError: an operator has two of one name.
    """
    if not isinstance(given, list | tuple):
        raise TypeError(f"variants must come as a list of Variant objects, got {_type(given)}")
    seen: set[tuple[str, str]] = set()
    for one in given:
        if not isinstance(one, Variant):
            raise TypeError(f"variants must be Variant objects, got {_type(one)} in the list")
        if (one.operator, one.name) in seen:
            raise PluginError(f"there are two variants {one.name!r} of {one.operator!r}")
        seen.add((one.operator, one.name))
    return sorted(given, key=lambda one: -one.priority)


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint for an unknown word."""
    import difflib  # only errors need it

    words = list(known)
    close = difflib.get_close_matches(word, words, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(words) or 'none'}"


def _words(given: Any, what: str, who: str) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"{who}: {what} must be a list of strings, got {_type(given)}")
    words: list[str] = []
    for word in given:
        text = word.name if isinstance(word, DType) else word
        if not isinstance(text, str):
            raise TypeError(f"{who}: {what} must be a list of strings, got {_type(word)} in it")
        words.append(text)
    return tuple(words)


def _type(value: object) -> str:
    return type(value).__name__
