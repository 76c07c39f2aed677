"""Every operator works on arrays that `jax.jit` traces, forward and backward, with eager results.

The oracle is the operator itself, run eagerly on the same values.
"""

from __future__ import annotations

from typing import Any, Final

import jax
import numpy as np
import pytest

import plugrad
from plugrad.tensor.base import TensorBase, needs_grad, wrap
from plugrad.testing.cases import OpCase, OpSample, core_cases, flatten, resolve, seed_of
from plugrad.testing.conformance.subject import DeviceArguments

# What has a shape, or an answer for Python, that depends on values.
DATA_DEPENDENT: Final = {
    "allclose": "the answer is Python's",
    "equal": "the answer is Python's",
    "Tensor.cpu": "it is a copy to another backend",
    "Tensor.to": "it is a copy to another backend",
    "index_put": "values for a mask have a gradient of as many elements as it has ones",
    "argwhere": "as many rows as there are elements that are not zero",
    "nonzero": "as many rows as there are elements that are not zero",
    "masked_select": "as many elements as the mask has ones",
    "index": "a mask takes as many elements as it has ones",
    "one_hot": "without num_classes there are as many as the greatest index says",
    "repeat_interleave": "without output_size the repeats say how many there are",
}


class Recorded(DeviceArguments):
    """Arguments that are noted in the order in which they are made."""

    def __init__(self, seed: int) -> None:
        super().__init__("float32", seed, "jax")
        self.made: list[TensorBase] = []
        self.arrays: list[Any] = []

    def tensor_of(self, values: np.ndarray[Any, Any], layout: str) -> Any:
        tensor = super().tensor_of(values, "contiguous")
        self.made.append(tensor)
        self.arrays.append(tensor.array)  # which an in-place operator replaces
        return tensor


class Replayed(DeviceArguments):
    """The same arguments around other arrays."""

    def __init__(self, recorded: Recorded, arrays: list[Any]) -> None:
        super().__init__("float32", 0, "jax")
        self.given = zip(recorded.made, arrays, strict=True)

    def tensor_of(self, values: np.ndarray[Any, Any], layout: str) -> Any:
        tensor, array = next(self.given)
        return wrap(array, tensor.dtype, tensor.device)


def forward_and_backward(case: OpCase, sample: OpSample, made: DeviceArguments) -> list[Any]:
    """Arrays of the results, and of the gradients of their sum."""
    args = made.make(tuple(sample.args))
    kwargs = made.make(dict(sample.kwargs))
    with made.device:
        outputs = flatten(resolve(case.op)(*args, **kwargs))
    tensors = [item for item in outputs if isinstance(item, TensorBase)]
    roots = [item for item in tensors if needs_grad(item)]
    found = [item.detach().array for item in tensors]
    if roots and case.gradient:
        grads = plugrad.autograd.grad(
            roots, made.leaves, [plugrad.ones_like(root) for root in roots], allow_unused=True
        )
        found += [grad.array for grad in grads if grad is not None]
    return found


def samples() -> list[Any]:
    """The first of each case is tried always, the others when long tests are asked for.

    Arrays are contiguous here, so that what goes by another layout has to be left out.
    """
    return [
        pytest.param(
            case,
            sample,
            id=f"{case.op}-{number}",
            marks=[pytest.mark.long] if number else [],
        )
        for case in core_cases()
        for number, sample in enumerate(case.samples)
        if case.op != "as_strided" or sample.args[0].strides == "contiguous"
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("case", "sample"), samples())
def test_traced_as_eager(case: OpCase, sample: OpSample) -> None:
    recorded = Recorded(seed_of(case, sample))
    try:
        eager = forward_and_backward(case, sample, recorded)
    except TypeError as error:
        if "64-bit numbers are off" in str(error):  # the sample is about float64
            return
        raise

    def step(arrays: list[Any]) -> list[Any]:
        return forward_and_backward(case, sample, Replayed(recorded, arrays))

    try:
        with jax.enable_x64(True):  # plugrad's integers have 64 bits
            traced = jax.jit(step)(recorded.arrays)
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError):
        assert case.op in DATA_DEPENDENT
        return
    assert len(traced) == len(eager)
    for ours, theirs in zip(traced, eager, strict=True):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        wide = np.complex128 if ours.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(
            np.asarray(ours).astype(wide), np.asarray(theirs).astype(wide), rtol=2e-5, atol=1e-6
        )
