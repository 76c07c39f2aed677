"""Every sample of every operator on backends that have the primitives only, against the CPU."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.dispatch.operator import all_operators
from plugrad.errors import OperatorNotFoundError
from plugrad.testing.cases import (
    Arguments,
    OpCase,
    OpSample,
    core_cases,
    flatten,
    lay_out,
    resolve,
    seed_of,
)
from tests.core.ops.against_torch.oracle import dtype_name, is_tensor, to_numpy
from tests.core.ops.decompositions.bare_backend import bare_backend

# Relative to the largest element, since sums are made in another order.
TOLERANCE = {
    "float64": 1e-12,
    "complex128": 1e-12,
    "float32": 1e-5,
    "complex64": 1e-5,
    "float16": 1e-2,
    "bfloat16": 5e-2,
}
# Decompositions depend on a dtype's kind and on whether it has 16 bits. So these dtypes show
# whether it is kept, in the first samples of a case.
SAMPLES = {"float32": 2, "uint8": 2}
LEVELS = {op.name: op.level for op in all_operators() if op.level != "core"}
SPELLINGS = {
    **dict.fromkeys(("__mod__", "__rmod__"), "remainder"),
    **dict.fromkeys(("__floordiv__", "__rfloordiv__"), "floor_divide"),
    **dict.fromkeys(("__lshift__", "__rlshift__"), "bitwise_left_shift"),
    **dict.fromkeys(("__rshift__", "__rrshift__"), "bitwise_right_shift"),
    "einsum": "_einsum",
    "to": "real",  # casts of complex numbers
}


class OnDevice(Arguments):
    """Arguments with the same values on any device."""

    def __init__(self, device: str, dtype: str, seed: int) -> None:
        super().__init__(dtype, seed)
        self.device = device

    def tensor_of(self, values: np.ndarray[Any, Any], layout: str) -> Any:
        # Moved to a device, a tensor is contiguous: let it be so on the CPU.
        return plugrad.from_numpy(lay_out(values, "contiguous")).to(self.device)


@pytest.fixture(scope="module")
def core() -> Iterator[str]:
    with bare_backend("core") as name:
        yield name


@pytest.fixture(scope="module")
def full() -> Iterator[str]:
    with bare_backend("full") as name:
        yield name


def outcome(case: OpCase, sample: OpSample, dtype: str, device: str) -> list[Any]:
    """Results, and the gradients of the float leaves if there are any."""
    builder = OnDevice(device, dtype, seed_of(case, sample))
    args = builder.make(tuple(sample.args))
    kwargs = builder.make(dict(sample.kwargs))
    with warnings.catch_warnings(), plugrad.device(device):
        warnings.simplefilter("ignore")
        results = flatten(resolve(case.op)(*args, **kwargs))
        outputs = [r for r in results if is_tensor(r) and r.requires_grad]
        if not outputs or not case.gradient:
            return results
        weights = [
            plugrad.linspace(0.5, 1.5, o.numel(), dtype=plugrad.float64).to(o.dtype)
            for o in outputs
        ]
        weights = [w.reshape(o.shape).to(o.device) for w, o in zip(weights, outputs, strict=True)]
        grads = plugrad.autograd.grad(outputs, builder.leaves, weights, allow_unused=True)
    return [*results, *grads]


def assert_equal_outcomes(found: list[Any], expected: list[Any], where: str) -> None:
    assert len(found) == len(expected), where
    for ours, theirs in zip(found, expected, strict=True):
        if not is_tensor(theirs):
            assert ours == theirs, where
            continue
        assert is_tensor(ours), where
        assert tuple(ours.shape) == tuple(theirs.shape), where
        assert ours.dtype is theirs.dtype, where
        wanted = to_numpy(theirs)
        tolerance = TOLERANCE.get(dtype_name(theirs), 0.0)
        finite = np.abs(wanted[np.isfinite(wanted)]) if tolerance else np.zeros(0)
        scale = max(float(finite.max()) if finite.size else 1.0, 1.0)
        np.testing.assert_allclose(
            to_numpy(ours.cpu()), wanted, rtol=tolerance, atol=tolerance * scale, err_msg=where
        )


def is_full(case: OpCase) -> bool:
    """Whether some overload of the operator is none that every backend must have."""
    path = case.op.removeprefix("Tensor.")
    name = SPELLINGS.get(path, path.replace(".", "_"))
    return name in LEVELS


def rows(cases: Iterable[OpCase], *dtypes: str) -> list[Any]:
    """Each case with the dtypes for which it is defined."""
    return [
        pytest.param(case, dtype, id=f"{case.op}-{dtype}")
        for case in cases
        for dtype in dtypes
        if dtype == "float64" or dtype in case.dtypes
    ]


def compare(case: OpCase, dtype: str, device: str) -> None:
    for number, sample in enumerate(case.all_samples()[: SAMPLES.get(dtype)]):
        where = f"{case.op} sample {sample.name or number} at {dtype}"
        try:
            expected = outcome(case, sample, dtype, "cpu")
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
            continue
        try:
            found = outcome(case, sample, dtype, device)
        except OperatorNotFoundError:
            if device == "bare_core" and is_full(case):
                continue
            raise
        assert_equal_outcomes(found, expected, where)


@pytest.mark.parametrize(
    ("case", "dtype"), rows(core_cases(), "float64", "float32", "int64", "uint8", "bool")
)
def test_core_primitives_give_what_the_cpu_gives(case: OpCase, dtype: str, core: str) -> None:
    compare(case, dtype, core)


@pytest.mark.parametrize(("case", "dtype"), rows(filter(is_full, core_cases()), "float64", "int64"))
def test_all_primitives_give_what_the_cpu_gives(case: OpCase, dtype: str, full: str) -> None:
    compare(case, dtype, full)


@pytest.mark.parametrize(("case", "dtype"), rows(core_cases(), "complex128"))
def test_complex_numbers_are_made_of_all_primitives(case: OpCase, dtype: str, full: str) -> None:
    compare(case, dtype, full)


def test_integers_have_no_negative_powers(core: str) -> None:
    x = plugrad.ones(2, dtype=plugrad.int64, device=core)
    with pytest.raises(RuntimeError, match="Integers to negative integer powers are not allowed"):
        x.pow(-1)
