"""Samples of operators with overloads give the same results in inference mode as outside.

Other kernels are reached there: a backend's own, even if an overload is a composition.
"""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import pytest

import plugrad
from plugrad.dispatch.operator import all_operators
from plugrad.testing.cases import Arguments, OpCase, OpSample, core_cases, flatten, resolve, seed_of


def seen(case: OpCase, sample: OpSample, mode: Any) -> list[Any]:
    """Shapes and dtypes of the results, or the error."""
    made = Arguments("float64", seed_of(case, sample))
    try:
        with mode(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            args, kwargs = made.make(tuple(sample.args)), made.make(dict(sample.kwargs))
            results = flatten(resolve(case.op)(*args, **kwargs))
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        return [type(error), str(error)]
    return [(r.dtype, r.shape) if isinstance(r, plugrad.Tensor) else type(r) for r in results]


OVERLOADED = {
    name for name, count in Counter(op.name for op in all_operators()).items() if count > 1
}
CASES = [case for case in core_cases() if case.op.rpartition(".")[2] in OVERLOADED]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op)
def test_a_sample_gives_the_same_as_outside(case: OpCase) -> None:
    for sample in case.all_samples():
        inside = seen(case, sample, plugrad.inference_mode)
        assert inside == seen(case, sample, plugrad.no_grad), sample
