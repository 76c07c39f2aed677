"""AccumulateGrad: the node at every leaf, which adds the gradient that arrives to `.grad`."""

from __future__ import annotations

import sys
import threading
from typing import Any, Final

from mypy_extensions import mypyc_attr

from plugrad._generated.calls import call_add__Tensor, call_add_Tensor, call_clone
from plugrad.dispatch.local_state import current_state
from plugrad.graph.node import MAX_SEQUENCE_NR, Node
from plugrad.tensor.base import TensorBase, materialize_meta, sizes_of

# Threads may run backward into the same leaf; kernels let other threads run.
_accumulating: Final = threading.RLock()


@mypyc_attr(allow_interpreted_subclasses=True)
class AccumulateGradBase(Node):
    """Adds to a leaf's `.grad`. The graph keeps it alive, it the leaf; the leaf knows it weakly.

    `plugrad._shells.AccumulateGrad` is the class that is instantiated: native classes cannot be
    referred to weakly.
    """

    def __init__(self, variable: TensorBase) -> None:
        super().__init__(MAX_SEQUENCE_NR)
        self.variable = variable
        self.add_input_metadata(variable)

    def apply(self, grads: list[TensorBase | None]) -> list[TensorBase | None]:
        variable = self.variable
        meta = materialize_meta(variable)
        if meta.hooks:
            run_tensor_hooks(meta.hooks, grads, 0)
        if grads[0] is None or not meta.requires_grad:
            return []
        with _accumulating:
            grad = meta.grad
            if grad is None:
                meta.grad = _own(grads)
            elif current_state().grad_enabled:
                meta.grad = call_add_Tensor(grad, _first(grads))
            else:
                call_add__Tensor(grad, _first(grads))
        if meta.post_hooks:
            for hook in list(meta.post_hooks.values()):
                hook(variable)
        return []


def _first(grads: list[TensorBase | None]) -> TensorBase:
    grad = grads[0]
    assert grad is not None
    return grad


def _reference_count(grads: list[TensorBase | None]) -> int:
    return sys.getrefcount(grads[0])


def _array_reference_count(grads: list[TensorBase | None]) -> int:
    return sys.getrefcount(_first(grads).array)


class _Counts:
    """The reference counts of a gradient that nobody else holds; measured, since they differ
    between compiled and interpreted code."""

    def __init__(self) -> None:
        self.tensor = -1
        self.array = -1


_unshared: Final = _Counts()


def _own(grads: list[TensorBase | None]) -> TensorBase:
    """A gradient that may be written to later: the one that arrived if nobody else can see it.

    With a graph being recorded, the gradient stays part of it, as a copy.
    """
    grad = _first(grads)
    if current_state().grad_enabled or grad.storage is not None or grad.meta is not None:
        return call_clone(grad)
    if _unshared.tensor < 0:
        _measure()
    del grad
    if (
        _reference_count(grads) == _unshared.tensor
        and _array_reference_count(grads) == _unshared.array
        and getattr(_first(grads).array, "base", None) is None
    ):
        return _first(grads)
    return call_clone(_first(grads))


def _measure() -> None:
    from plugrad.device import CPU
    from plugrad.dtype import float32

    probe: list[TensorBase | None] = [TensorBase(_Probe(), float32, CPU, 0)]
    _unshared.tensor = _reference_count(probe)
    _unshared.array = _array_reference_count(probe)


class _Probe:
    """Stands for an array while reference counts are measured."""


def run_tensor_hooks(hooks: dict[int, Any], grads: list[TensorBase | None], index: int) -> None:
    """Run a tensor's gradient hooks on `grads[index]`, in order; a result replaces it."""
    for hook in list(hooks.values()):
        result = hook(grads[index])
        if result is not None:
            if not isinstance(result, TensorBase):
                raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
            _check_hook_result(hook, grads[index], result)
            grads[index] = result


def _check_hook_result(hook: Any, before: TensorBase | None, after: TensorBase) -> None:
    if before is None:
        return
    name = getattr(hook, "__name__", type(hook).__name__)
    if sizes_of(before) != sizes_of(after):
        raise RuntimeError(f"hook '{name}' has changed the size of value")
    if before.dtype is not after.dtype:
        raise RuntimeError(
            f"hook '{name}' has changed the type of value (was {before.dtype.scalar_name}Tensor "
            f"got {after.dtype.scalar_name}Tensor)"
        )
