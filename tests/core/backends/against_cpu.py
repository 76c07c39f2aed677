"""Every sample of the public cases on a backend: results and gradients as on the CPU."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import plugrad
from plugrad.errors import OperatorNotFoundError
from plugrad.testing.cases import Arguments, OpCase, OpSample, core_cases, flatten, resolve, seed_of

CASES = core_cases()
REFUSED = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError)
# Relative to the largest element, since sums are made in another order.
TOLERANCE = {"float64": 1e-11, "complex128": 1e-11, "float32": 1e-4, "complex64": 1e-4}


class OnDevice(Arguments):
    """Arguments with the same values on any device."""

    def __init__(self, device: str, dtype: str, seed: int) -> None:
        super().__init__(dtype, seed)
        self.device = device

    def tensor_of(self, values: np.ndarray[Any, Any], layout: str) -> Any:
        # Moved to a device a tensor is contiguous: let it be so on the CPU.
        made = super().tensor_of(values, "contiguous")
        return made if self.device == "cpu" else made.to(self.device)


def outcome(case: OpCase, sample: OpSample, dtype: str, device: str) -> list[Any]:
    """Results, and the gradients of the float leaves if there are any."""
    arguments = OnDevice(device, dtype, seed_of(case, sample))
    args = arguments.make(tuple(sample.args))
    kwargs = arguments.make(dict(sample.kwargs))
    with warnings.catch_warnings(), plugrad.device(device):
        warnings.simplefilter("ignore")
        results = flatten(resolve(case.op)(*args, **kwargs))
        outputs = [r for r in results if isinstance(r, plugrad.Tensor) and r.requires_grad]
        if not outputs or not case.gradient:
            return results
        weights = [
            plugrad.linspace(0.5, 1.5, o.numel(), dtype=o.dtype.to_real()).to(o.dtype)
            for o in outputs
        ]
        weights = [w.reshape(o.shape).to(o.device) for w, o in zip(weights, outputs, strict=True)]
        grads = plugrad.autograd.grad(outputs, arguments.leaves, weights, allow_unused=True)
    return [*results, *grads]


def assert_same(found: list[Any], expected: list[Any], where: str) -> None:
    """Equal but for rounding, in shape, dtype and values."""
    assert len(found) == len(expected), where
    for ours, theirs in zip(found, expected, strict=True):
        if not isinstance(theirs, plugrad.Tensor):
            assert ours == theirs or ours is theirs, where
            continue
        assert isinstance(ours, plugrad.Tensor), where
        assert ours.shape == theirs.shape, where
        assert ours.dtype is theirs.dtype, where
        wanted = theirs.numpy(force=True)
        got = ours.numpy(force=True)
        tolerance = TOLERANCE.get(theirs.dtype.name, 0.0)
        finite = np.abs(wanted[np.isfinite(wanted)])
        scale = max(float(finite.max()) if finite.size else 1.0, 1.0)
        np.testing.assert_allclose(
            got, wanted, rtol=tolerance, atol=tolerance * scale, err_msg=where
        )


def check_case(case: OpCase, dtype: str, device: str) -> int:
    """Compare the samples that the CPU accepts and the backend can do; returns how many."""
    compared = 0
    for number, sample in enumerate(case.all_samples()):
        where = f"{case.op} sample {sample.name or number} at {dtype}"
        try:
            expected = outcome(case, sample, dtype, "cpu")
        except REFUSED:
            continue
        try:
            found = outcome(case, sample, dtype, device)
        except OperatorNotFoundError:
            continue
        except TypeError as error:
            if "is not supported on" in str(error):
                continue
            raise
        except Exception as error:
            raise AssertionError(f"{where}: {type(error).__name__}: {error}") from error
        assert_same(found, expected, where)
        compared += 1
    return compared
