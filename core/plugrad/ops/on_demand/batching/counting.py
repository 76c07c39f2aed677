"""Rules of operators that count elements. They run one element of the batch at a time if its values
determine the range that is counted, or the length of the result."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn

from plugrad._generated import functions as F
from plugrad.dispatch.operator import find_operator
from plugrad.ops.batching.dims import logical_sizes

if TYPE_CHECKING:
    from plugrad.ops.batching.table import Rule, VmapInfo

Dims = tuple[Any, ...]


def _one_by_one(name: str) -> Rule:
    """RuntimeError, from `stack`, if the results for two elements of the batch differ in size."""

    def rule(info: VmapInfo, dims: Dims, *args: Any) -> tuple[Any, Any]:
        op = find_operator(f"plugrad::{name}")
        assert op is not None
        # The result for no elements gives the shape of an empty batch.
        found = [
            op.call(tuple([_element(*pair, number) for pair in zip(args, dims, strict=True)]))
            for number in (range(info.batch_size) if info.batch_size else (None,))
        ]
        if isinstance(found[0], (tuple, list)):
            stacked = [_stacked(info, items) for items in zip(*found, strict=True)]
            return tuple(stacked), [0] * len(stacked)
        return _stacked(info, found), 0

    return rule


def _element(value: Any, dim: int | None, number: int | None) -> Any:
    if dim is None:
        return value
    if number is None:
        return value.new_zeros(logical_sizes(value, dim))
    return value.select(dim, number)


def _stacked(info: VmapInfo, rows: Any) -> Any:
    return F.stack(list(rows)).narrow(0, 0, info.batch_size)


def _by_parts_if(is_given: Callable[..., bool], name: str) -> Rule:
    """One by one, unless the caller has given the range of all elements."""
    one_by_one = _one_by_one(name)

    def rule(info: VmapInfo, dims: Dims, *args: Any) -> Any:
        return NotImplemented if is_given(*args) else one_by_one(info, dims, *args)

    return rule


def _has_ends(self: Any, bins: int, low: Any, high: Any) -> bool:
    return bool(low != high)


def _has_range(self: Any, bins: Any, range: Any, *rest: Any) -> bool:
    return range is not None


def _of_any_length(name: str) -> Rule:
    def rule(info: VmapInfo, dims: Dims, *args: Any) -> NoReturn:
        raise RuntimeError(
            "vmap: We do not support batching operators that can output dynamic shape. Attempted "
            f"to vmap over plugrad::{name}."
        )

    return rule


_OF_COUNTS: Final = ("histogram.bin_ct", "_histogramdd_bin_edges", "_histogramdd_from_bin_cts")

RULES: Final[dict[str, Callable[..., Any]]] = {
    "bincount": _one_by_one("bincount"),
    "histc": _by_parts_if(_has_ends, "histc"),
    **{name: _by_parts_if(_has_range, name) for name in _OF_COUNTS},
    **{name: _of_any_length(name) for name in ("_unique2", "_unique_consecutive", "unique_dim")},
}
