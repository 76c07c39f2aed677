"""Every operator on views that are lazily conjugated or negated, against the same numbers computed
beforehand: results, gradients, in place, `out=`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import plugrad
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

REFUSED = (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError)
# They depend on memory, or refuse a view of such memory.
ABOUT_MEMORY = {"view_as_real", "empty_like", "Tensor.new_empty"}


class Lazy(Arguments):
    """Tensors of the dtype under test are views with a bit; leaves are what they are taken of."""

    def tensor_of(self, values: Any, layout: str) -> Any:
        if values.dtype.name != self.dtype:
            return super().tensor_of(values, layout)
        stored = values.conj() if values.dtype.kind == "c" else -values
        return _Pending(super().tensor_of(stored, layout))


class _Pending:
    """A placeholder for a tensor in `Arguments` until it requires a gradient."""

    def __init__(self, leaf: Any) -> None:
        self.leaf = leaf

    def requires_grad_(self) -> None:
        self.leaf.requires_grad_()

    def view(self) -> Any:
        return self.leaf.conj() if self.leaf.is_complex() else self.leaf._neg_view()


def _views(value: Any) -> Any:
    if isinstance(value, _Pending):
        return value.view()
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_views(item) for item in value)
    if isinstance(value, dict):
        return {key: _views(item) for key, item in value.items()}
    return value


def _run(case: OpCase, sample: OpSample, made: Arguments, **more: Any) -> Any:
    args, kwargs = made.make(tuple(sample.args)), made.make(dict(sample.kwargs))
    plugrad.manual_seed(0)
    return resolve(case.op)(*_views(args), **_views(kwargs), **more)


def _numbers(value: Any) -> Any:
    return value.numpy(force=True) if isinstance(value, plugrad.Tensor) else value


def _assert_same(found: Any, expected: Any, where: str) -> None:
    for left, right in zip(flatten(found), flatten(expected), strict=True):
        if not isinstance(right, plugrad.Tensor):
            assert left == right or left is right or str(left) == str(right), where
            continue
        assert left.dtype is right.dtype, where
        np.testing.assert_allclose(
            _numbers(left), _numbers(right), rtol=1e-9, atol=1e-12, err_msg=where
        )


def _gradients(result: Any, leaves: list[Any]) -> list[Any]:
    outputs = [
        item for item in flatten(result) if isinstance(item, plugrad.Tensor) and item.requires_grad
    ]
    weights = [plugrad.full_like(item, 2 - 1j if item.is_complex() else 2) for item in outputs]
    return list(plugrad.autograd.grad(outputs, leaves, weights, allow_unused=True))


def _check(case: OpCase, sample: OpSample, dtype: str) -> int:
    where = f"{case.op} {sample.name or sample.args} {dtype}"
    plain, lazy = (kind(dtype, seed_of(case, sample)) for kind in (Arguments, Lazy))
    try:
        expected = _run(case, sample, plain)
    except REFUSED:
        return 0  # a dtype that the sample is not for
    found = _run(case, sample, lazy)
    _assert_same(found, expected, where)
    if case.gradient and plain.leaves:
        try:
            wanted = _gradients(expected, plain.leaves)
        except REFUSED:
            return 1
        leaves = [item.leaf if isinstance(item, _Pending) else item for item in lazy.leaves]
        got = _gradients(found, leaves)
        for item, left, right in zip(lazy.leaves, got, wanted, strict=True):
            assert (left is None) is (right is None), where
            if right is not None:
                if isinstance(item, _Pending):
                    left = left.conj_physical() if left.is_complex() else -left
                _assert_same(left, right, where)
    return 1


@pytest.mark.parametrize("dtype", ["complex128", "float64"])
@pytest.mark.parametrize("family", FAMILIES)
def test_results_and_gradients_are_those_of_resolved_arguments(family: str, dtype: str) -> None:
    checked = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in family_cases(family):
            if case.op in ABOUT_MEMORY or (
                dtype == "complex128" and dtype not in (*case.dtypes, *case.grad_dtypes)
            ):
                continue
            # Real numbers: what is not defined for complex ones.
            for sample in case.all_samples()[: None if dtype == "complex128" else 2]:
                checked += _check(case, sample, dtype)
    assert checked or dtype == "complex128"


def _written(case: OpCase, sample: OpSample, dtype: str) -> None:
    where = f"{case.inplace} {sample.name or sample.args} {dtype}"
    method = getattr(plugrad.Tensor, case.inplace or "")
    plain, lazy = (kind(dtype, seed_of(case, sample)) for kind in (Arguments, Lazy))
    target, *args = plain.make(tuple(sample.args))
    view, *others = lazy.make(tuple(sample.args))
    kwargs = sample.kwargs
    if not isinstance(view, _Pending):
        return
    with plugrad.no_grad():
        plugrad.manual_seed(0)
        try:
            method(target, *args, **plain.make(dict(kwargs)))
        except REFUSED:
            return
        part = view.view()
        plugrad.manual_seed(0)
        assert method(part, *_views(others), **_views(lazy.make(dict(kwargs)))) is part, where
        _assert_same(part, target, where)
        _assert_same(view.leaf, target.conj_physical() if part.is_complex() else -target, where)


@pytest.mark.parametrize("dtype", ["complex128", "float64"])
def test_operators_in_place_write_into_the_memory_behind(dtype: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for family in FAMILIES:
            for case in family_cases(family):
                if case.inplace is not None:
                    for sample in case.all_samples():
                        _written(case, sample, dtype)


def _put_out(case: OpCase, sample: OpSample, dtype: str) -> int:
    where = f"{case.op}(out=) {sample.name or sample.args} {dtype}"
    seed = seed_of(case, sample)
    with plugrad.no_grad():
        try:
            expected = _run(case, sample, _without_leaves(Arguments(dtype, seed)))
            place = plugrad.empty_like(expected)
            _run(case, sample, _without_leaves(Arguments(dtype, seed)), out=place)
        except (*REFUSED, AttributeError, AssertionError):
            # An operator without `out`, or with several results; masked.norm refuses complex
            # numbers by an AssertionError, as in PyTorch.
            return 0
        if place.dtype is plugrad.bool:
            return 0
        out = place.conj() if place.is_complex() else place._neg_view()
        _run(case, sample, _without_leaves(Lazy(dtype, seed)), out=out)
        _assert_same(out, expected, where)
        _assert_same(place, expected.conj_physical() if out.is_complex() else -expected, where)
    return 1


def _without_leaves(made: Arguments) -> Arguments:
    make = made.make
    made.make = lambda value: _detached(make(value))  # type: ignore[method-assign]
    return made


def _detached(value: Any) -> Any:
    if isinstance(value, _Pending):
        value.leaf = value.leaf.detach()
        return value
    if isinstance(value, plugrad.Tensor):
        return value.detach()
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_detached(item) for item in value)
    if isinstance(value, dict):
        return {key: _detached(item) for key, item in value.items()}
    return value


@pytest.mark.parametrize("dtype", ["complex128", "float64"])
def test_results_go_into_views_that_are_given_as_out(dtype: str) -> None:
    checked = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for family in FAMILIES:
            for case in family_cases(family):
                for sample in () if case.op.startswith("Tensor.") else case.all_samples()[:1]:
                    checked += _put_out(case, sample, dtype)
    assert checked > 50
