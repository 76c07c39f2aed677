"""Combines the kernels of one operator on one backend: the first that does not decline computes."""

from __future__ import annotations

import math
from typing import Any, Final, final

from mypy_extensions import i64

from plugrad._intrinsics import array_dtype
from plugrad.dispatch.backends.backend import Backend
from plugrad.dispatch.backends.kernel_context import call_few, few
from plugrad.dispatch.backends.variants import Variant
from plugrad.dispatch.local_state import current_state

# What a kernel returns that leaves a call to the next one.
DECLINED: Final[Any] = NotImplemented


@final
class Candidate:
    """A kernel on arrays that can serve an operator.

    Attributes:
        owner: the package that provides it.
        own: whether that is the backend itself.
        name: the owner's name for it: the operator's name, with or without overload.
        variant: its conditions, if it is a variant and does not serve every call; least, most and
            contiguous are the variant's own, kept here because each call compares them. `most` is
            negative if there is no such size.
    """

    def __init__(
        self, kernel: Any, owner: str, own: bool, name: str, variant: Variant | None = None
    ) -> None:
        self.kernel: Any = kernel
        self.owner = owner
        self.own = own
        self.name = name
        self.variant = variant
        self.least: i64 = 0 if variant is None else variant.least
        self.most: i64 = -1 if variant is None or variant.most is None else variant.most
        self.contiguous: bool = variant is not None and variant.contiguous
        self.takes_out: bool = variant is not None and variant.takes_out
        # The owner, and which of the owner's kernels for the operator it is.
        self.called: str = owner if variant is None else f"{owner}: {variant.name}"

    def serves(self, count: i64) -> bool:
        """Whether it may run for this number of elements."""
        return count >= self.least and (self.most < 0 or count <= self.most)

    def joins(self) -> Any:
        """What makes one function of several calls of it; None if nothing does."""
        return None if self.variant is None else self.variant.joins


@final
class Candidates:
    """Kernels that are tried in order until one does not decline.

    Attributes:
        ran: the one that computed last, for messages; other threads may have changed it.
    """

    def __init__(self, operator: str, found: list[Candidate]) -> None:
        self.operator = operator
        self.found = found
        self.ran = found[0]

    def __call__(self, *args: Any) -> Any:
        for candidate in self.found:
            out = candidate.kernel(*args)
            if out is not DECLINED:
                self.ran = candidate
                return out
            note_declined(self.operator, candidate.owner)
        return DECLINED


@final
class _Settled:
    """The candidates for one dtype.

    Attributes:
        native: the backend's own dtype.
        least: the number of elements below which no variant runs; negative if there are none.
        sized: whether the number of elements decides which of them run.
        asked: whether it has been checked that the variants can be used here.
    """

    def __init__(self, native: Any, found: list[Candidate]) -> None:
        self.native: Any = native
        self.found = found
        self.least: i64 = -1
        self.sized = False
        for each in found:
            if each.variant is not None and not 0 <= self.least <= each.least:
                self.least = each.least
            if each.least > 0 or each.most >= 0:
                self.sized = True
        self.asked = self.least < 0


@final
class Lowered:
    """What serves all calls with arguments of some shapes, dtypes and layouts.

    Attributes:
        function: a kernel on arrays.
        arguments: its arguments.
        otherwise: what serves the calls that it declines; None if it declines none.
        takes_out: whether it writes its result into an array given as `out`.
        joins: what makes one function of several such calls: see `Variant`; None if nothing does.
    """

    def __init__(
        self,
        function: Any,
        arguments: tuple[Any, ...],
        otherwise: Any,
        takes_out: bool,
        joins: Any = None,
    ) -> None:
        self.function: Any = function
        self.arguments = arguments
        self.otherwise: Any = otherwise
        self.takes_out = takes_out
        self.joins: Any = joins


