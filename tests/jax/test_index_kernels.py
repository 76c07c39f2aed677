"""Reading and writing by indices and masks on JAX: late errors, and shapes that values decide."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import plugrad
from plugrad.tensor.base import wrap


def on_jax(values: Any) -> Any:
    return plugrad.tensor(values, device="jax")


def traced(function: Callable[..., Any], *tensors: Any) -> Any:
    """What a function of tensors gives inside `jax.jit`, as a NumPy array."""

    def run(*arrays: Any) -> Any:
        given = [wrap(a, t.dtype, t.device) for a, t in zip(arrays, tensors, strict=True)]
        return function(*given).array

    return np.asarray(jax.jit(run)(*[tensor.array for tensor in tensors]))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x, i: x.gather(0, i), RuntimeError, "index 7 is out of bounds for dimension 0"),
        (lambda x, i: x.index_select(0, i), IndexError, "index out of range in self"),
        (lambda x, i: x[i], IndexError, "index 7 is out of bounds for dimension 0 with size 3"),
        (lambda x, i: x.take(i), IndexError, "tried to access index 7 on a tensor of 3 elements"),
        (lambda x, i: x.index_add(0, i, x[:2]), IndexError, "index out of range in self"),
        (lambda x, i: x.index_put((i,), x[:2]), IndexError, "index 7 is out of bounds"),
        (lambda x, i: x.scatter(0, i, 1.0), RuntimeError, "index 7 is out of bounds"),
    ],
)
def test_an_index_out_of_range_is_told_when_the_program_waits(
    call: Callable[..., Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=re.escape(words)):
        call(on_jax([1.0, 2.0, 3.0]), on_jax([0, 7])).tolist()


def test_an_index_out_of_range_reads_nan_and_writes_nothing_while_jax_traces() -> None:
    x, index = on_jax([1.0, 2.0, 3.0]), on_jax([0, 7])
    assert np.isnan(traced(lambda x, i: x[i], x, index)[1])
    assert traced(lambda x, i: x.scatter(0, i, 5.0), x, index).tolist() == [5.0, 2.0, 3.0]


def test_negative_indices_count_from_the_end() -> None:
    x, index = on_jax([1.0, 2.0, 3.0]), on_jax([-1, -3])
    assert x[index].tolist() == [3.0, 1.0]
    assert traced(lambda x, i: x[i], x, index).tolist() == [3.0, 1.0]


@pytest.mark.parametrize("values", [5.0, [5.0, 6.0, 7.0], [[5.0, 6.0, 7.0], [8.0, 9.0, 10.0]]])
@pytest.mark.parametrize("accumulate", [False, True])
def test_writing_at_a_mask_is_traced(values: Any, accumulate: bool) -> None:
    host = plugrad.arange(12.0).reshape(4, 3)
    mask = plugrad.tensor([True, False, False, True])
    wanted = host.index_put([mask], plugrad.tensor(values), accumulate)
    found = traced(
        lambda x, mask, values: x.index_put([mask], values, accumulate),
        host.to("jax"),
        mask.to("jax"),
        on_jax(values),
    )
    assert found.tolist() == wanted.tolist()


def test_assignment_at_a_mask_is_traced() -> None:
    def clip(x: Any) -> Any:
        y = x * 1
        y[y > 2] = 2.0
        return y

    assert traced(clip, on_jax([1.0, 2.0, 3.0])).tolist() == [1.0, 2.0, 2.0]


def test_too_many_values_for_a_mask_are_told_later() -> None:
    x = on_jax([1.0, 2.0, 3.0])
    x[on_jax([True, False, False])] = on_jax([5.0, 6.0])
    with pytest.raises(RuntimeError, match=r"value tensor of shape \[2\] cannot be broadcast"):
        x.tolist()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: x.nonzero(), "plugrad.where(condition, a, b)"),
        (lambda x: x.masked_select(x > 1), "plugrad.where(mask, input, 0)"),
        (lambda x: x[x > 1], "plugrad.where(mask, a, b)"),
        (lambda x: plugrad.repeat_interleave(x.long()), "give it an output_size"),
        (lambda x: plugrad.nn.functional.one_hot(x.long()), "give it num_classes"),
    ],
)
def test_a_shape_that_values_decide_says_what_to_write_instead(
    call: Callable[..., Any], words: str
) -> None:
    with pytest.raises(jax.errors.ConcretizationTypeError, match=re.escape(words)):
        traced(call, on_jax([1.0, 2.0]))
