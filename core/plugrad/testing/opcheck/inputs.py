"""The call that is checked, and copies of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plugrad
from plugrad.dispatch.operator import Operator
from plugrad.library.schemas import tensors_in
from plugrad.library.tags import Tag
from plugrad.ops.namespace import OpOverload
from plugrad.tensor.base import TensorBase
from plugrad.testing.assert_close import assert_close


class OpCheckError(Exception):
    """An operator does something else than what was declared of it."""

    __module__ = "plugrad.testing.opcheck"


class Skipped(Exception):
    """There is nothing to check; the message says why."""


class Call:
    """An operator with its arguments, in the order of the schema."""

    def __init__(
        self,
        overload: OpOverload,
        values: tuple[Any, ...],
        atol: float | None,
        rtol: float | None,
    ) -> None:
        self.overload = overload
        self.op: Operator = overload.op
        self.values = values
        self.atol = atol
        self.rtol = rtol

    @property
    def tensors(self) -> list[Any]:
        """The tensors among the arguments."""
        return tensors_in(self.values)

    @property
    def requires_grad(self) -> bool:
        return any(tensor.requires_grad for tensor in self.tensors)

    @property
    def draws_random_numbers(self) -> bool:
        """Whether it says that it does, so that no two calls need to agree."""
        return Tag.nondeterministic_seeded in self.overload.tags

    def copies(self, change: Callable[[Any], Any] | None = None) -> tuple[Any, ...]:
        """The arguments with copies of the tensors, which require grad as these do.

        Args:
            change: makes another tensor of each.
        """

        def copy(tensor: Any) -> Any:
            made = tensor.detach().clone()
            if change is not None:
                made = change(made)
            wanted = tensor.requires_grad and (made.is_floating_point() or made.is_complex())
            return made.requires_grad_(wanted)

        return tuple(mapped(copy, value) for value in self.values)

    def run(self, values: tuple[Any, ...]) -> Any:
        return self.op.call(values)

    def compare(self, actual: Any, expected: Any, check_device: bool = True) -> None:
        """AssertionError if values differ."""
        assert_close(
            actual,
            expected,
            atol=self.atol,
            rtol=self.rtol,
            equal_nan=True,
            check_device=check_device,
        )


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """A value with every tensor in it replaced."""
    if isinstance(value, TensorBase):
        return function(value)
    if isinstance(value, list):
        return [mapped(function, item) for item in value]
    if isinstance(value, tuple):
        items = [mapped(function, item) for item in value]
        return tuple(items) if type(value) is tuple else type(value)(*items)
    return value


def outputs_of(out: Any) -> list[Any]:
    """The results one by one, lists of tensors spread out."""
    if isinstance(out, tuple | list):
        return [leaf for item in out for leaf in outputs_of(item)]
    return [] if out is None else [out]


def detached(out: Any) -> list[Any]:
    """The results one by one, outside the graph."""
    return [item.detach() if isinstance(item, plugrad.Tensor) else item for item in outputs_of(out)]
