"""Memory that a plugin may read and write to beside operators."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad
from plugrad.autograd.graph import increment_version
from plugrad.plugins.tracing import Listener, is_direct, listening, memory_to_write


def test_memory_of_a_tensor_is_its_own() -> None:
    x = plugrad.zeros(2, 3)
    memory_to_write(x)[0, 1] = 5
    assert x.tolist() == [[0, 5, 0], [0, 0, 0]]


OTHERS: dict[str, Any] = {
    "a view that skips": lambda: plugrad.zeros(4)[::2],
    "a transposed view": lambda: plugrad.zeros(2, 3).t(),
    "an expanded view": lambda: plugrad.zeros(1).expand(3),
    "a conjugate": lambda: plugrad.ones(2, dtype=plugrad.complex64).conj(),
    "a negative": lambda: plugrad.ones(2, dtype=plugrad.complex64).conj().imag,
    "no data": lambda: plugrad.zeros(2, device="meta"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_tensors_have_none(case: str) -> None:
    x = OTHERS[case]()
    before = x._version
    assert memory_to_write(x) is None
    assert x._version == before


def test_what_is_no_tensor_has_none() -> None:
    assert memory_to_write([1.0, 2.0]) is None


@pytest.mark.parametrize("case", ["a conjugate", "a negative", "no data"])
def test_what_is_not_the_tensor_s_values_is_not_direct(case: str) -> None:
    assert not is_direct(OTHERS[case]())


def test_nobody_writes_past_a_listener() -> None:
    x = plugrad.zeros(2)
    with listening(Listener()):
        assert memory_to_write(x) is None
        assert x._version == 0
    assert memory_to_write(x) is not None


def test_a_write_is_noted_for_one_tensor_and_for_several() -> None:
    x: Any = plugrad.zeros(2)
    y: Any = plugrad.zeros(2)
    increment_version(x)
    increment_version([x, y])
    assert (x._version, y._version) == (2, 1)
    with pytest.raises(RuntimeError, match="to be a tensor"):
        increment_version([x, 3])
    with pytest.raises(RuntimeError, match="expect"):
        increment_version(3)  # type: ignore[arg-type]


def test_autograd_learns_of_a_noted_write() -> None:
    weight: Any = plugrad.ones(2, requires_grad=True)
    x: Any = plugrad.ones(2)
    product = weight * x
    memory_to_write(x)[:] = 3
    assert x._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


def test_writes_to_inference_tensors_are_not_counted() -> None:
    with plugrad.inference_mode():
        x = plugrad.ones(2)
    assert memory_to_write(x) is not None
    assert x.is_inference()
