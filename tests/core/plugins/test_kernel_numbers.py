"""Numbers that backends' kernels have in common: spaced ones, and the error function's."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest

from plugrad.plugins import error_function, joined_tables, package_kernels
from plugrad.plugins.spacing import spaced


@pytest.mark.parametrize("steps", [0, 1, 2, 5, 8])
def test_spaced_numbers_end_exactly(steps: int) -> None:
    found = spaced(np, 0.1, 0.7, steps, False)
    assert found.shape == (steps,)
    if steps:
        assert found[0] == 0.1
    if steps > 1:
        assert found[-1] == 0.7
        np.testing.assert_allclose(found, np.linspace(0.1, 0.7, steps), rtol=1e-15)


def test_spaced_numbers_between_whole_ends() -> None:
    assert spaced(np, 0.9, 4.9, 5, True).tolist() == [0, 1, 2, 3, 4]
    assert spaced(np, 2.9, 4.9, 1, True).tolist() == [2]


def _ratio(p: tuple[float, ...], q: tuple[float, ...], x: float) -> float:
    return float(np.polyval(p, x) / np.polyval(q, x))


@pytest.mark.parametrize("x", [0.01, 0.2, 0.46, 0.5, 1.0, 2.5, 3.9, 4.1, 5.5])
def test_the_error_function_is_made_of_its_coefficients(x: float) -> None:
    e = error_function
    if x <= e.NEAR_LIMIT:
        found = 1 - x * _ratio(e.NEAR_P, e.NEAR_Q, x * x)
    elif x <= 4:
        found = math.exp(-x * x) * _ratio(e.MIDDLE_P, e.MIDDLE_Q, x)
    else:
        z = 1 / (x * x)
        found = math.exp(-x * x) / x * (math.pi**-0.5 - z * _ratio(e.FAR_P, e.FAR_Q, z))
    assert found == pytest.approx(math.erfc(x), rel=1e-14)


def test_tables_that_define_an_operator_twice() -> None:
    with pytest.raises(RuntimeError, match="second defines again: exp, sin"):
        joined_tables(
            [("first", {"sin": math.sin, "exp": math.exp}), ("second", {"exp": 1, "sin": 2})]
        )


def test_the_kernels_of_a_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    folder = tmp_path / "some_kernels"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "waves.py").write_text("import math\nKERNELS = {'sin': math.sin}\n")
    (folder / "tools.py").write_text("half = 0.5\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert package_kernels("some_kernels") == {"sin": math.sin}
    for module in ("some_kernels", "some_kernels.waves", "some_kernels.tools"):
        del sys.modules[module]
