"""Batching rules of operators, as registered by `register_vmap`.

A transform that maps an operator over a dimension gets its rule from `get_vmap_rule`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from plugrad.dispatch.operator import Operator, find_operator
from plugrad.dispatch.plugin_hooks import note
from plugrad.library.schemas import has_keyword_tensor, split_keywords
from plugrad.library.transaction import Transaction
from plugrad.ops.batching import VmapInfo, add_rule, remove_rule
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.annotations import explains


class VmapRule:
    """One operator's rule; `apply` runs it and checks what it returns.

    >>> import plugrad
    >>> @plugrad.library.custom_op("demo_applied::double", mutates_args=())
    ... def double(x: plugrad.Tensor) -> plugrad.Tensor:
    ...     return x * 2
    >>> @double.register_vmap
    ... def _(info, in_dims, x):
    ...     return double(x), in_dims[0]
    >>> rule = plugrad.library.get_vmap_rule("demo_applied::double")
    >>> rule.apply(plugrad.library.VmapInfo(batch_size=3), (0,), (plugrad.ones(3),))
    (tensor([2., 2., 2.]), 0)
    """

    def __init__(self, op: Operator, function: Callable[..., Any]) -> None:
        self.op = op
        self.function = function

    def __call__(self, info: VmapInfo, in_dims: tuple[Any, ...], *values: Any) -> tuple[Any, Any]:
        return self.apply(info, in_dims, values)

    def apply(
        self, info: VmapInfo, in_dims: tuple[Any, ...], values: tuple[Any, ...]
    ) -> tuple[Any, Any]:
        """The batched output, and where its batch dimensions are.

        Args:
            in_dims: for every argument, in schema order, the mapped dimension; None if it is
                not a tensor or not mapped; a list of these for a list of tensors.
            values: the arguments, tensors with their batch dimension.

        Raises:
            RuntimeError: the rule returned something else than output and dimensions.
        """
        positional, keywords = split_keywords(self.op.schema, values)
        found = self.function(info, in_dims[: len(positional)], *positional, **keywords)
        if not isinstance(found, tuple) or len(found) != 2:
            raise RuntimeError(
                f"the vmap rule of {self.op.qualified_name} must return a tuple (output, "
                f"out_dims), got {type(found).__name__}"
            )
        output, out_dims = found
        self._check(output, out_dims, info.batch_size)
        return output, out_dims

    def _check(self, output: Any, out_dims: Any, batch_size: int) -> None:
        if isinstance(output, tuple | list):
            if not isinstance(out_dims, tuple | list) or len(out_dims) != len(output):
                raise RuntimeError(
                    f"the vmap rule of {self.op.qualified_name} returned {len(output)} outputs, so "
                    f"that out_dims must be as many dimensions; got {out_dims!r}"
                )
            for item, dim in zip(output, out_dims, strict=True):
                self._check(item, dim, batch_size)
            return
        if not isinstance(output, TensorBase) or out_dims is None:
            return
        shape = sizes_of(output)
        valid = isinstance(out_dims, int) and -len(shape) <= out_dims < len(shape)
        if not valid or shape[out_dims] != batch_size:
            raise RuntimeError(
                f"the vmap rule of {self.op.qualified_name} returned the batch dimension "
                f"{out_dims!r} for an output of shape {list(shape)}, but the batch has size "
                f"{batch_size}"
            )


_rules: Final[dict[str, list[VmapRule]]] = {}


class VmapHandle:
    """Takes a rule out again; an earlier one is back. Idempotent."""

    def __init__(self, rule: VmapRule) -> None:
        self._rule = rule
        self.is_removed = False

    def remove(self) -> None:
        rules = _rules.get(self._rule.op.qualified_name, [])
        if self._rule in rules:
            rules.remove(self._rule)
        remove_rule(self._rule.op, self._rule)
        # Set last: after an interrupt it is still False, and `remove` can run again.
        self.is_removed = True


def add_vmap_rule(op: Operator, function: Callable[..., Any], kept: list[Any]) -> VmapHandle:
    """Keep a rule; the latest one counts. `kept` gets its handle before it does.

    Raises:
        NotImplementedError: the operator has tensors among its keyword-only arguments.
        TypeError: the rule cannot be called.
    """
    if has_keyword_tensor(op.schema):
        raise NotImplementedError(
            "register_vmap with kwarg-only Tensor args. In the original definition of the op, "
            f"please make your tensors not kwarg-only. Got: {op.schema_text}"
        )
    if not callable(function):
        raise TypeError(f"register_vmap(): the rule must be callable, got {type(function)}")
    rule = VmapRule(op, function)
    handle = VmapHandle(rule)
    with Transaction(kept) as whole:
        whole.handles.append(handle)
        note(handle)
        _rules.setdefault(op.qualified_name, []).append(rule)
        add_rule(op, rule)
        whole.commit()
    return handle


@explains
def get_vmap_rule(op: str | Operator) -> VmapRule | None:
    """The rule that was registered last for an operator (or its qualified name), or None.

    >>> import plugrad
    >>> @plugrad.library.custom_op("demo_rule::double", mutates_args=())
    ... def double(x: plugrad.Tensor) -> plugrad.Tensor:
    ...     return x * 2
    >>> plugrad.library.get_vmap_rule("demo_rule::double") is None
    True
    >>> @double.register_vmap
    ... def _(info, in_dims, x):
    ...     return double(x), in_dims[0]
    >>> plugrad.library.get_vmap_rule("demo_rule::double") is None
    False
    """
    name = op if isinstance(op, str) else op.qualified_name
    rules = _rules.get(name)
    # An operator that was taken back, and its rules with it, may be defined anew.
    return rules[-1] if rules and rules[-1].op is find_operator(name) else None
