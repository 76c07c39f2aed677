"""Every operator works on arrays that `jax.jit` traces, forward and backward.

The oracle is the operator itself, run on the CPU with the same values: eager JAX compiles a program
for each kernel of each sample, which takes longer than the program that is looked at here.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plugrad
from plugrad.tensor.base import TensorBase, needs_grad, wrap
from plugrad.testing.cases import OpCase, OpSample, core_cases, flatten, resolve, seed_of
from plugrad.testing.conformance.kit.subject import DeviceArguments


@dataclass(frozen=True)
class Refused:
    """Samples of an operator that no program can hold.

    Attributes:
        samples: their numbers; None for all of them.
        error: what JAX raises, with `match` in its message.
    """

    why: str
    samples: tuple[int, ...] | None
    error: type[Exception]
    match: str

    def holds(self, number: int) -> bool:
        return self.samples is None or number in self.samples


def shaped_by_values(why: str, *samples: int) -> Refused:
    error, match = jax.errors.ConcretizationTypeError, "shape of its result depends on the values"
    return Refused(why, samples or None, error, match)


def copied_to_the_host(*samples: int) -> Refused:
    error, match = jax.errors.TracerArrayConversionError, "__array__"
    return Refused("it is a copy to another backend", samples or None, error, match)


def read_on_the_host(why: str, *samples: int) -> Refused:
    return Refused(why, samples or None, jax.errors.TracerArrayConversionError, "__array__")


# What docs/backends/jax_jit.md says of them is under "What a program cannot do".
REFUSED: Final = {
    **{
        name: read_on_the_host("how many there are depends on the values")
        for name in ("bincount", "unique", "unique_consecutive", "Tensor.unique")
    },
    "linalg.lstsq": read_on_the_host("the rank decides on the residuals", 1, 5, 8),
    "ctc_loss": read_on_the_host("lengths in tensors", 3, 4, 5),
    "_ctc_loss": read_on_the_host("lengths in tensors", 1),
    "_ctc_loss_backward": read_on_the_host("lengths in tensors", 1),
    "allclose": Refused(
        "the answer is Python's", None, jax.errors.TracerArrayConversionError, "__array__"
    ),
    # For different shapes the answer is known in advance.
    "equal": Refused(
        "the answer is Python's", (0, 1), jax.errors.TracerBoolConversionError, "boolean conversion"
    ),
    "Tensor.cpu": copied_to_the_host(),
    "Tensor.to": copied_to_the_host(3, 4, 6),
    "argwhere": shaped_by_values("as many rows as there are elements that are not zero"),
    "nonzero": shaped_by_values("as many rows as there are elements that are not zero"),
    "masked_select": shaped_by_values("as many elements as the mask has ones"),
    "index": shaped_by_values("a mask takes as many elements as it has ones", 5, 6, 7, 8),
    "index_put": shaped_by_values(
        "the gradient of values put at a mask has as many elements as it has ones", 3, 4
    ),
    "one_hot": shaped_by_values("the greatest index says how many classes there are", 0),
    "repeat_interleave": shaped_by_values(
        "without output_size the repeats say how many there are", 3, 4, 6
    ),
    "tensor_split": Refused(
        "the number of parts is an element",
        (3,),
        jax.errors.TracerArrayConversionError,
        "__array__",
    ),
}


# Operators on lists call operators on tensors in a loop, which are traced separately.
OF_LISTS: Final = ("_foreach_add", "_foreach_addcmul_", "_foreach_norm", "_foreach_lerp")


class Recorded(DeviceArguments):
    """Arguments on the CPU that are noted in the order in which they are made."""

    def __init__(self, seed: int) -> None:
        super().__init__("float32", seed, "cpu")
        self.made: list[TensorBase] = []
        self.arrays: list[Any] = []

    def tensor_of(self, values: np.ndarray[Any, Any], layout: str) -> Any:
        tensor = super().tensor_of(values, "contiguous")
        self.made.append(tensor)
        self.arrays.append(np.array(tensor.array))  # an operator may write to the tensor's own
        return tensor


class Replayed(DeviceArguments):
    """The same arguments around JAX's arrays."""

    def __init__(self, recorded: Recorded, arrays: list[Any]) -> None:
        super().__init__("float32", 0, "jax")
        self.given = zip(recorded.made, arrays, strict=True)

    def tensor_of(self, values: np.ndarray[Any, Any], layout: str) -> Any:
        tensor, array = next(self.given)
        return wrap(array, tensor.dtype, self.device)


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
    """The first of each case always runs, the others only in long tests.

    They are numbered through all cases of an operator. Arrays are contiguous here, so cases with
    other layouts have to be left out.
    """
    numbers: Counter[str] = Counter()
    found = []
    for case in core_cases():
        for place, sample in enumerate(case.samples):
            number = numbers[case.op]
            numbers[case.op] += 1
            if case.op != "as_strided" or sample.args[0].strides == "contiguous":
                later = place or (case.op.startswith("_foreach_") and case.op not in OF_LISTS)
                marks = [pytest.mark.long] if later else []
                name = f"{case.op}-{number}"
                found.append(pytest.param(case, sample, number, id=name, marks=marks))
    return found


def assert_same(found: list[Any], expected: list[Any]) -> None:
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        wide = np.complex128 if ours.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(
            np.asarray(ours).astype(wide), np.asarray(theirs).astype(wide), rtol=2e-5, atol=1e-6
        )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("case", "sample", "number"), samples())
def test_traced_as_on_the_cpu(case: OpCase, sample: OpSample, number: int) -> None:
    recorded = Recorded(seed_of(case, sample))
    expected = forward_and_backward(case, sample, recorded)

    def step(arrays: list[Any]) -> list[Any]:
        return forward_and_backward(case, sample, Replayed(recorded, arrays))

    refused = REFUSED.get(case.op)
    with jax.enable_x64(True):  # plugrad's integers have 64 bits
        arrays = [jnp.asarray(array) for array in recorded.arrays]
        if refused is not None and refused.holds(number):
            with pytest.raises(refused.error, match=refused.match):
                jax.jit(step)(arrays)
        else:
            assert_same(jax.jit(step)(arrays), expected)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("case", "sample"),
    [param.values[:2] for param in samples() if not param.marks],
    ids=[param.id for param in samples() if not param.marks],
)
def test_eager_as_on_the_cpu(case: OpCase, sample: OpSample) -> None:
    """`make packages` runs a share of the kit on JAX, which tests the same."""
    recorded = Recorded(seed_of(case, sample))
    expected = forward_and_backward(case, sample, recorded)
    with jax.enable_x64(True):
        arrays = [jnp.asarray(array) for array in recorded.arrays]
    assert_same(forward_and_backward(case, sample, Replayed(recorded, arrays)), expected)
