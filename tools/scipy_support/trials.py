"""Calls one of SciPy's functions on tensors, and checks its value against NumPy's and its
gradient."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, is_dataclass
from typing import Any

import numpy as np

import plugrad
from plugrad import array_api
from tools.scipy_support.arguments import ARRAYS, FIXED, helpers, names

NOT_RECORDED = "Can't call numpy() on Tensor that requires grad"
STEP = 1e-6


@dataclass
class Outcome:
    """A row of the table: a value, a gradient, and a remark."""

    value: str
    gradient: str
    remark: str = ""


def parts(result: Any, depth: int = 0) -> list[Any]:
    """The arrays and numbers in a result, in a fixed order."""
    if isinstance(result, (plugrad.Tensor, np.ndarray, np.generic, int, float, complex)):
        return [result]
    if result is None or isinstance(result, str) or depth > 4:
        return []
    if isinstance(result, dict):
        return [part for key in sorted(result, key=str) for part in parts(result[key], depth + 1)]
    if isinstance(result, (tuple, list)):
        return [part for each in result for part in parts(each, depth + 1)]
    if is_dataclass(result) or hasattr(result, "__dict__"):
        shown = {k: v for k, v in vars(result).items() if not k.startswith("_") and not callable(v)}
        return parts(shown, depth + 1)
    return []


def run(function: Any, call: str, values: dict[str, Any], xp: Any) -> list[Any]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return parts(eval(call, {**helpers(xp), **values, "f": function}))


def on_host(part: Any) -> Any:
    return part.detach().numpy() if isinstance(part, plugrad.Tensor) else np.asarray(part)


def said(error: BaseException) -> str:
    if "modified by an inplace operation" in str(error):
        return "writes to an array that a derivative needs"
    if "is a view and is being modified inplace" in str(error):
        return "writes to what it unpacked"
    if isinstance(error, AttributeError) and "plugrad" in str(error):
        return f"plugrad lacks `{error.name}`"
    line = str(error).partition("\n")[0].replace("|", "/")
    return f"{type(error).__name__}: {line if len(line) <= 100 else line[:97] + '...'}"


def try_out(function: Any, call: str) -> Outcome:
    """Call a function on NumPy's arrays, on tensors, and on tensors that require grad."""
    given = {name: ARRAYS[name] for name in names(call)}
    try:
        expected = run(function, call, {k: v.copy() for k, v in given.items()}, np)
    except Exception as error:
        return Outcome("?", "", f"the call fails on NumPy: {said(error)}")
    tensors = {name: plugrad.from_numpy(array.copy()) for name, array in given.items()}
    try:
        found = run(function, call, tensors, array_api)
    except Exception as error:
        return Outcome("no", "no", said(error))
    if len(found) != len(expected):
        return Outcome("no", "no", f"{len(found)} results in place of {len(expected)}")
    for one, other in zip(found, expected, strict=True):
        # Results in the default dtype have its precision.
        narrow = getattr(one, "dtype", None) in (plugrad.float32, plugrad.complex64)
        try:
            a, b = on_host(one), np.asarray(other)
        except RuntimeError as error:
            return Outcome("no", "no", said(error))
        tolerance = 1e-4 if narrow else 1e-7
        if a.shape != b.shape or not np.allclose(a, b, tolerance, tolerance, equal_nan=True):
            return Outcome("differs", "", f"{a.shape} and {b.shape}" if a.shape != b.shape else "")
    return Outcome("equal", *gradient(function, call, given))


def gradient(function: Any, call: str, given: dict[str, Any]) -> tuple[str, str]:
    """The derivative along one direction, by autograd and by differences of NumPy's values."""
    floats = [
        name for name, array in given.items() if array.dtype.kind in "fc" and name not in FIXED
    ]
    if not floats:
        return "-", ""
    leaves = {
        name: plugrad.from_numpy(array.copy()).requires_grad_(name in floats)
        for name, array in given.items()
    }
    try:
        found = run(function, call, leaves, array_api)
    except Exception as error:
        if NOT_RECORDED in str(error):
            return "no", "compiled code"
        return "no", said(error)
    recorded = [
        place for place, part in enumerate(found)
        if isinstance(part, plugrad.Tensor) and part.requires_grad
    ]  # fmt: skip
    if not recorded:
        return "-", ""
    loss: Any = sum(plugrad.real(found[place]).sum() for place in recorded)
    try:
        loss.backward()
    except RuntimeError as error:
        return "no", said(error)
    rng = np.random.default_rng(5)
    slope, moved = 0.0, {}
    for name in floats:
        direction = rng.normal(size=given[name].shape)
        moved[name] = direction
        grad = leaves[name].grad
        if grad is not None:
            slope += float((np.real(grad.numpy()) * direction).sum())

    def at(step: float) -> float:
        values = {
            name: array + step * moved[name] if name in moved else array.copy()
            for name, array in given.items()
        }
        result = run(function, call, values, np)
        return float(sum(np.real(np.asarray(result[place])).sum() for place in recorded))

    try:
        difference = (at(STEP) - at(-STEP)) / (2 * STEP)
    except ValueError as error:
        return "-", f"no differences: {said(error)}"
    if np.isclose(slope, difference, rtol=1e-3, atol=1e-5):
        return "checked", ""
    return "differs", f"{slope:.5g}, by differences {difference:.5g}"
