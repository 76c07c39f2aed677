"""Follows the numbers of optimizers that a step computes with: learning rates, step counts.

While a step is captured, such a number is a `Followed`, a float that records what is computed from
it. A program repeats the computation with the number's current value.
"""

from __future__ import annotations

from typing import Any

from plugrad.plugins.compiling.roots import Number


class Formulas:
    """What was computed from numbers, as lines of Python.

    Attributes:
        lines: assignments, in order.
        lost: what was done with a number that cannot be followed; "" if nothing.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.lost = ""
        self._closed = False
        self._listener: Any = None
        # What was computed, and how many operators had been called by then.
        self._made: list[tuple[Followed, int]] = []

    def listen_with(self, observer: Any) -> None:
        """Operators may use a number freely: an `Observer` records them."""
        self._listener = observer

    def close(self) -> None:
        """End the step: later uses of its numbers are not recorded."""
        self._closed = True
        self._listener = None

    @property
    def _in_operator(self) -> bool:
        return self._closed or (self._listener is not None and self._listener.inside > 0)

    def source(self, value: float, name: str) -> Followed:
        """A number that a program reads again in each run."""
        return self._follow(value, name)

    def _follow(self, value: float, name: str) -> Followed:
        made = Followed(value)
        made.formulas, made.name = self, name
        return made

    def record(self, value: Any, expression: str) -> Any:
        """The result of an operation on numbers."""
        if self._in_operator:
            return value
        if type(value) is not float:
            self.lose(f"an operation on it gives {type(value).__name__}")
            return value
        name = f"n{len(self.lines)}_"
        self.lines.append(f"{name} = {expression}")
        made = self._follow(value, name)
        self._made.append((made, 0 if self._listener is None else len(self._listener.nodes)))
        return made

    def lose(self, what: str) -> None:
        """Note that a number went where it cannot be followed."""
        if not self._in_operator:
            self.lost = self.lost or what

    def equals(self, value: Any, place: int) -> bool:
        """Whether a plain number is the value of something computed before: it may be that.

        Whole numbers are not: too many are written in programs.

        Args:
            place: how many operators had been called before the one that got the number.
        """
        if type(value) is not float or value.is_integer():
            return False
        return any(float.__eq__(value, made) for made, count in self._made if count <= place)


class Followed(float):
    """A float that records what is computed from it."""

    formulas: Formulas
    name: str

    def _lose(self, what: str) -> None:
        self.formulas.lose(what)

    def __neg__(self) -> Any:
        return self.formulas.record(float.__neg__(self), f"-{self.name}")

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self.formulas.record(float.__abs__(self), f"abs({self.name})")

    def __float__(self) -> float:
        self._lose("float() of it")
        return float.__pos__(self)

    def __int__(self) -> int:
        self._lose("int() of it")
        return float.__int__(self)

    def __bool__(self) -> bool:
        self._lose("bool() of it")
        return float.__bool__(self)

    def __hash__(self) -> int:
        return float.__hash__(self)


def _spelled(value: Any) -> str | None:
    if type(value) is Followed:
        return value.name
    if type(value) is int or (type(value) is float and value - value == 0):
        return f"({value!r})"
    return None


def _operation(name: str, sign: str) -> None:
    plain: Any = getattr(float, f"__{name}__")
    reflected: Any = getattr(float, f"__r{name}__")

    def forward(self: Followed, other: Any) -> Any:
        text = _spelled(other)
        if text is None:
            if isinstance(other, float):
                self._lose("an operation on it and inf or nan")
                return plain(self, other)
            return NotImplemented
        return self.formulas.record(plain(self, other), f"{self.name} {sign} {text}")

    def backward(self: Followed, other: Any) -> Any:
        text = _spelled(other)
        if text is None:
            if isinstance(other, float):
                self._lose("an operation on it and inf or nan")
                return reflected(self, other)
            return NotImplemented
        return self.formulas.record(reflected(self, other), f"{text} {sign} {self.name}")

    setattr(Followed, f"__{name}__", forward)
    setattr(Followed, f"__r{name}__", backward)


def _comparison(name: str) -> None:
    plain: Any = getattr(float, f"__{name}__")

    def compare(self: Followed, other: Any) -> Any:
        self._lose("it is compared")
        return plain(self, other)

    setattr(Followed, f"__{name}__", compare)


for _name, _sign in {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "pow": "**",
    "floordiv": "//",
    "mod": "%",
}.items():
    _operation(_name, _sign)
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _comparison(_name)


class Stand:
    """One `Number` of the roots while a step is captured.

    Attributes:
        name: its name in formulas.
        value: its value before the step.
    """

    def __init__(self, number: Number, name: str, formulas: Formulas) -> None:
        self.number = number
        self.name = name
        self.value: Any = number.known()
        self._before = [holder[key] for holder, key in number.places]
        # An int would be counted as a float; it distinguishes programs instead.
        self.follows = type(self.value) is float
        self._formulas = formulas

    def put(self) -> None:
        """Have the step find a number that is followed."""
        if self.follows:
            followed = self._formulas.source(self.value, self.name)
            for holder, key in self.number.places:
                holder[key] = followed

    def take(self) -> str:
        """Have what was there before in its place, with the value that the step gave it.

        Returns why no program can do that; "" if one can.
        """
        if not self.follows:
            return "" if self.number.known() == self.value else "a whole number changes"
        found = [holder[key] for holder, key in self.number.places]
        for (holder, key), before in zip(self.number.places, self._before, strict=True):
            holder[key] = before
        if not all(isinstance(each, float) for each in found):
            return f"the step assigns {self.number.places[0][1]!r} of an optimizer"
        values = {float.__pos__(each) for each in found}
        if len(values) == 1:
            (value,) = values
            if value != self.value:
                self.number.store(value)
            self.number.grows = value - self.value
            if value == self.value or self.number.grows == 1:
                return ""
        else:
            for (holder, key), value in zip(
                self.number.places, map(float.__pos__, found), strict=True
            ):
                Number([(holder, key)]).store(value)
        return f"the step sets {self.number.places[0][1]!r} of an optimizer to another number"
