"""Every sample of every operator, captured and run again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.testing.cases import (
    Arguments,
    OpCase,
    cases_of,
    core_cases,
    flatten,
    lay_out,
    resolve,
    seed_of,
)
from plugrad.transforms.capture import CaptureError
from tests.core.transforms.rerun import rerun

# What they return is no tensor.
VALUES = ("allclose", "equal")
# Samples of a case that are tried, the first ones: an operator's arguments differ in few ways.
ENOUGH = 3
ON_JAX = ("add", "softmax", "Tensor.view", "cumsum", "gather", "max", "Tensor.fill_")


class OnDevice(Arguments):
    """Arguments with the same values on another device."""

    def __init__(self, device: str, dtype: str, seed: int) -> None:
        super().__init__(dtype, seed, overlapping=False)
        self.device = device

    def tensor_of(self, values: np.ndarray[Any, Any], layout: str) -> Any:
        return plugrad.from_numpy(lay_out(values, layout)).to(self.device)


def made(case: OpCase, device: str = "cpu") -> Any:
    for sample in case.all_samples()[:ENOUGH]:
        arguments = OnDevice(device, "float64", seed_of(case, sample))
        yield arguments.make(sample.args), arguments.make(sample.kwargs), arguments.leaves


@pytest.mark.parametrize("case", core_cases(), ids=lambda case: case.op)
def test_samples_run_again(case: OpCase) -> None:
    function = resolve(case.op)
    for args, kwargs, leaves in made(case):
        splits_at_elements = case.op == "tensor_split" and (
            isinstance(args[1], plugrad.Tensor) and args[1].ndim == 0
        )
        if case.op in VALUES or splits_at_elements:
            with pytest.raises(CaptureError, match=r"is read|gives Python a value"):
                plugrad.capture(function, *args, **kwargs)
            continue
        graph = rerun(function, *args, **kwargs)
        results = [t for t in flatten(graph(*args, **kwargs)) if isinstance(t, plugrad.Tensor)]
        expected = [t for t in flatten(function(*args, **kwargs)) if isinstance(t, plugrad.Tensor)]
        differentiable = [n for n, t in enumerate(expected) if t.requires_grad]
        if not differentiable or not case.gradient:
            continue
        gradients = [
            plugrad.autograd.grad(
                [outputs[n] for n in differentiable],
                leaves,
                [plugrad.ones_like(outputs[n]) for n in differentiable],
                allow_unused=True,
            )
            for outputs in (results, expected)
        ]
        for found, wanted in zip(*gradients, strict=True):
            if wanted is None:
                assert found is None
            else:
                plugrad.testing.assert_close(found, wanted, equal_nan=True)


@pytest.mark.parametrize("name", ON_JAX)
def test_samples_run_again_on_jax(name: str) -> None:
    pytest.importorskip("plugrad_jax")
    cases = cases_of(name.removeprefix("Tensor."))
    assert cases
    for case in cases:
        if case.dtypes and "float32" not in case.dtypes:
            continue
        sample = case.all_samples()[0]
        arguments = OnDevice("jax", "float32", seed_of(case, sample))
        args, kwargs = arguments.make(sample.args), arguments.make(sample.kwargs)
        rerun(resolve(case.op), *args, **kwargs)
