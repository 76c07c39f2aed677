"""Modes that see every operator below autograd, as kernels do, in backward passes too.

The counterpart of `torch.utils._python_dispatch`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from plugrad.dispatch.keys import (
    AFTER_AD_INPLACE_OR_VIEW,
    BACKEND_SELECT,
    COMPOSITE_IMPLICIT_AUTOGRAD,
    FUNCTIONALIZE,
    OUTER_LEVEL,
)
from plugrad.dispatch.listener import Trace
from plugrad.dispatch.local_state import LocalState, current_state
from plugrad.dispatch.operator import Operator
from plugrad.dispatch.schema import Argument
from plugrad.dispatch.scope import Scope
from plugrad.ops.namespace import overload_of
from plugrad.overrides.modes import Mode
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.overridable import ALL_OFF

_METHOD = "__plugrad_dispatch__"
_ALIAS = "__torch_dispatch__"


class PlugradDispatchMode(Mode):
    """A context manager that intercepts operators before they go to a backend.

    Subclass it and define `__plugrad_dispatch__(self, func, types, args=(), kwargs=None)`, or, as
    in PyTorch, `__torch_dispatch__`. It runs below autograd, autocast and transforms: `func` is an
    overload of an operator (`plugrad.ops`), tensors are the values, and its return value is the
    operator's result; gradients are recorded as usual. It receives the parts of composite
    operators, and the operators of a backward pass that starts in the block. Inside it the mode is
    off, so `func(*args, **kwargs)` goes to the outer mode, then to the backend.

    `types` is empty: only modes receive operators, classes of tensors do not.

    Raises:
        TypeError: it returns NotImplemented, or something else than tensors for a tensor.

    >>> import plugrad
    >>> from plugrad.overrides import PlugradDispatchMode
    >>> class Log(PlugradDispatchMode):
    ...     def __plugrad_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> x = plugrad.ones(2, requires_grad=True)
    >>> with Log():
    ...     (x * 2).sum().backward()
    plugrad.mul.Scalar
    plugrad.sum.default
    plugrad.ones_like.default
    plugrad.expand.default
    plugrad.mul.Scalar
    """

    names = (_METHOD, _ALIAS)

    def __plugrad_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define {_METHOD}")

    __torch_dispatch__ = __plugrad_dispatch__

    def read(self, state: LocalState) -> Any:
        return state.trace

    def change(self, state: LocalState) -> None:
        state.trace = _Listener(state.trace, self.held())

    def restore(self, state: LocalState, before: Any) -> None:
        state.trace = before


class BasePlugradDispatchMode(PlugradDispatchMode):
    """A mode that lets every operator through.

    >>> import plugrad
    >>> from plugrad.overrides import BasePlugradDispatchMode
    >>> with BasePlugradDispatchMode():
    ...     plugrad.ones(2) + 1
    tensor([2., 2.])
    """

    def __plugrad_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def dispatch_modes() -> list[Any]:
    """The dispatch modes that are on, outermost first."""
    modes = [listener.held() for listener in _listeners() if not listener.paused]
    return [mode for mode in reversed(modes) if mode is not None]


def dispatch_mode() -> Any:
    """The innermost dispatch mode, or None."""
    modes = dispatch_modes()
    return modes[-1] if modes else None


class dispatch_modes_off(Scope):
    """Context manager: operators go to no dispatch mode; gives the modes that were on."""

    def read(self, state: LocalState) -> Any:
        return [(listener, listener.paused) for listener in _listeners()]

    def change(self, state: LocalState) -> None:
        self.modes = dispatch_modes()
        for listener in _listeners():
            listener.paused = True

    def restore(self, state: LocalState, before: Any) -> None:
        for listener, paused in before:
            listener.paused = paused

    def value(self) -> Any:
        return self.modes


class _Listener(Trace):
    """Takes operators to a mode."""

    def __init__(self, outer: Trace | None, held: Callable[[], Any]) -> None:
        super().__init__(outer)
        self.held = held
        self.paused = False

    def dispatch(self, kind: str, op: Operator, keyset: int, args: tuple[object, ...]) -> Any:
        """Get the result from the mode if autograd and all keys above it have run."""
        mode = None if self.paused else self.held()
        if mode is None or not _goes_to_backend(op, keyset):
            return super().dispatch(kind, op, keyset, args)
        overload = overload_of(op)
        positional, keywords = _as_written(op, args)
        with _Inside(self.outer):
            result = mode.__plugrad_dispatch__(overload, (), positional, keywords)
        _check(result, mode, op)
        return result


class _Inside(Scope):
    """While a mode runs: it is off, and so are the modes that have already run."""

    def __init__(self, outer: Trace | None) -> None:
        self._outer = outer

    def read(self, state: LocalState) -> Any:
        return state.trace, state.kept, state.overrides_off

    def change(self, state: LocalState) -> None:
        state.trace = self._outer
        state.kept = state.kept & AFTER_AD_INPLACE_OR_VIEW
        state.overrides_off = ALL_OFF

    def restore(self, state: LocalState, before: Any) -> None:
        state.trace, state.kept, state.overrides_off = before


def _listeners() -> Iterator[_Listener]:
    """Innermost first."""
    trace = current_state().trace
    while trace is not None:
        if isinstance(trace, _Listener):
            yield trace
        trace = trace.outer


def _goes_to_backend(op: Operator, keyset: int) -> bool:
    key = op.serving_key(keyset)
    if key.functionality > FUNCTIONALIZE or key.functionality == BACKEND_SELECT:
        return False
    if key.backend == OUTER_LEVEL:
        return False
    return op.lookup(keyset) is not op.kernel_for(COMPOSITE_IMPLICIT_AUTOGRAD)


def _as_written(op: Operator, values: tuple[object, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments without those at the end, and those by keyword, that are the schema's defaults."""
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    needed = 0
    for argument, value in zip(op.schema.arguments, values, strict=True):
        if argument.kwarg_only:
            if not _is_default(argument, value):
                keywords[argument.name] = _public(value)
            continue
        positional.append(_public(value))
        if not _is_default(argument, value):
            needed = len(positional)
    return tuple(positional[:needed]), keywords


def _is_default(argument: Argument, value: object) -> bool:
    if not argument.has_default:
        return False
    default = argument.default
    return value is default or (type(value) is type(default) and value == default)


def _public(value: object) -> object:
    return list(value) if type(value) is tuple else value


def _check(result: object, mode: object, op: Operator) -> None:
    name = f"{type(mode).__name__}.{_METHOD}"
    if result is NotImplemented:
        raise TypeError(
            f"{name} returned NotImplemented for {op.qualified_name}; call func to have the "
            "operator run"
        )
    returns = op.schema.returns
    if len(returns) != 1 or returns[0].type.base != "Tensor" or returns[0].type.is_list:
        return
    if not isinstance(result, TensorBase):
        raise TypeError(
            f"{name} should return a Tensor for {op.qualified_name}, got {type(result).__name__}"
        )
