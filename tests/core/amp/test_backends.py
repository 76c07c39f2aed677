"""What a backend says about autocast, and what holds where it says nothing."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.plugins import Backend
from tests.core.backends.conftest import activated


class Chosen(Backend):
    """NumPy with one product, and dtypes for autocast that a test chooses."""

    chosen: tuple[Any, ...] = ()

    def __init__(self) -> None:
        super().__init__("amp_chosen", array_type=np.ndarray)

    def kernels(self) -> Any:
        return {"mm": np.matmul, "_to_copy": lambda a, dtype: a.astype(dtype)}

    def autocast_dtypes(self) -> tuple[Any, ...]:
        return self.chosen


@pytest.fixture
def backend() -> Iterator[Chosen]:
    made = Chosen()
    with activated(made):
        yield made


def test_the_default_is_the_first_one(backend: Chosen) -> None:
    backend.chosen = (plugrad.float16,)
    x = plugrad.tensor([[1.0]], device="amp_chosen")
    assert plugrad.get_autocast_dtype("amp_chosen") is plugrad.float16
    with plugrad.autocast("amp_chosen"):
        assert x.mm(x).dtype is plugrad.float16
    with pytest.warns(UserWarning, match="AMP_CHOSEN Autocast only supports dtypes of plugrad.f"):
        plugrad.autocast("amp_chosen", plugrad.bfloat16)


def test_without_dtypes_there_is_no_autocast(backend: Chosen) -> None:
    assert not plugrad.amp.is_autocast_available("amp_chosen")
    x = plugrad.ones(1, 1, device="amp_chosen")
    with pytest.warns(UserWarning, match="'amp_chosen' has no autocast.* Disabling autocast"):
        region = plugrad.autocast("amp_chosen")
    with region:
        assert x.mm(x).dtype is plugrad.float32
    with warnings.catch_warnings(), plugrad.library.Library("amp_none", "DEF") as lib:
        warnings.simplefilter("error")
        plugrad.autocast("amp_chosen", enabled=False)
        lib.define("same(Tensor x) -> Tensor")
        lib.impl("same", lambda x: x.clone())
        with pytest.warns(UserWarning, match="the rule for amp_none::same has no effect"):
            plugrad.library.register_autocast(
                "amp_none::same", "amp_chosen", plugrad.float32, lib=lib
            )
        assert plugrad.ops.amp_none.same(x).item() == 1.0
    with pytest.raises(RuntimeError, match="unknown device type for autocast"):
        plugrad.is_autocast_enabled("amp_chosen")


def test_by_default_they_are_those_of_16_bits_that_arrays_can_have() -> None:
    class Narrow(Backend):
        def native_dtype(self, dtype: Any) -> Any:
            if dtype is plugrad.bfloat16:
                raise TypeError("no bfloat16")
            return dtype.numpy

    assert Narrow("amp_narrow", array_type=np.ndarray).autocast_dtypes() == (plugrad.float16,)
    assert Backend("amp_wide", array_type=np.ndarray).autocast_dtypes() == (
        plugrad.bfloat16,
        plugrad.float16,
    )


def test_regions_of_two_backends_hold_at_once(backend: Chosen) -> None:
    backend.chosen = (plugrad.float16,)
    x = plugrad.tensor([[1.0]], device="amp_chosen")
    with plugrad.autocast("amp_chosen"), plugrad.autocast("cpu"):
        assert x.mm(x).dtype is plugrad.float16
        assert plugrad.ones(1, 1).mm(plugrad.ones(1, 1)).dtype is plugrad.bfloat16
        with plugrad.autocast("amp_chosen", enabled=False):
            assert x.mm(x).dtype is plugrad.float32
            assert plugrad.ones(1, 1).mm(plugrad.ones(1, 1)).dtype is plugrad.bfloat16
