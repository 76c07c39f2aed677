"""Printing: a tensor prints as it does on the CPU, with its device."""

from __future__ import annotations

import re

import plugrad
from plugrad.testing.conformance.kit.matrix import each, in_dtypes
from plugrad.testing.conformance.kit.subject import Subject
from plugrad.testing.conformance.test_conversions import SHAPES, values


def without_device(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r",\s*device='[^']*'", "", text))


@each("dtype", in_dtypes)
def test_repr(subject: Subject, dtype: str) -> None:
    for shape in SHAPES:
        host = plugrad.from_numpy(values(dtype, shape))
        text = repr(host.to(subject.device))
        assert without_device(text) == without_device(repr(host))
        if subject.name != "cpu":
            assert f"device='{subject.device}'" in text


def test_what_is_not_finite_and_what_requires_grad(subject: Subject) -> None:
    host = plugrad.tensor([float("nan"), float("inf"), -1e10])
    moved = host.to(subject.device)
    assert without_device(repr(moved)) == without_device(repr(host))
    doubled = repr(moved.requires_grad_() * 2)
    assert "grad_fn=<MulBackward0>" in doubled


def test_large_tensors_are_abridged(subject: Subject) -> None:
    assert "..." in repr(plugrad.zeros(2000, device=subject.device))
