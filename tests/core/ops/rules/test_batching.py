"""Batching rules. Oracle: the operator in a loop over the batch."""

from __future__ import annotations

import importlib
import itertools
import pkgutil
from typing import Any

import pytest

import plugrad
from plugrad.dispatch.operator import all_operators, find_operator
from plugrad.ops.batching import VmapInfo, rule_of
from plugrad.ops.batching.table import _PLACES
from plugrad.testing.cases import FAMILIES, family_cases
from tests.core.ops.rules.batching_harness import OpCall, calls_of, check, in_place_twin

# Calls of one operator that are tried for one family of cases, the first ones.
_ENOUGH = 4
# What composites call is called by other families' samples as well.
_FAMILIES = [family for family in FAMILIES if family != "composites"]
_DTYPES = ("float64", "float32", "int64", "bool")


@pytest.mark.parametrize("family", _FAMILIES)
def test_rules_agree_with_loops(family: str) -> None:
    found: dict[str, OpCall] = {}
    for case in family_cases(family):
        for sample in case.all_samples():
            found.update(calls_of(case, sample, "float64"))
    tried: dict[str, int] = {}
    for call in found.values():
        name = call.op.full_name
        tried[name] = tried.get(name, 0) + 1
        if tried[name] <= _ENOUGH:
            check(call)
        if tried[name] <= 2:
            twin = in_place_twin(call)
            if twin is not None:
                check(twin)
    assert tried or family == "creation"


def _rule(name: str) -> Any:
    return rule_of(find_operator(f"plugrad::{name}"))


@pytest.mark.parametrize("name", ["add.Tensor", "div.Tensor", "maximum", "eq.Tensor", "where.self"])
@pytest.mark.parametrize("ranks", [(0, 1), (1, 0), (0, 0), (2, 0)])
@pytest.mark.parametrize("mapped", [(0, None), (None, 0), (0, 0)])
def test_promotion_counts_logical_dimensions(
    name: str, ranks: tuple[int, int], mapped: tuple[int | None, int | None]
) -> None:
    for dtypes in itertools.product(_DTYPES, repeat=2):
        tensors = [
            plugrad.ones((2,) * rank, dtype=getattr(plugrad, dtype))
            for rank, dtype in zip(ranks, dtypes, strict=True)
        ]
        batched = [
            tensor if dim is None else plugrad.stack([tensor, tensor, tensor])
            for tensor, dim in zip(tensors, mapped, strict=True)
        ]
        first: tuple[Any, ...] = (plugrad.tensor([True, False]),) if name == "where.self" else ()
        last = (1,) if name == "add.Tensor" else ()
        op = find_operator(f"plugrad::{name}")
        assert op is not None
        expected = op.call((*first, *tensors, *last))
        in_dims = (*(None for _ in first), *mapped, *(None for _ in last))
        output, dim = _rule(name)(VmapInfo(3), in_dims, *first, *batched, *last)
        assert output.dtype is expected.dtype, dtypes
        assert plugrad.equal(output.select(dim, 0), expected)


def test_a_write_keeps_the_dtype_of_what_is_written() -> None:
    target = plugrad.zeros(3, 2, dtype=plugrad.float32)
    numbers = plugrad.tensor([1.0, 2.0, 3.0], dtype=plugrad.float64)
    written, dim = _rule("add_.Tensor")(VmapInfo(3), (0, 0, None), target, numbers, 1)
    assert written is target
    assert dim == 0
    assert target.tolist() == [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]
    with pytest.raises(RuntimeError, match="result type Double can't be cast"):
        _rule("add_.Tensor")(VmapInfo(3), (0, 0, None), target.to(plugrad.int32), numbers, 1)


@pytest.mark.parametrize("name", ["add_.Tensor", "copy_", "fill_.Tensor"])
def test_a_batch_is_not_written_into_what_is_not_mapped(name: str) -> None:
    last = () if name == "fill_.Tensor" else (1,)
    dims = (None, 0, None)[: 2 + len(last)]
    with pytest.raises(RuntimeError, match="more elements than `self`"):
        _rule(name)(VmapInfo(3), dims, plugrad.zeros(2), plugrad.ones(3), *last)


def test_every_rule_is_for_an_operator_and_stands_in_one_table() -> None:
    known = {name for op in all_operators() for name in (op.full_name, op.name)}
    names = [
        name
        for place in _PLACES
        for found in pkgutil.iter_modules(importlib.import_module(place).__path__)
        for name in getattr(importlib.import_module(f"{place}.{found.name}"), "RULES", {})
    ]
    assert set(names) <= known
    assert len(set(names)) == len(names)
