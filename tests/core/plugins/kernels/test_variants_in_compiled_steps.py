"""Kernels that somebody else brings, on the tape of a compiled step: called on arrays, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.dispatch.backends.candidates import VariantChoice
from plugrad.plugins import Variant
from plugrad.plugins.loading.manager import PluginManager
from tests.core.plugins.kernels.test_variants import gives, installed

pytestmark = pytest.mark.usefixtures("cpu", "project")


def chain(x: Any) -> Any:
    return x.exp() + 1


def run(step: Any, x: Any) -> tuple[Any, Any]:
    """What a compiled step gives the third time, and its tape."""
    compiled: Any = plugrad.compile(step)
    for _ in range(3):
        found = compiled(x)
    assert compiled.cache_info().hits, compiled.explain()
    ((program,),) = compiled._programs.values()
    return found, program.lowered


def choices(tape: Any) -> list[Any]:
    return [each for each in tape._names.values() if isinstance(each, VariantChoice)]


def test_a_variant_is_called_on_arrays(manager: PluginManager) -> None:
    with installed(manager, Variant("exp", gives(7), name="wide", least=10)):
        found, tape = run(chain, plugrad.zeros(16))
        assert found.tolist() == [8.0] * 16
        assert tape.wrapped == 0
        assert len(choices(tape)) == 1


def test_nothing_is_chosen_where_no_variant_can_serve(manager: PluginManager) -> None:
    variants = [
        Variant("exp", gives(7), name="wide", least=10),
        Variant("exp", gives(9), name="double", dtypes=["float64"]),
    ]
    with installed(manager, *variants):
        found, tape = run(chain, plugrad.zeros(4))
        assert found.tolist() == [2.0] * 4
        assert tape.wrapped == 0
        assert not choices(tape)
        assert tape.arena  # the backend's own kernel writes there


def test_one_that_declines_leaves_the_call_to_the_backend(manager: PluginManager) -> None:
    def small_only(a: Any) -> Any:
        return np.full_like(a, 7) if a.max() < 1 else NotImplemented

    compiled: Any = plugrad.compile(chain)
    with installed(manager, Variant("exp", small_only, name="small")):
        for _ in range(3):
            assert compiled(plugrad.zeros(4)).tolist() == [8.0] * 4
        assert compiled(plugrad.ones(4)).allclose(plugrad.ones(4).exp() + 1)
        assert compiled.cache_info().hits == 3


def test_a_preferred_kernel_is_called_on_arrays(manager: PluginManager) -> None:
    with (
        installed(manager, exp=lambda a: np.full_like(a, 7)),
        plugrad.config.set(prefer=["moon"]),
    ):
        found, tape = run(chain, plugrad.zeros(4))
        assert found.tolist() == [8.0] * 4
        assert tape.wrapped == 0
