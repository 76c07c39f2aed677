"""The registry of lowerings: a function for each operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import plugrad

Lowering = Callable[..., Any]
F = TypeVar("F", bound=Lowering)

_LOWERINGS: dict[str, Lowering] = {}


def register_lowering(operator: Any, function: Lowering) -> Lowering | None:
    """Say how an operator becomes ONNX nodes.

    Args:
        operator: an overload such as `plugrad.ops.mine.wave.default`, all overloads of
            `plugrad.ops.mine.wave`, the result of `plugrad.library.custom_op`, or a name such as
            "mine::wave".
        function: `function(builder, *args, **kwargs)` gets the operator's arguments as in its
            schema, with `Value`s in place of tensors. It makes nodes with `builder.op` and returns
            a `Value`, or a tuple with one for each result.

    Returns:
        the previous function, or None.

    Raises:
        TypeError: `operator` is not an operator, or `function` is not callable.

    >>> import plugrad
    >>> from plugrad.library import custom_op
    >>> @custom_op("onnx_example::twice", mutates_args=())
    ... def twice(x: plugrad.Tensor) -> plugrad.Tensor:
    ...     return plugrad.from_numpy(2 * x.numpy())
    >>> plugrad.onnx.register_lowering(twice, lambda builder, x: builder.op("Add", x, x))
    """
    if not callable(function):
        raise TypeError(
            f"register_lowering(): function must be callable, not {type(function).__name__}"
        )
    before: Lowering | None = None
    for name in _names_of(operator):
        before = _LOWERINGS.get(name, before)
        _LOWERINGS[name] = function
    return before


def _names_of(operator: Any) -> list[str]:
    if isinstance(operator, str) and "::" in operator:
        return [operator]
    overload = getattr(operator, "_opoverload", operator)  # of a custom_op
    if hasattr(overload, "op"):
        return [overload.op.qualified_name]
    if hasattr(overload, "overloads"):
        return [getattr(overload, name).op.qualified_name for name in overload.overloads()]
    raise TypeError(
        "register_lowering(): operator must be an operator or a name such as 'mine::wave', not "
        f"{operator!r}"
    )


def lowers(*names: str) -> Callable[[F], F]:
    """Decorator: register the function as the lowering of these operators of plugrad."""

    def register(function: F) -> F:
        for name in names:
            _LOWERINGS[name if "::" in name else f"plugrad::{name}"] = function
        return function

    return register


def lowering_of(op: Any) -> Lowering | None:
    """The function that lowers an operator, or None."""
    return _LOWERINGS.get(op.qualified_name)


def functional_of(op: Any) -> Any:
    """The out-of-place counterpart of an operator that writes to its first argument; None if `op`
    is not in place or has no counterpart."""
    if not op.name.endswith("_") or op.name.endswith("__") or not op.schema.mutates:
        return None
    packet = getattr(getattr(plugrad.ops, op.namespace), op.name[:-1], None)
    overload = op.overload or "default"
    if packet is None or overload not in packet.overloads():
        return None
    return getattr(packet, overload).op
