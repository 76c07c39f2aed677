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
        assert not choices(tape)  # shapes and dtypes say who serves it
        assert "if r is NotImplemented: r = " in tape.source
        assert np.exp in tape._names.values()


def test_of_several_variants_the_first_one_is_called_and_the_others_chosen(
    manager: PluginManager,
) -> None:
    def none_at_all(a: Any) -> Any:
        return NotImplemented if a.max() > 0 else np.full_like(a, 5)

    variants = [
        Variant("exp", none_at_all, name="first", priority=2),
        Variant("exp", gives(7), name="second"),
    ]
    compiled: Any = plugrad.compile(chain)
    with installed(manager, *variants):
        for _ in range(3):
            assert compiled(plugrad.zeros(4)).tolist() == [6.0] * 4
        assert compiled(plugrad.ones(4)).tolist() == [8.0] * 4
        assert compiled.cache_info().hits == 3


def test_a_variant_that_takes_out_writes_to_the_arena(manager: PluginManager) -> None:
    seen: list[Any] = []

    def doubled(a: Any, out: Any = None) -> Any:
        seen.append(out)
        return np.multiply(a, 2, out=out)

    with installed(manager, Variant("exp", doubled, name="writes", takes_out=True)):
        found, tape = run(lambda x: x.exp() + 1, plugrad.ones(16))
        assert found.tolist() == [3.0] * 16
        assert tape.arena
    assert seen[0] is None
    assert isinstance(seen[-1], np.ndarray)


def test_who_serves_what_is_declined_writes_there_too(manager: PluginManager) -> None:
    def small_only(a: Any, out: Any = None) -> Any:
        return np.multiply(a, 2, out=out) if a.max() < 2 else NotImplemented

    compiled: Any = plugrad.compile(chain)
    with installed(manager, Variant("exp", small_only, name="small", takes_out=True)):
        for _ in range(3):
            assert compiled(plugrad.ones(4)).tolist() == [3.0] * 4
        twos = plugrad.full((4,), 2.0)
        assert compiled(twos).allclose(twos.exp() + 1)
        assert compiled.cache_info().hits == 3


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
