"""Errors: calls that fail on the CPU fail here, with the same message if plugrad itself checks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

import plugrad
from plugrad.testing.cases import OpCase, OpError, resolve, seed_of
from plugrad.testing.conformance.kit.matrix import Item, each
from plugrad.testing.conformance.kit.subject import DeviceArguments, Subject, by_own_kernels
from plugrad.testing.conformance.kit.trials import Selection, level_of

# A tensor that is not contiguous, in the description of a sample.
LAYOUT = re.compile("strides='(transposed|sliced|expanded)'")


def wrong_calls(subject: Subject, selection: Selection) -> Iterator[Item]:
    for label, case, error, operator in selection.errors(subject):
        known = subject.availability.get(operator)
        if known is not None and known.kind == "decomposed" and operator.startswith("plugrad::"):
            continue  # plugrad's own work; the backend does not affect the messages
        if "strides" not in subject.capabilities and LAYOUT.search(repr(error)):
            continue  # without a layout any view is possible
        yield Item(label, (case, error), operator, level_of(operator))


@each("call", wrong_calls)
def test_error(subject: Subject, call: tuple[OpCase, OpError]) -> None:
    case, error = call
    ours = _failure(case, error, subject, subject.device)
    if _is_from_a_kernel(ours):
        return
    with by_own_kernels():
        theirs = _failure(case, error, subject, "cpu")
    same = str(ours) == str(theirs)
    assert same or re.search(error.regex, str(ours))


def _is_from_a_kernel(error: BaseException) -> bool:
    """Whether the backend, or its array library, has raised an error, in words of its own."""
    trace = error.__traceback__
    name = ""
    while trace is not None:
        name = trace.tb_frame.f_globals.get("__name__", "")
        trace = trace.tb_next
    return not f"{name}.".startswith("plugrad.") or name.startswith("plugrad.plugins.")


def _failure(case: OpCase, error: OpError, subject: Subject, device: Any) -> BaseException:
    """What is raised by a call that must fail."""
    made = DeviceArguments(subject.floating, seed_of(case, error.sample), device)
    args = made.make(tuple(error.sample.args))
    kwargs = made.make(dict(error.sample.kwargs))
    with made.device, pytest.raises(error.exception) as raised:
        _run_to_the_end(subject, case, args, kwargs)
    return raised.value


def _run_to_the_end(subject: Subject, case: OpCase, args: Any, kwargs: Any) -> None:
    """Call the function, and wait: what depends on values an asynchronous device finds later."""
    resolve(case.op)(*args, **kwargs)
    subject.synchronize()


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
