"""register_sharding: third-party propagation rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from plugrad_distributed.tensor.registration import acceptable, register_rule
from plugrad_distributed.tensor.spec import Rule

__all__ = ["register_sharding"]

F = TypeVar("F", bound=Callable[..., Any])


def register_sharding(op: Any) -> Callable[[F], F]:
    """Decorator that registers a function as the propagation rule of one or several operators.

    The function gets the operator's arguments in order. In place of tensors it gets objects with
    `shape`, `ndim`, `placements` and `device_mesh`. It returns pairs: placements of the results,
    and placements of the arguments, with None for arguments that are not tensors. Each pair is for
    one dimension of a mesh. The cheapest possible pair is used.

    Args:
        op: an overload such as ``plugrad.ops.mine.cube.default``, or a list of them. An existing
            rule is replaced.

    Raises:
        TypeError: `op` is not an overload.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.tensor import DTensor, Replicate, Shard
    >>> from plugrad.distributed.tensor.experimental import register_sharding
    >>> @plugrad.library.custom_op("demo_sharding::cube", mutates_args=())
    ... def cube(x: plugrad.Tensor) -> plugrad.Tensor:
    ...     return x**3
    >>> @cube.register_fake
    ... def shape_of_cube(x):
    ...     return plugrad.empty_like(x)
    >>> @register_sharding(plugrad.ops.demo_sharding.cube.default)
    ... def rule(x):
    ...     return [([Shard(dim)], [Shard(dim)]) for dim in range(x.ndim)]
    """
    overloads: Sequence[Any] = op if isinstance(op, (list, tuple)) else [op]
    for one in overloads:
        if not hasattr(one, "op"):
            raise TypeError(
                "register_sharding(): op must be an overload, such as "
                f"plugrad.ops.mine.cube.default, got {one!r}"
            )

    def register(function: F) -> F:
        for one in overloads:
            register_rule(one, Rule(acceptable(function)))
        return function

    return register