@final
class VariantChoice:
    """Kernels among which there are variants: dtype, size and layout say which of them may run.

    Attributes:
        ran: as for `Candidates`.
    """

    def __init__(self, operator: str, found: list[Candidate], backend: Backend) -> None:
        self.operator = operator
        self.found = found
        self.backend = backend
        self.array_type: Any = backend.array_type
        plain = [each for each in found if each.variant is None]
        # Computes small calls, at the cost of only one comparison.
        self.rest: Any = None
        if len(plain) == 1:
            self.rest = plain[0].kernel
        elif plain:
            self.rest = Candidates(operator, plain)
        self.ran = plain[0] if plain else found[0]
        self._settled: dict[Any, _Settled] = {}
        # Calls mostly have the dtype of the one before; looking at it takes less than hashing it.
        self._last = _Settled(None, [])

    def __call__(self, *args: Any) -> Any:
        return self.compute(args)

    def compute(self, args: tuple[Any, ...]) -> Any:
        """Call the first kernel that serves the arguments."""
        rest = self.rest  # called as an attribute, it would be looked up by name
        array: Any = args[0] if args else None
        if type(array) is not self.array_type:
            array = self._first_array(args)
        if array is None:
            return DECLINED if rest is None else rest(*args)
        native = array_dtype(array)
        settled = self._last
        if native is not settled.native:
            settled = self._settle(native, array)
        if settled.least < 0:
            return DECLINED if rest is None else rest(*args)
        count: i64 = 0
        if settled.sized:
            count = _size_of(array)
            if count < settled.least:
                return DECLINED if rest is None else rest(*args)
        if not settled.asked:
            settled = self._ask(native, settled)
        for candidate in settled.found:
            if not candidate.serves(count):
                continue
            if candidate.contiguous and not self._contiguous(args):
                continue
            kernel = candidate.kernel
            out = kernel(*args)
            if out is not DECLINED:
                self._note(candidate)
                return out
            self._note_declined(candidate)
        return DECLINED

    def compute_few(
        self, given: i64, first: Any, second: Any, third: Any, fourth: Any, fifth: Any
    ) -> Any:
        """`compute` of one to five arguments, for which no tuple is made; wrappers of kernels call
        this. What is beyond `given` is not looked at."""
        array = first
        if type(array) is list and array:
            array = array[0]
        if type(array) is not self.array_type:
            array = second if given > 1 else None
            if type(array) is not self.array_type:
                return self.compute(few(given, first, second, third, fourth, fifth))
        native = array_dtype(array)
        settled = self._last
        if native is not settled.native:
            settled = self._settle(native, array)
        count: i64 = _size_of(array) if settled.sized else 0
        if count < settled.least or settled.least < 0:
            if self.rest is None:
                return DECLINED
            return call_few(self.rest, given, first, second, third, fourth, fifth)
        if not settled.asked:
            settled = self._ask(native, settled)
        for candidate in settled.found:
            if not candidate.serves(count):
                continue
            if candidate.contiguous and not self._contiguous(
                few(given, first, second, third, fourth, fifth)
            ):
                continue
            out = call_few(candidate.kernel, given, first, second, third, fourth, fifth)
            if out is not DECLINED:
                self._note(candidate)
                return out
            self._note_declined(candidate)
        return DECLINED

    def lowered(self, *args: Any) -> Any:
        """For calls like one with these arguments: what serves them, as `Lowered`. None if it is
        decided at each call."""
        array = self._first_array(args)
        if self.rest is None or array is None:
            return None
        settled = self._settle(array.dtype, array)
        count: i64 = math.prod(array.shape)
        if not settled.asked and count >= settled.least:
            settled = self._ask(array.dtype, settled)
        first: Candidate | None = None
        for candidate in settled.found:
            if candidate.variant is None or not candidate.serves(count):
                continue
            if candidate.contiguous and not self._contiguous(args):
                continue
            if first is not None:
                # If the first one declines later, each call searches for the next one.
                return Lowered(first.kernel, args, self, False, first.joins())
            first = candidate
        if first is None:
            return Lowered(self.rest, args, None, False)
        return Lowered(first.kernel, args, self.rest, first.takes_out, first.joins())

    def _note(self, candidate: Candidate) -> None:
        self.ran = candidate
        if candidate.variant is not None:
            note_variant(self.operator, candidate)

    def _note_declined(self, candidate: Candidate) -> None:
        if current_state().trace is not None:
            note_declined(self.operator, candidate.called)

    def _first_array(self, args: tuple[Any, ...]) -> Any:
        for value in args:
            if isinstance(value, self.array_type):
                return value
            if not isinstance(value, (list, tuple)) or not value:
                continue
            if isinstance(value[0], self.array_type):
                return value[0]
        return None

    def _settle(self, native: Any, array: Any) -> _Settled:
        """What may run with a dtype; looked at once."""
        settled = self._settled.get(native)
        if settled is None:
            name = self.backend.dtype_of(array).name
            found: list[Candidate] = []
            for each in self.found:
                variant = each.variant
                if variant is None or not variant.dtypes or name in variant.dtypes:
                    found.append(each)
            settled = self._settled.setdefault(native, _Settled(native, found))
        self._last = settled
        return settled

    def _ask(self, native: Any, settled: _Settled) -> _Settled:
        """Leave out the variants that cannot be used here; runs at the first large call."""
        found: list[Candidate] = []
        for each in settled.found:
            variant = each.variant
            if variant is None or variant.problem is None or not variant.problem():
                found.append(each)
        asked = _Settled(native, found)
        asked.asked = True
        self._settled[native] = asked
        self._last = asked
        return asked

    def _contiguous(self, args: tuple[Any, ...]) -> bool:
        for value in args:
            for item in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(item, self.array_type) and not self.backend.is_contiguous(item):
                    return False
        return True


def _size_of(array: Any) -> i64:
    size: Any = getattr(array, "size", None)  # a number in NumPy and the array API standard
    return size if isinstance(size, int) else math.prod(array.shape)


def last_of(raw: Any, found: list[Candidate]) -> Candidate | None:
    """The candidate of a raw kernel that computed last."""
    if isinstance(raw, Candidates):
        return raw.ran
    if isinstance(raw, VariantChoice):
        return raw.ran
    return found[0] if found else None


def tells_itself(raw: Any) -> bool:
    """Whether a raw kernel itself reports which of its candidates has declined."""
    return isinstance(raw, (Candidates, VariantChoice))


def plain(found: list[Candidate]) -> list[Candidate]:
    """Candidates that are not variants."""
    return [each for each in found if each.variant is None]


def note_declined(operator: str, owner: str) -> None:
    """Notify the thread's listener that a kernel has declined a call."""
    trace = current_state().trace
    if trace is not None:
        trace.decline(operator, owner)


def note_variant(operator: str, candidate: Candidate) -> None:
    """Notify the thread's listener which variant has computed a call."""
    trace = current_state().trace
    if trace is not None:
        trace.choose(operator, candidate.called)
