"""Errors: a call that fails on the CPU fails here, with the same type and words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

import plugrad
from plugrad.testing.cases import OpCase, OpError, resolve, seed_of
from plugrad.testing.conformance.matrix import Item, each
from plugrad.testing.conformance.subject import DeviceArguments, Subject
from plugrad.testing.conformance.trials import Selection, level_of


def wrong_calls(subject: Subject, selection: Selection) -> Iterator[Item]:
    for label, case, error, operator in selection.errors(subject):
        yield Item(label, (case, error), operator, level_of(operator))


@each("call", wrong_calls)
def test_error(subject: Subject, call: tuple[OpCase, OpError]) -> None:
    case, error = call

    ours = _message(case, error, subject, subject.device)
    assert re.search(error.regex, ours) or ours == _message(case, error, subject, "cpu")


def _message(case: OpCase, error: OpError, subject: Subject, device: Any) -> str:
    """What a call says that must fail."""
    made = DeviceArguments(subject.floating, seed_of(case, error.sample), device)
    args = made.make(tuple(error.sample.args))
    kwargs = made.make(dict(error.sample.kwargs))
    with made.device, pytest.raises(error.exception) as raised:
        resolve(case.op)(*args, **kwargs)
    return str(raised.value)


def test_tensors_of_two_devices_do_not_meet(subject: Subject) -> None:
    if subject.name == "cpu":
        return
    x = subject.tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        x + plugrad.ones(2, dtype=x.dtype)


def test_a_device_that_is_not_there(subject: Subject) -> None:
    if subject.name == "cpu":
        return
    with pytest.raises(RuntimeError, match="device index"):
        plugrad.zeros(1, device=f"{subject.name}:{len(subject.devices)}")


def test_a_dtype_that_is_not_there(subject: Subject) -> None:
    for dtype in plugrad.uint8, plugrad.bfloat16, plugrad.complex128, plugrad.float64:
        if dtype.name not in subject.dtypes:
            with pytest.raises(TypeError):
                subject.backend.native_dtype(dtype)
