"""Checks that the results of hooks match what they replace, and notifies listeners of them."""

from __future__ import annotations

from typing import Any

from plugrad.dispatch.local_state import current_state
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.overridable import call_users


def tell_of_hook(kind: str, hook: Any) -> None:
    """Notify this thread's listeners before it runs a hook of the current node."""
    state = current_state()
    trace = state.trace
    if trace is not None:
        trace.run_hook(state.node, kind, hook)


def check_result(hook: Any, before: Any, after: Any) -> None:
    """Whether a hook may replace one value by another.

    Raises:
        TypeError: it returned something that is not a tensor.
        RuntimeError: the result differs in dtype, device or shape, or replaces None.
    """
    if after is None:
        return
    if before is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if not isinstance(after, TensorBase):
        raise TypeError(f"expected Variable, but hook returned '{type(after).__name__}'")
    original: TensorBase = before
    if original.dtype is not after.dtype or original.device.type != after.device.type:
        raise RuntimeError(
            f"hook '{_name_of(hook)}' has changed the type of value (was {_type_of(original)} got "
            f"{_type_of(after)})"
        )
    if sizes_of(original) != sizes_of(after):
        raise RuntimeError(f"hook '{_name_of(hook)}' has changed the size of value")


def checked_results(
    hook: Any, before: list[TensorBase | None], result: Any
) -> list[TensorBase | None]:
    """The tuple that a node's hook returned, one value for each that was there.

    Raises:
        TypeError: no tuple, or something in it that is neither a tensor nor None.
        RuntimeError: a value too few or too many, or one that may not replace the former one.
    """
    if not isinstance(result, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(result).__name__}'")
    if len(result) != len(before):
        raise RuntimeError(
            f"hook '{_name_of(hook)}' has returned an incorrect number of values (got "
            f"{len(result)}, but expected {len(before)})"
        )
    for former, value in zip(before, result, strict=True):
        check_result(hook, former, value)
    return list(result)


def run_post_accumulate_hooks(hooks: dict[int, Any], variable: TensorBase) -> None:
    """Run a leaf's hooks for after accumulation, in order.

    Raises:
        RuntimeError: one returned something else than None.
    """
    value: Any = variable
    for hook in list(hooks.values()):
        tell_of_hook("accumulate", hook)
        result = call_users(hook, (value,))
        if result is not None:
            check_result(hook, value, result)
            value = result
    if value is not variable:
        raise RuntimeError("Tensor post accumulate grad hooks should return None.")


def _name_of(hook: Any) -> str:
    name = getattr(hook, "__name__", None)
    return name if isinstance(name, str) else "<unknown>"


def _type_of(tensor: TensorBase) -> str:
    place = "" if tensor.device.type == "cpu" else f"{tensor.device.type}."
    return f"plugrad.{place}{tensor.dtype.scalar_name}Tensor"
