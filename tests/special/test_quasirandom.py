"""Sobol's points: PyTorch's (oracle), scipy's, and what holds of them (closed forms)."""

from __future__ import annotations

import pickle
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import qmc

import plugrad
from plugrad.quasirandom import SobolEngine


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("options", [{}, {"scramble": True, "seed": 7}, {"scramble": True}])
@pytest.mark.parametrize("dimension", [1, 2, 40, 21201])
def test_points_are_pytorchs(
    dimension: int, options: dict[str, Any], dtype: str, torch_oracle: ModuleType
) -> None:
    if dimension == 21201 and options:
        dimension = 300  # the random matrices of all dimensions take long to draw
    found = []
    for lib, make in ((plugrad, SobolEngine), (torch_oracle, torch_oracle.quasirandom.SobolEngine)):
        lib.manual_seed(3)
        engine = make(dimension, **options)
        kind = getattr(lib, dtype)
        points = [engine.draw(1, dtype=kind), engine.draw(6, dtype=kind)]
        points += [engine.fast_forward(9).draw(3, dtype=kind), engine.reset().draw(2, dtype=kind)]
        found.append([each.numpy() for each in points])
        state = (engine.num_generated, repr(engine), lib.rand(2).tolist())
        found.append([engine.sobolstate.numpy(), engine.shift.numpy(), np.array(repr(state))])
    for here, there in zip(found[0] + found[1], found[2] + found[3], strict=True):
        assert here.dtype == there.dtype
        np.testing.assert_array_equal(here, there)


def test_points_are_scipys() -> None:
    points = SobolEngine(5).draw(64, dtype=plugrad.float64).numpy()
    np.testing.assert_array_equal(points, qmc.Sobol(5, scramble=False, bits=30).random(64))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.booleans())
def test_leaving_points_out_is_drawing_them(counts: list[int], scramble: bool) -> None:
    drawn, forwarded = (SobolEngine(3, scramble, seed=1) for _ in range(2))
    for count in counts:
        drawn.draw(count)
        forwarded.fast_forward(count)
    assert drawn.draw(2).tolist() == forwarded.draw(2).tolist()


def test_each_half_and_quarter_of_an_axis_gets_its_share() -> None:
    points = SobolEngine(20, scramble=True, seed=2).draw_base2(5)
    for parts in (2, 4, 32):
        shares = (points * parts).floor().sort(0).values
        even = plugrad.arange(32) * parts // 32
        assert shares.equal(even[:, None].expand(32, 20).to(points.dtype))


def test_an_engine_goes_on_after_it_was_pickled() -> None:
    engine = SobolEngine(2, scramble=True, seed=3)
    engine.draw(5)
    copy = pickle.loads(pickle.dumps(engine))
    assert copy.draw(3).tolist() == engine.draw(3).tolist()


def test_out_gets_the_points_and_their_shape() -> None:
    out = plugrad.empty(0)
    assert SobolEngine(2).draw(3, out=out) is out
    assert out.tolist() == [[0.0, 0.0], [0.5, 0.5], [0.75, 0.25]]


def test_wrong_arguments_are_refused_and_change_nothing() -> None:
    for dimension in (0, 21202):
        with pytest.raises(ValueError, match=r"SobolEngine is \[1, 21201\]"):
            SobolEngine(dimension)
    engine = SobolEngine(2)
    with pytest.raises(RuntimeError, match="negative dimension -1"):
        engine.draw(0)
    engine.draw(3)
    with pytest.raises(ValueError, match=r"n=3\+2\*\*2=7"):
        engine.draw_base2(2)
    with pytest.raises(NotImplementedError, match="float32 or float64 as dtype, but got"):
        engine.draw(1, dtype=plugrad.int64)
    with pytest.raises(ValueError, match="n of at least 1, but got -1"):
        engine.fast_forward(-1)
    assert engine.num_generated == 3
    assert engine.draw(1).tolist() == [[0.25, 0.75]]
