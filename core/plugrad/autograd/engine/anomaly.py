"""Anomaly mode: records where each node was made, looks for NaNs, and reports their origin.

The mode belongs to the process, as in PyTorch: a node is made on one thread and may run on another.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any, Final, final

from mypy_extensions import mypyc_attr

from plugrad._generated.calls import call_any, call_isnan
from plugrad.dispatch.caller import caller_outside_plugrad
from plugrad.dispatch.local_state import LocalState, current_state
from plugrad.dispatch.scope import Scope
from plugrad.dtype import FLOATING
from plugrad.graph.node import Node, name_of, observe_node_creation
from plugrad.tensor.base import TensorBase

# PyTorch's keys in a node's `metadata`.
TRACEBACK_KEY: Final = "traceback_"
PARENT_KEY: Final = "parent_"


@final
class AnomalyMode:
    """Whether the mode is on, and whether gradients are searched for NaNs in it."""

    def __init__(self) -> None:
        self.enabled: bool = False
        self.check_nan: bool = True


ANOMALY: Final = AnomalyMode()


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switch anomaly mode for all threads, from the next node on that is made or run."""
    ANOMALY.enabled = enabled
    ANOMALY.check_nan = check_nan
    observe_node_creation(_note_creation if enabled else None)


@mypyc_attr(allow_interpreted_subclasses=True)
class AnomalyScope(Scope):
    """Anomaly mode is on or off within the block; after it, it is as noted before.

    Attributes:
        prev, prev_check_nan: the former settings.
    """

    enabled: bool = True
    check_nan: bool = True
    prev: bool = False
    prev_check_nan: bool = True

    def note_former(self) -> None:
        """Store the former settings."""
        self.prev = ANOMALY.enabled
        self.prev_check_nan = ANOMALY.check_nan

    def read(self, state: LocalState) -> Any:
        return self.prev, self.prev_check_nan

    def change(self, state: LocalState) -> None:
        set_anomaly_enabled(self.enabled, self.check_nan)

    def restore(self, state: LocalState, before: Any) -> None:
        set_anomaly_enabled(self.prev, self.prev_check_nan)


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on.

    >>> import plugrad
    >>> with plugrad.autograd.detect_anomaly(check_nan=False):
    ...     plugrad.is_anomaly_enabled()
    True
    """
    return ANOMALY.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode, when it is on, raises at the first NaN in a gradient.

    >>> import plugrad
    >>> with plugrad.autograd.detect_anomaly(check_nan=False):
    ...     plugrad.is_anomaly_check_nan_enabled()
    False
    """
    return ANOMALY.check_nan


def _note_creation(node: Node) -> None:
    """Keep the stack of the forward call, and the node that is being run, if one is."""
    notes: dict[Any, Any] = {TRACEBACK_KEY: _format_stack()}
    parent = current_state().node
    if parent is not None:
        notes[PARENT_KEY] = parent
    if node._extra is None:
        node._extra = notes
    else:
        node._extra.update(notes)


def _format_stack() -> list[str]:
    """The calling thread's stack, outermost first, up to the last line outside plugrad; nothing on
    a thread of a device, unless a function of the user's runs there."""
    frame = caller_outside_plugrad()
    import traceback

    # Without a frame, extract_stack would take this very one.
    return [] if frame is None else traceback.format_list(traceback.extract_stack(frame))


def check_outputs(node: Node, outputs: list[TensorBase | None]) -> None:
    """Look for NaNs in a node's outputs.

    Raises:
        RuntimeError: there is one; names the node and the output.
    """
    if not ANOMALY.check_nan:
        return
    state = current_state()
    grad_enabled = state.grad_enabled
    state.grad_enabled = False
    try:
        for index, output in enumerate(outputs):
            if output is not None and output.dtype.category >= FLOATING and _has_nan(output):
                raise RuntimeError(
                    f"Function '{name_of(node)}' returned nan values in its {index}th output."
                )
    finally:
        state.grad_enabled = grad_enabled


def _has_nan(tensor: TensorBase) -> bool:
    found: Any = call_any(call_isnan(tensor))
    return bool(found)


def report_error(node: Node | None) -> None:
    """Warn where the node that failed was made, then where its parents were, up to the first.

    Called on the thread that called backward; the warnings point to its line. Never raises: the
    error that is on its way must not be lost.
    """
    if node is None:
        return
    extra = node._extra
    stack: Any = None if extra is None else extra.get(TRACEBACK_KEY)
    if stack is None:
        _warn(
            f"Error detected in {name_of(node)}. No forward pass information available. Enable "
            "detect anomaly during forward pass for more information."
        )
    else:
        _warn(
            f"Error detected in {name_of(node)}. Traceback of forward call that caused the error:\n"
            f"{''.join(stack)}"
        )
    parent: Any = None if extra is None else extra.get(PARENT_KEY)
    while parent is not None:
        induced: Any = parent.metadata.get(TRACEBACK_KEY)
        if induced is None:
            _warn(
                f"Error detected in {name_of(parent)}. No forward pass information available. "
                "Enable detect anomaly during forward pass for more information."
            )
        else:
            _warn(
                f"\n\nPrevious calculation was induced by {name_of(parent)}. Traceback of forward "
                f"call that induced the previous calculation:\n{''.join(induced)}"
            )
        parent = parent.metadata.get(PARENT_KEY)


def _warn(text: str) -> None:
    """Warn at the line that called backward, if there is one."""
    frame = caller_outside_plugrad()
    try:
        if frame is None:
            warnings.warn(text, UserWarning, stacklevel=1)
        else:
            warnings.warn_explicit(
                text,
                UserWarning,
                frame.f_code.co_filename,
                frame.f_lineno,
                registry=frame.f_globals.setdefault("__warningregistry__", {}),
            )
    except UserWarning:
        # Warnings are errors here, but there is an error already.
        print(f"UserWarning: {text}", file=sys.stderr)
