"""Operators on lists: `runs_at_once` reports whether a call is one call of a backend's kernel.

Kernels on lists of arrays call kernels on one array, in a loop without dispatch.
`fused_lists(kernels)` works for any backend; a backend that needs only one launch or one program
for all arrays provides `_fused_lists` itself.
"""

# Interpreted: few backends need it, and it only loops.
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from plugrad.tensor.calls.lists import runs_at_once

Kernel = Callable[..., Any]

__all__ = ["fused_lists", "runs_at_once", "update_lists"]


def _add_scaled(a: Any, b: Any, factor: Any) -> Any:
    return a + _times(b, factor)


def _subtract_scaled(a: Any, b: Any, factor: Any) -> Any:
    return a - _times(b, factor)


def _times(array: Any, factor: Any) -> Any:
    """A factor that is traced has no value to look at."""
    return array if isinstance(factor, (int, float)) and factor == 1 else array * factor


# What takes a factor that the kernel of two arrays does not.
_SCALED: dict[str, Kernel] = {"add.Tensor": _add_scaled, "sub.Tensor": _subtract_scaled}


def kernel_of(kernels: Mapping[str, Kernel], function: str, scaled: bool) -> Kernel | None:
    """The kernel of an operator such as "mul.Tensor" on one array, None if there is none."""
    if scaled and function in _SCALED:
        return _SCALED[function]
    found = kernels.get(function)
    return kernels.get(function.partition(".")[0]) if found is None else found


def _calls(lists: tuple[list[Any], ...], numbers: Any) -> Iterator[tuple[Any, ...]]:
    """The arguments of each call."""
    given: list[Any] = [arrays for arrays in lists if arrays]
    if numbers:
        given.append(numbers)
    return zip(*given, strict=True)


def fused_lists(kernels: Mapping[str, Kernel]) -> Kernel:
    """A kernel for `_fused_lists`.

    Args:
        kernels: those on one array, by operator; looked at when the kernel is called.
    """

    def fused(
        function: str, self: list[Any], second: list[Any], third: list[Any], numbers: Any
    ) -> Any:
        kernel = kernel_of(kernels, function, bool(numbers))
        if kernel is None:
            return NotImplemented
        return [kernel(*given) for given in _calls((self, second, third), numbers)]

    return fused


def update_lists(
    kernels: Mapping[str, Kernel],
    copy: Callable[[Any, Any], object],
    in_place: Mapping[str, Kernel] | None = None,
) -> Kernel:
    """A kernel for `_update_lists`, for arrays that can be written to.

    Args:
        kernels: those on one array, by operator; those in place ("add_.Tensor") are preferred.
        copy: writes its second array into the first.
        in_place: kernels that write their result into their first argument and take what the
            functional kernel takes, the factor of "add.Tensor" included.
    """
    best = {} if in_place is None else in_place

    def update(
        function: str, self: list[Any], second: list[Any], third: list[Any], numbers: Any
    ) -> Any:
        calls = _calls((self, second, third), numbers)
        name, dot, overload = function.partition(".")
        kernel = best.get(function) if numbers else None
        if kernel is None and not (numbers and function in _SCALED):
            kernel = kernels.get(f"{name}_{dot}{overload}")
        if kernel is not None:
            for given in calls:
                kernel(*given)
            return None
        kernel = kernel_of(kernels, function, bool(numbers))
        if kernel is None:
            return NotImplemented
        for given in calls:
            copy(given[0], kernel(*given))
        return None

    return update
