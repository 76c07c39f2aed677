"""Version counters set explicitly: `_unsafe_preserve_version_counter`, for writes that cannot
harm."""

from __future__ import annotations

# Interpreted: it is a context manager and decorator, and seldom used.
import contextlib
from collections.abc import Sequence
from typing import Any

from plugrad.dispatch.local_state import LocalState
from plugrad.dispatch.scope import Scope
from plugrad.tensor.base import TensorBase, share_storage, version_of
from plugrad.tensor.calls.annotations import explains


def set_version_counters(tensors: Sequence[Any], versions: Sequence[int]) -> None:
    """Say how often each of the tensors was written to.

    Raises:
        RuntimeError: a negative number.
    """
    for tensor, version in zip(tensors, versions, strict=True):
        if version < 0:
            raise RuntimeError(f"Cannot set a version_counter to a value below 0: {version}")
        share_storage(tensor).version = version


class _unsafe_preserve_version_counter(Scope, contextlib.ContextDecorator):
    """Context manager: writes within it do not count for these tensors.

    Gradients may then be wrong without an error; it is for writes that restore what was there.

    >>> import plugrad
    >>> x = plugrad.ones(2)
    >>> with plugrad.autograd._unsafe_preserve_version_counter(x):
    ...     x.mul_(2).div_(2)
    tensor([1., 1.])
    >>> x._version
    0
    """

    @explains(name="_unsafe_preserve_version_counter")
    def __init__(self, tensors: TensorBase | Sequence[TensorBase]) -> None:
        self.tensors: tuple[Any, ...] = (
            (tensors,) if isinstance(tensors, TensorBase) else tuple(tensors)
        )
        self.prev_versions = tuple(version_of(tensor) for tensor in self.tensors)

    def read(self, state: LocalState) -> Any:
        return None

    def change(self, state: LocalState) -> None:
        pass

    def restore(self, state: LocalState, before: Any) -> None:
        set_version_counters(self.tensors, self.prev_versions)
