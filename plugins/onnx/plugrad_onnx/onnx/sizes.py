"""Numbers that depend on dynamic sizes, known from their values in several captures.

A model is captured at several sizes of its dynamic dimensions. A number that differs between
captures is a `Varying`, which has one value for each. It computes like an int. A comparison gives a
bool if all captures agree, and raises `SizeError` otherwise.

`fit` finds the polynomial that gives such a number: c + sum a_i s_i + sum a_ij s_i s_j, where c and
all a are integers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from plugrad_onnx.onnx.errors import SizeError


class Varying:
    """An int with a value for each capture.

    >>> from plugrad_onnx.onnx.sizes import Varying
    >>> n = Varying([2, 5, 11])
    >>> 3 * n + 1, n - n, n > 1
    (Varying(7, 16, 34), 0, True)
    """

    def __init__(self, values: Sequence[int]) -> None:
        self.values = tuple(values)

    def __repr__(self) -> str:
        return f"Varying{self.values}"

    def _with(self, other: object, function: Callable[[int, int], Any]) -> list[Any]:
        if isinstance(other, Varying):
            return [function(a, b) for a, b in zip(self.values, other.values, strict=True)]
        return [function(a, other) for a in self.values]  # type: ignore[arg-type]  # an int

    def __add__(self, other: Any) -> Any:
        return merged(self._with(other, operator.add))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return merged(self._with(other, operator.sub))

    def __rsub__(self, other: Any) -> Any:
        return merged(self._with(other, lambda a, b: b - a))

    def __mul__(self, other: Any) -> Any:
        return merged(self._with(other, operator.mul))

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return merged(self._with(other, operator.floordiv))

    def __mod__(self, other: Any) -> Any:
        return merged(self._with(other, operator.mod))

    def __neg__(self) -> Varying:
        return Varying([-value for value in self.values])

    def _decides(self, other: object, function: Callable[[int, int], bool]) -> bool:
        found = self._with(other, function)
        if all(found) or not any(found):
            return bool(found[0])
        raise SizeError(f"a decision depends on the dynamic sizes: it is {found} where they vary")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (int, Varying)):
            return NotImplemented
        return self._decides(other, operator.eq)

    def __lt__(self, other: Any) -> bool:
        return self._decides(other, operator.lt)

    def __le__(self, other: Any) -> bool:
        return self._decides(other, operator.le)

    def __gt__(self, other: Any) -> bool:
        return self._decides(other, operator.gt)

    def __ge__(self, other: Any) -> bool:
        return self._decides(other, operator.ge)

    def __bool__(self) -> bool:
        return self._decides(0, operator.ne)

    def __hash__(self) -> int:
        return hash(self.values)

    def __index__(self) -> int:
        raise SizeError(
            f"a number is needed that a dynamic size changes: it is one of {self.values}"
        )


Number = int | Varying


def merged(values: Sequence[int]) -> Any:
    """An int if the values agree, else a `Varying`."""
    return values[0] if all(value == values[0] for value in values) else Varying(values)


def product(numbers: Sequence[Any]) -> Any:
    """The product of ints and `Varying`s."""
    result: Any = 1
    for number in numbers:
        result = result * number
    return result


@dataclass(frozen=True)
class Symbols:
    """The dynamic sizes: their names, and their values in each capture.

    The captures are: one at `base`, one for each changed size, one for each pair of changed sizes,
    and a last one where all sizes are new, which checks the formulas found.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, sizes: dict[str, int]) -> Symbols:
        """The sizes to capture at, given their values in the example."""
        if not sizes:
            return cls((), ((),))
        triples: list[tuple[int, int, int]] = []
        for place, size in enumerate(sizes.values()):
            if size >= 12:  # smaller sizes, because position tables are finite
                triples.append((size, size // 2 + 1 + place, size // 3 + 2 + place))
            else:
                base = max(size, 2) + (place if len(sizes) > 1 else 0)
                triples.append((base, 2 * base + 1 + place, 3 * base + 4 + place))
        base_row = [triple[0] for triple in triples]
        rows = [tuple(base_row)]
        places = range(len(triples))
        for count in (1, 2):
            changes = combinations(places, count)
            rows += [tuple(triples[n][n in some] for n in places) for some in changes]
        rows.append(tuple(triple[2] for triple in triples))
        return cls(tuple(sizes), tuple(rows))

    def vector(self, name: str) -> tuple[int, ...]:
        """The values of a size in all captures."""
        place = self.names.index(name)
        return tuple(row[place] for row in self.rows)

    def fit(self, number: Varying) -> dict[tuple[str, ...], int] | None:
        """Integer coefficients by monomial: (), ("batch",), ("batch", "time"); None if none fit."""
        count = len(self.names)
        base, values = self.rows[0], number.values
        steps = [self.rows[1 + n][n] - base[n] for n in range(count)]
        slopes = [values[1 + n] - values[0] for n in range(count)]
        terms: dict[tuple[int, ...], int] = {}
        for place, pair in enumerate(combinations(range(count), 2)):
            i, j = pair
            mixed = values[1 + count + place] - values[0] - slopes[i] - slopes[j]
            if mixed % (steps[i] * steps[j]):
                return None
            terms[pair] = mixed // (steps[i] * steps[j])
        pairs = [(i, j, a) for (i, j), a in terms.items()]
        for n in range(count):
            rest = sum(a * base[i + j - n] for i, j, a in pairs if n in (i, j))
            if slopes[n] % steps[n]:
                return None
            terms[(n,)] = slopes[n] // steps[n] - rest

        def value(row: tuple[int, ...]) -> int:
            return sum(a * product([row[n] for n in key]) for key, a in terms.items())

        terms[()] = values[0] - value(base)
        if any(value(row) != found for row, found in zip(self.rows, values, strict=True)):
            return None
        named = {tuple(self.names[n] for n in key): a for key, a in terms.items()}
        return {key: a for key, a in named.items() if a}
