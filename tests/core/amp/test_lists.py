"""Which operators autocast, and how: a decision on every one, and PyTorch's lists."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import plugrad
from plugrad.dispatch.operator import Operator, all_operators
from plugrad.ops.autocast_lists import PARTS_DECIDE, decisions, list_of
from plugrad.testing.cases import (
    FAMILIES,
    Arguments,
    OpCase,
    OpSample,
    family_cases,
    flatten,
    resolve,
    seed_of,
)
from tests.core.ops.against_torch.oracle import TorchArguments, dtype_name, is_tensor
from tests.core.ops.harness import needs_torch, torch

# Parts of operators that PyTorch has on its lists, under plugrad's names.
PARTS = {
    "_einsum": "einsum",
    "_tensordot": "tensordot",
    "_matmul_hn": "matmul",
    "_matmul_nh": "matmul",
    "norm": "norm.Scalar",
    # There it is two operators, for Frobenius' norm and the nuclear one.
    "norm.str": "frobenius_norm.dim",
}
# plugrad sums products with mm, where PyTorch has dot, or multiplies along a dimension of size 1;
# `linalg.vecdot` is no operator, but two that autocast leaves alone.
DIFFERENT = {("inner", 0), ("einsum", 14), ("linalg.vecdot", 0), ("linalg.vecdot", 1)}
# The last product of a pseudo-inverse is in the region's dtype in PyTorch.
DIFFERENT |= {("linalg.pinv", index) for index in range(6)}


def core_operators() -> list[Operator]:
    return [op for op in all_operators() if op.namespace == "plugrad" and not op.schema.mutates]


def test_every_operator_is_decided_on_in_one_place() -> None:
    wrong = {op.full_name: decisions(op) for op in core_operators() if len(decisions(op)) != 1}
    assert not wrong, "say in ops/autocast_lists.py what autocast does with these"


@pytest.mark.parametrize("device_type", ["cpu", "cuda"])
def test_lists_name_operators_that_there_are(device_type: str) -> None:
    names = {op.full_name for op in core_operators()}
    assert set(list_of(device_type)) <= names
    assert set(PARTS_DECIDE) <= names


@needs_torch
@pytest.mark.parametrize("device_type", ["cpu", "cuda"])
def test_lists_are_those_of_pytorch(device_type: str) -> None:
    registered = torch._C._dispatch_get_registrations_for_dispatch_key(
        "Autocast" + device_type.upper()
    )
    theirs = {name.removeprefix("aten::") for name in registered}
    names = {op.full_name for op in core_operators()}
    ours = set(list_of(device_type))
    assert {PARTS.get(name, name) for name in ours} <= theirs
    assert theirs & names <= ours


def _dtypes(library: Any, case: OpCase, sample: OpSample, dtype: str) -> Any:
    """Of the results within a region; what was raised, if it does not work."""
    made = (Arguments if library is plugrad else TorchArguments)(dtype, seed_of(case, sample))
    args, kwargs = made.make(tuple(sample.args)), made.make(dict(sample.kwargs))
    path = case.op if library is plugrad else case.torch or case.op
    try:
        with library.autocast("cpu"):
            result = resolve(path, library)(*args, **kwargs)
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
        return None
    return [dtype_name(value) for value in flatten(result) if is_tensor(value)]


@needs_torch
@pytest.mark.parametrize("family", FAMILIES)
def test_results_have_the_dtypes_of_pytorch(family: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in family_cases(family):
            for index, sample in enumerate(case.samples):
                for dtype in ("float32", "bfloat16"):
                    expected = _dtypes(torch, case, sample, dtype)
                    if expected is None or (case.op, index) in DIFFERENT:
                        continue
                    found = _dtypes(plugrad, case, sample, dtype)
                    assert found == expected, f"{case.op} {dtype} {sample}"
