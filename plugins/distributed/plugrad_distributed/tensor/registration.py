"""Registers built-in and third-party rules as kernels of the key `Sharded`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.tensor.array import ShardedArray
from plugrad_distributed.tensor.backend import write_back
from plugrad_distributed.tensor.fallback import Fallback
from plugrad_distributed.tensor.kernels import Kernel, in_place
from plugrad_distributed.tensor.placement import Replicate
from plugrad_distributed.tensor.redistribution import redistribute_local
from plugrad_distributed.tensor.rules import (
    layers,
    pointwise,
    products,
    random,
    reductions,
    views,
    windows,
)
from plugrad_distributed.tensor.spec import Rule, aligned

__all__ = ["acceptable", "register_rule", "register_rules"]

KEY = "Sharded"

TABLES: tuple[dict[str, Rule], ...] = (
    *(pointwise.RULES, reductions.RULES, products.RULES, views.RULES, layers.RULES),
    *(windows.RULES, random.RULES),
)


def _named(name: str) -> Any:
    """The core's operator with this name and overload."""
    plain, _, overload = name.partition(".")
    return getattr(getattr(plugrad.ops.plugrad, plain), overload or "default").op


class InPlaceKernel:
    """Register an in-place operator at the key `Sharded`, by the rule of the functional one."""

    def __init__(self, op: Any, functional: Any, rule: Rule) -> None:
        self.op = op
        self.functional = functional
        self.rule = rule

    def __call__(self, keyset: int, *args: Any) -> Any:
        return in_place(self.op, self.functional, self.rule, args)


def _fill(op: Any) -> Callable[..., Any]:
    """`fill_` and `zero_` write on every rank; for a `Partial` sum, the first rank writes the
    value."""

    def kernel(keyset: int, target: Tensor, *value: Any) -> Tensor:
        array: ShardedArray = target.array
        everywhere = (Replicate(),) * array.mesh.ndim
        values = [_whole_value(one) for one in value]
        if not any(one.is_partial() for one in array.placements):
            op.call((array.local, *values))
            write_back(array)
            return target
        model = plugrad.empty(array.shape, dtype=array.dtype, device=array.local.device)
        op.call((model, *values))
        local = redistribute_local(model, array.mesh, everywhere, array.placements, array.shape)
        array.local.copy_(local)
        write_back(array)
        return target

    return kernel


def _whole_value(value: Any) -> Any:
    if isinstance(value, Tensor) and isinstance(value.array, ShardedArray):
        array = value.array
        everywhere = (Replicate(),) * array.mesh.ndim
        return redistribute_local(
            array.local, array.mesh, array.placements, everywhere, array.shape
        )
    return value


def _draw(op: Any) -> Callable[..., Any]:
    """Random numbers in place: drawn for the whole tensor; this rank keeps its part."""

    def kernel(keyset: int, target: Tensor, *args: Any) -> Tensor:
        array: ShardedArray = target.array
        names = [argument.name for argument in op.schema.arguments][1:]
        given = [
            random.generator_for(array.mesh, one) if name == "generator" else _on_host(one)
            for name, one in zip(names, args, strict=True)
        ]
        drawn = op.call((plugrad.empty(array.shape, dtype=array.dtype), *given))
        everywhere = (Replicate(),) * array.mesh.ndim
        local = redistribute_local(
            drawn.to(array.mesh.device_type),
            array.mesh,
            everywhere,
            array.placements,
            array.shape,
        )
        array.local.copy_(local)
        write_back(array)
        return target

    return kernel


def _on_host(value: Any) -> Any:
    found = _whole_value(value)
    return found.cpu() if isinstance(found, Tensor) else found


def register_rules() -> Any:
    """Register all rules; returns the library that owns them."""
    library = plugrad.library.Library("plugrad", "IMPL", KEY)
    try:
        _fill_library(library)
    except BaseException:
        library._destroy()
        raise
    return library


def _fill_library(library: Any) -> None:
    library.fallback(Fallback(), with_keyset=True)
    for name, rule in (pair for table in TABLES for pair in table.items()):
        op = _named(name)
        # Registered before the backend's own, with which the core copies.
        library.impl(op, Kernel(op, rule), KEY, with_keyset=True, allow_override=True)
        written = _in_place_of(name)
        if written is not None and written.structure != "inplace_view":
            library.impl(written, InPlaceKernel(written, op, rule), KEY, with_keyset=True)
    for name in ("fill_.Scalar", "fill_.Tensor", "zero_"):
        library.impl(_named(name), _fill(_named(name)), KEY, with_keyset=True)
    for name in random.DRAWS_IN_PLACE:
        library.impl(_named(name), _draw(_named(name)), KEY, with_keyset=True)


def _in_place_of(name: str) -> Any:
    """The in-place counterpart of an operator; None if there is none."""
    plain, _, overload = name.partition(".")
    packet = getattr(plugrad.ops.plugrad, f"{plain}_", None)
    found = None if packet is None else getattr(packet, overload or "default", None)
    return None if found is None or name == "_to_copy" else found.op


_of_others: dict[str, Any] = {}


def register_rule(overload: Any, rule: Rule) -> Any:
    """Register a third-party rule, which replaces the operator's previous one. Returns a handle
    that removes it."""
    op = overload.op
    library = _of_others.get(op.namespace)
    if library is None:
        library = _of_others[op.namespace] = plugrad.library.Library(op.namespace, "IMPL", KEY)
    return library.impl(op, Kernel(op, rule), KEY, with_keyset=True, allow_override=True)


def acceptable(function: Callable[..., Any]) -> Callable[..., Sequence[Any]]:
    """The choices of a third-party rule, which may list placements only for tensors."""

    def choices(*args: Any) -> Sequence[Any]:
        count = len(aligned(args, lambda spec: Replicate()))
        found = []
        for outputs, inputs in function(*args):
            outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
            if len(inputs) > count:
                raise ValueError(
                    f"register_sharding: at most {count} input placements are expected, got "
                    f"{list(inputs)}"
                )
            found.append((list(outputs), list(inputs)))
        return found

    return choices
