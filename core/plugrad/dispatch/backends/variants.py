"""`Variant`: a kernel for an operator, with what it needs to be the best one there is.

A variant stands before the backend's own kernel. Which ones may run follows from what the processor
has and from the dtype, once; whether one runs follows from the size of the call.
"""

from __future__ import annotations

# Interpreted: it runs once for a declaration, and says in words of its own what is wrong with it.
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, final

from plugrad.dtype import ALL_DTYPES, DType
from plugrad.errors import PluginError


class Operand(NamedTuple):
    """Among the arguments of a `Link`: an array, or a number that may be another one in each run.

    Attributes:
        of_link: whether it is a link's result, and no input of the whole.
        number: which link or input it is, from 0.
    """

    of_link: bool
    number: int


class Link(NamedTuple):
    """One of several calls that a function may compute at once: see `Variant.joins`.

    Attributes:
        kernel: the variant's.
        arguments: what it is called with: an `Operand` for each array, other values as they are.
    """

    kernel: Any
    arguments: tuple[Any, ...]


@final
class Variant:
    """A kernel on arrays for one operator, and what it needs.

    The first array among the arguments tells dtype and size of a call; of a list of arrays, its
    first one. What a variant needs beyond that it checks itself, and returns `NotImplemented` where
    it is not met. It must not have written anything then.

    Args:
        operator: for which operator, as kernels are called: ``"gelu"``, ``"foo::bar"``.
        kernel: takes and returns what the backend's kernel does.
        name: what it is called beside others of the operator: ``"avx512"``, say.
        features: what the processor needs to have, in the words of `Backend.features`.
        dtypes: with which dtypes it works, by name; empty for all.
        contiguous: whether all arrays among the arguments have to be contiguous.
        least: the least number of elements for which it is worth while.
        most: the greatest such number; none by default.
        priority: of several that may run, that with the highest one is asked first.
        takes_out: whether `kernel` takes as `out` an array of its result's shape, strides and
            dtype, writes to that and returns it; compiled steps reuse memory so. It declines before
            it writes.
        joins: makes one function of several calls that work by elements, of variants with the same
            `joins`; compiled steps ask it. It gets a list of `Link` and returns a function of their
            inputs, which gives the last link's result and takes `out`, or None. All arrays are
            contiguous and of one shape and dtype, and the results of the links before the last one
            are not needed. The bits have to be those of the calls one by one.
        problem: says why it cannot be used here, say because a library is not installed; empty if
            it can. It is asked once for each operator and dtype, at the first call that is large
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
        """The features that it needs and kernels may not use."""
        return [name for name in self.features if not features.get(name, False)]

    def needs(self) -> str:
        """What it needs, in words; empty for nothing."""
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
    """The variants that a package declares, in the order in which they are asked.

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
    """A hint for a word that is not known."""
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
