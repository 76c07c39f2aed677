"""Rules of operators such as `zeros_like`, which make tensors like others.

A tensor made like a mapped one is mapped although its elements do not depend on the batch, since
mapped values may be written to it.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from plugrad.dispatch.operator import find_operator

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor
    from plugrad.ops.batching.table import Rule, VmapInfo

Dims = tuple[Any, ...]


def operator_named(name: str) -> Callable[..., Any]:
    """An operator as a function of all arguments in the order of its schema."""
    found = find_operator("plugrad::" + name)
    assert found is not None
    return lambda *args: found.call(args)


def _like(name: str) -> Rule:
    """The rule of an operator that returns a tensor of its argument's shape."""
    function = operator_named(name)

    def rule(info: VmapInfo, dims: Dims, self: Tensor, *args: Any) -> tuple[Any, Any]:
        return function(self, *args), dims[0]

    return rule


def _new(name: str) -> Rule:
    """The rule of an operator that uses dtype and device of its tensor, and takes a size."""
    function = operator_named(name)

    def rule(
        info: VmapInfo, dims: Dims, self: Tensor, size: tuple[int, ...], *args: Any
    ) -> tuple[Any, Any]:
        return function(self, (info.batch_size, *size), *args), 0

    return rule


RULES: Final[dict[str, Rule]] = {
    **{name: _like(name) for name in ("empty_like", "full_like", "ones_like", "zeros_like")},
    **{name: _new(name) for name in ("new_empty", "new_full", "new_ones", "new_zeros")},
}
