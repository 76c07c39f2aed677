"""Regions of autocast: state, nesting, errors and warnings, threads."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import pytest

import plugrad
from plugrad.dispatch.local_state import current_state
from tests.core.ops.harness import needs_torch, torch

A = plugrad.ones(2, 2)


def product_dtype() -> Any:
    return (A @ A).dtype


def test_nothing_is_cast_outside_and_the_key_is_not_there() -> None:
    included = current_state().included
    with plugrad.autocast("cpu"):
        assert current_state().included != included
    assert current_state().included == included
    assert product_dtype() is plugrad.float32


def test_a_region_has_the_dtype_that_it_names() -> None:
    with plugrad.autocast("cpu") as region:
        assert product_dtype() is plugrad.bfloat16
        assert region.fast_dtype is plugrad.bfloat16
    with plugrad.autocast("cpu", plugrad.float16):
        assert product_dtype() is plugrad.float16
        assert plugrad.get_autocast_dtype("cpu") is plugrad.float16
    assert plugrad.get_autocast_dtype("cpu") is plugrad.bfloat16


def test_regions_nest() -> None:
    with plugrad.autocast("cpu"):
        with plugrad.autocast("cpu", enabled=False):
            assert not plugrad.is_autocast_enabled("cpu")
            assert product_dtype() is plugrad.float32
            with plugrad.autocast("cpu", plugrad.float16):
                assert product_dtype() is plugrad.float16
            assert product_dtype() is plugrad.float32
        assert plugrad.is_autocast_enabled("cpu")
        assert product_dtype() is plugrad.bfloat16


def test_one_manager_can_be_entered_within_itself() -> None:
    region = plugrad.autocast("cpu")
    with region:
        with region:
            assert product_dtype() is plugrad.bfloat16
        assert product_dtype() is plugrad.bfloat16
    assert product_dtype() is plugrad.float32


def test_an_exception_ends_a_region() -> None:
    with pytest.raises(KeyError), plugrad.autocast("cpu"):
        raise KeyError
    assert not plugrad.is_autocast_enabled("cpu")


def test_a_decorated_function_runs_in_a_region() -> None:
    @plugrad.autocast("cpu")
    def of_products() -> Any:
        return product_dtype()

    assert of_products() is plugrad.bfloat16
    assert of_products.__name__ == "of_products"
    assert product_dtype() is plugrad.float32


def test_only_what_can_be_called_can_be_decorated() -> None:
    region: Any = plugrad.autocast("cpu")
    with pytest.raises(TypeError, match="requires a callable, but got int"):
        region(3)


def test_state_can_be_set_without_a_region() -> None:
    plugrad.set_autocast_enabled("cpu", True)
    try:
        assert product_dtype() is plugrad.bfloat16
        plugrad.set_autocast_dtype("cpu", plugrad.float16)
        assert product_dtype() is plugrad.float16
    finally:
        plugrad.set_autocast_dtype("cpu", plugrad.bfloat16)
        plugrad.set_autocast_enabled("cpu", False)
        plugrad.clear_autocast_cache()
    assert product_dtype() is plugrad.float32


def test_the_state_is_the_threads() -> None:
    found: list[Any] = []

    def look() -> None:
        found.extend((plugrad.is_autocast_enabled("cpu"), product_dtype()))

    with plugrad.autocast("cpu"):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert found == [False, plugrad.float32]


def test_another_devices_region_concerns_no_tensors_of_the_cpu() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plugrad.set_autocast_enabled("cuda", True)
    try:
        assert plugrad.is_autocast_enabled()
        assert not plugrad.is_autocast_enabled("cpu")
        assert product_dtype() is plugrad.float32
    finally:
        plugrad.set_autocast_enabled("cuda", False)


def test_a_dtype_that_is_not_supported_disables_it() -> None:
    with pytest.warns(UserWarning, match="In CPU autocast, but the target dtype is not supported"):
        region = plugrad.autocast("cpu", plugrad.float32)
    with region:
        assert not plugrad.is_autocast_enabled("cpu")


@pytest.mark.parametrize(
    ("device_type", "error", "words"),
    [
        (3, ValueError, "Expected `device_type` of type `str`, got: `<class 'int'>`"),
        ("meta", RuntimeError, "User specified an unsupported autocast device_type 'meta'"),
        ("nowhere", RuntimeError, "No backend named 'nowhere' is installed"),
    ],
)
def test_what_has_no_autocast(device_type: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        plugrad.autocast(device_type)


def _said(library: Any, name: str, *args: Any) -> str:
    values = [getattr(library, value[1:]) if str(value)[:1] == "." else value for value in args]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            function = library
            for part in name.split("."):
                function = getattr(function, part)
            return str(function(*values))
        except (RuntimeError, TypeError, ValueError, AssertionError, UserWarning) as error:
            return f"{type(error).__name__}: {error}"


CALLS = [
    ("autocast", 3),
    ("autocast", "cpu", ".float32"),
    ("autocast", "cpu", ".int32"),
    ("is_autocast_enabled",),
    ("is_autocast_enabled", "cpu"),
    ("is_autocast_enabled", 3),
    ("get_autocast_dtype", "cpu"),
    ("get_autocast_dtype", "cuda"),
    ("set_autocast_enabled", "cpu", 3),
    ("set_autocast_enabled", 3),
    ("set_autocast_dtype", "cpu", 3),
    ("is_autocast_cache_enabled",),
    ("set_autocast_cache_enabled", 3),
    ("autocast_increment_nesting",),
    ("autocast_decrement_nesting",),
    ("clear_autocast_cache",),
    ("amp.is_autocast_available", "cpu"),
    ("amp.is_autocast_available", "cuda"),
    ("amp.is_autocast_available", "meta"),
    ("amp.custom_fwd",),
    ("amp.GradScaler", "cpu", 1.0, 1.0),
    ("amp.GradScaler", "cpu", 1.0, 2.0, 1.0),
]


@needs_torch
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_answers_and_errors_are_those_of_pytorch(call: tuple[Any, ...]) -> None:
    assert _said(plugrad, *call) == _said(torch, *call).replace("torch", "plugrad")


def test_the_names_are_in_both_places() -> None:
    assert plugrad.amp.autocast is plugrad.autocast
