"""Anomaly mode: finds the line that made a node if its backward failed or gave a NaN."""

from __future__ import annotations

# Interpreted: it warns at its caller's line, and compiled code has no frames to count.
from typing import Any

from plugrad.autograd.engine import anomaly
from plugrad.autograd.engine.anomaly import (
    AnomalyScope,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
)
from plugrad.dispatch.caller import warn_at_caller
from plugrad.dispatch.local_state import LocalState
from plugrad.dispatch.prepared_signature import PreparedSignature
from plugrad.dispatch.scope import SetAtOnce

__all__ = [
    "detect_anomaly",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "set_anomaly_enabled",
    "set_detect_anomaly",
]


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switch anomaly mode on or off for the whole process; see `detect_anomaly`.

    Raises:
        TypeError: an argument is not a bool.

    >>> import plugrad
    >>> plugrad.set_anomaly_enabled(True)
    >>> plugrad.is_anomaly_enabled(), plugrad.is_anomaly_check_nan_enabled()
    (True, True)
    >>> plugrad.set_anomaly_enabled(False)
    """
    anomaly.set_anomaly_enabled(
        _checked("enabled", 1, enabled), _checked("check_nan", 2, check_nan)
    )


def _checked(name: str, position: int, value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(
            f"set_anomaly_enabled(): argument '{name}' (position {position}) must be bool, not "
            f"{type(value).__name__}"
        )
    return value


class detect_anomaly(AnomalyScope):
    """Context manager: find out which part of the forward computation breaks backward.

    Inside, every node keeps the stack of the call that made it. If it fails in backward, that
    stack is issued as a `UserWarning` before the error is raised, followed by its parents' stacks:
    with `create_graph=True`, the nodes that created it in backward. With `check_nan`, a gradient
    that contains a NaN is an error: a RuntimeError that names the node and the output.

    It holds for all threads and costs a stack walk per node and a pass over every gradient.

    >>> import plugrad, warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     with plugrad.autograd.detect_anomaly():
    ...         y = plugrad.ones(1, requires_grad=True) * 2
    >>> sorted(y.grad_fn.metadata)
    ['traceback_']
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.note_former()
        self.check_nan = _checked("check_nan", 2, check_nan)
        warn_at_caller(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
        )


class set_detect_anomaly(SetAtOnce):
    """Sets anomaly mode to `mode`, at once; as a context manager it restores the old mode.

    >>> import plugrad
    >>> with plugrad.autograd.set_detect_anomaly(True, check_nan=False):
    ...     plugrad.is_anomaly_enabled(), plugrad.is_anomaly_check_nan_enabled()
    (True, False)
    >>> plugrad.is_anomaly_enabled()
    False
    """

    __signature__: Any = PreparedSignature()

    def prepare(self, mode: bool, check_nan: bool = True) -> None:
        self.enabled = _checked("enabled", 1, mode)
        self.check_nan = _checked("check_nan", 2, check_nan)

    def read(self, state: LocalState) -> Any:
        return is_anomaly_enabled(), is_anomaly_check_nan_enabled()

    def change(self, state: LocalState) -> None:
        anomaly.set_anomaly_enabled(self.enabled, self.check_nan)

    def restore(self, state: LocalState, before: Any) -> None:
        anomaly.set_anomaly_enabled(*before)
