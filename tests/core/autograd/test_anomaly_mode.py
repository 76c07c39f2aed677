"""Anomaly mode: switching it, and what nodes note when it is on."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import plugrad
from plugrad.autograd import detect_anomaly, set_detect_anomaly


@pytest.fixture(autouse=True)
def mode_is_put_back() -> Iterator[None]:
    yield
    plugrad.set_anomaly_enabled(False)


def test_it_is_off_and_would_check_for_nan() -> None:
    assert not plugrad.is_anomaly_enabled()
    assert plugrad.is_anomaly_check_nan_enabled()


def test_entering_warns_of_the_cost_at_the_callers_line() -> None:
    with pytest.warns(UserWarning, match="Anomaly Detection") as caught, detect_anomaly():
        pass
    assert str(caught[0].message) == (
        "Anomaly Detection has been enabled. This mode will increase the runtime and should only "
        "be enabled for debugging."
    )
    assert caught[0].filename == __file__


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_it_holds_within_the_block_and_is_put_back_after_an_error() -> None:
    with set_detect_anomaly(True, check_nan=False):
        with pytest.raises(ZeroDivisionError), detect_anomaly():
            _ = 1 / (plugrad.is_anomaly_enabled() - plugrad.is_anomaly_check_nan_enabled())
        assert plugrad.is_anomaly_enabled()
        assert not plugrad.is_anomaly_check_nan_enabled()
    assert not plugrad.is_anomaly_enabled()
    assert plugrad.is_anomaly_check_nan_enabled()


def test_as_a_function_it_stays() -> None:
    set_detect_anomaly(True)
    assert plugrad.is_anomaly_enabled()
    set_detect_anomaly(False)
    assert not plugrad.is_anomaly_enabled()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((1,), "argument 'enabled' (position 1) must be bool, not int"),
        ((True, "x"), "argument 'check_nan' (position 2) must be bool, not str"),
    ],
)
def test_modes_are_bools(arguments: tuple[Any, ...], words: str) -> None:
    for function in (plugrad.set_anomaly_enabled, set_detect_anomaly):
        with pytest.raises(TypeError, match=re.escape(f"set_anomaly_enabled(): {words}")):
            function(*arguments)


def test_the_warning_has_the_whole_stack() -> None:
    x = plugrad.ones(1, requires_grad=True)

    def inner(a: Any) -> Any:
        return a * 2

    with set_detect_anomaly(True):
        y = inner(x)
    stack = y.grad_fn.metadata["traceback_"]
    assert ", in test_the_warning_has_the_whole_stack\n" in stack[-2]
    assert ", in inner\n" in stack[-1]


def test_another_thread_sees_the_mode() -> None:
    seen: list[dict[Any, Any]] = []

    def work() -> None:
        y = plugrad.ones(1, requires_grad=True) * 2
        seen.append(y.grad_fn.metadata)

    with set_detect_anomaly(True):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert "in work\n" in seen[0]["traceback_"][-1]


def test_a_node_costs_no_metadata_when_it_is_off() -> None:
    y = plugrad.ones(1, requires_grad=True) * 2
    assert y.grad_fn._extra is None
