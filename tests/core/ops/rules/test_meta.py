"""Every operator on the device "meta" against the CPU: shapes and dtypes of its results."""

from __future__ import annotations

import warnings
from typing import Any

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

# What they give depends on the data, or is data.
NEEDS_DATA = {
    "allclose",
    "argwhere",
    "equal",
    "masked_select",
    "nonzero",
    "scatter_reduce",
    "Tensor.cpu",
    "Tensor.unique",
    "bincount",
    "unique",
    "unique_consecutive",
}
# These need it for some of their arguments: masks, repeats, another device, nothing but a mask.
MAY_NEED_DATA = {
    "_ctc_loss",
    "ctc_loss",
    "index",
    "repeat_interleave",
    "tensor_split",
    "Tensor.to",
    "where",
}
# Weights, omitted ranges, and ranks.
MAY_NEED_DATA |= {"cov", "histc", "histogram", "histogramdd", "linalg.lstsq"}


def _on_meta(value: Any) -> Any:
    if isinstance(value, plugrad.Tensor):
        return value.detach().to("meta")
    if isinstance(value, plugrad.device):
        return plugrad.device("meta")
    if isinstance(value, dict):
        return {key: _on_meta(item) for key, item in value.items()}
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)(_on_meta(item) for item in value)
    return value


def _look(result: Any) -> list[Any]:
    return [
        (tuple(item.shape), item.dtype) if isinstance(item, plugrad.Tensor) else item
        for item in flatten(result)
    ]


def _compare(case: OpCase, sample: OpSample, dtype: str) -> None:
    made = Arguments(dtype, seed_of(case, sample))
    args, kwargs = made.make(tuple(sample.args)), made.make(dict(sample.kwargs))
    function = resolve(case.op)
    try:
        expected = _look(function(*args, **kwargs))
    except (RuntimeError, TypeError, IndexError, ValueError):
        return  # a dtype that the sample is not for
    meta_kwargs = _on_meta(kwargs)
    if not any(isinstance(item, plugrad.Tensor) for item in flatten([args, [*kwargs.values()]])):
        meta_kwargs["device"] = "meta"
    try:
        found = _look(function(*_on_meta(args), **meta_kwargs))
    except RuntimeError:
        if case.op in MAY_NEED_DATA:
            return
        raise
    assert found == expected, f"{case.op} {sample}"


@pytest.mark.parametrize("family", FAMILIES)
def test_results_look_like_those_on_the_cpu(family: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in family_cases(family):
            if case.op in NEEDS_DATA:
                continue
            samples = case.samples() if callable(case.samples) else case.samples
            for sample in samples:
                for dtype in ("float32", "int64"):
                    if dtype in case.dtypes:
                        _compare(case, sample, dtype)
