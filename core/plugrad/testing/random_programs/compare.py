"""The first difference between two runs of a program."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from plugrad.testing.random_programs.stage import Event

_SINGLE = ("float32", "complex64")
_BUG = "INTERNAL ASSERT FAILED"
_HINT = re.compile(r"\(Could this error message be improved\?.*")
_WORD = re.compile(r"[a-z_]{3,}")


def difference(
    ours: tuple[list[Event], dict[str, Any]],
    theirs: tuple[list[Event], dict[str, Any]],
    *,
    ordered: bool = True,
    tolerance: float | None = None,
    words: bool = True,
) -> str | None:
    """The first difference between two runs, in words; None if they agree.

    After a bug that a library itself reports, its results are not compared.

    Args:
        ordered: whether hooks must be called in one order. If not, the progress of a pass that
            raised is unknown, too, so nothing after it is compared.
        tolerance: of numbers, relative; `inf` compares only shapes and dtypes. By default
            suitable for the lowest precision in the run.
        words: whether errors must have the same message, not only the same class.
    """
    if _has_bug(ours) or _has_bug(theirs):
        return None
    if not ordered:
        raised = [[e[0] for e in run[0] if e[1] == "raised"][:1] for run in (ours, theirs)]
        if raised[0] != raised[1]:
            return f"statement that raised: {raised[0]}, theirs: {raised[1]}"
        if raised[0]:
            return None
        ours, theirs = ((sorted(run[0], key=lambda e: e[:2]), run[1]) for run in (ours, theirs))
    if tolerance is None:
        tolerance = 1e-4 if _is_single(theirs[1]) or _is_single(theirs[0]) else 1e-9
    for mine, other in zip(ours[0], theirs[0], strict=False):
        if mine[:2] != other[:2]:
            return f"{_event(mine)}\n  but theirs: {_event(other)}"
        where = f"statement {mine[0]}, {mine[1]}"
        if mine[1] == "raised":
            found = _difference_of_errors(mine[2], other[2], words)
        else:
            found = _difference(mine[2], other[2], tolerance)
        if found is not None:
            return f"{where}: {found}"
    if len(ours[0]) != len(theirs[0]):
        longer = max(ours[0], theirs[0], key=len)
        whose = "only ours" if longer is ours[0] else "only theirs"
        return f"{whose}: {_event(longer[min(len(ours[0]), len(theirs[0]))])}"
    for name in theirs[1]:
        found = _difference(ours[1].get(name), theirs[1][name], tolerance)
        if found is not None:
            return f"{name} in the end: {found}"
    return None


def _has_bug(run: tuple[list[Event], dict[str, Any]]) -> bool:
    raised = [event[2] for event in run[0] if event[1] == "raised"]
    raised += [value for value in run[1].values() if isinstance(value, tuple)]
    return any(_BUG in str(error) for error in raised)


def _is_single(value: Any) -> bool:
    """Whether anything was computed with less than double precision."""
    if isinstance(value, dict):
        return any(_is_single(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return any(_is_single(item) for item in value)
    return isinstance(value, str) and value in _SINGLE


def _event(event: Event) -> str:
    return f"statement {event[0]}, {event[1]}: {event[2]}"


def _difference_of_errors(ours: Any, theirs: Any, words: bool = True) -> str | None:
    same = ours[0] == theirs[0]
    if same and words:
        first, second = (set(_words(text)) for text in (ours[1], theirs[1]))
        same = len(first & second) >= 0.6 * max(len(first), len(second))
    return None if same else f"{ours}\n  but theirs: {theirs}"


def _words(message: str) -> list[str]:
    return _WORD.findall(_HINT.sub("", message).lower().replace("torch", "plugrad"))


def _difference(ours: Any, theirs: Any, tolerance: float) -> str | None:
    if isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray):
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            return f"{ours.dtype} {ours.shape}, theirs {theirs.dtype} {theirs.shape}"
        return None if _close(ours, theirs, tolerance) else f"{ours}\n  but theirs: {theirs}"
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in theirs:
            found = _difference(ours[key], theirs[key], tolerance)
            if found is not None:
                return f"{key}: {found}"
        return None
    if isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)):
        if len(ours) != len(theirs):
            return f"{ours}\n  but theirs: {theirs}"
        if len(ours) == 2 and all(isinstance(item, str) for item in (*ours, *theirs)):
            return _difference_of_errors(ours, theirs)
        for mine, other in zip(ours, theirs, strict=True):
            found = _difference(mine, other, tolerance)
            if found is not None:
                return found
        return None
    if type(ours) is type(theirs) and ours == theirs:
        return None
    return f"{ours}\n  but theirs: {theirs}"


def _close(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any], tolerance: float) -> bool:
    if tolerance == np.inf:
        return True
    if ours.dtype.kind not in "fc":
        return bool(np.array_equal(ours, theirs))
    if np.array_equal(ours, theirs):
        return True
    finite = np.abs(theirs[np.isfinite(theirs)])
    scale = max(1.0, float(finite.max())) if finite.size else 1.0
    return bool(np.allclose(ours, theirs, rtol=tolerance, atol=tolerance * scale, equal_nan=True))
