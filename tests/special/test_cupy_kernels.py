"""CuPy has the functions that its table of kernels names; that can be seen without a GPU."""

from __future__ import annotations

import pytest

from plugrad_special.kernels.cpu import KERNELS

pytest.importorskip("cupyx.scipy.special", reason="CuPy is not installed")
table = pytest.importorskip("plugrad_special.kernels.cuda")


def test_cupy_has_the_functions_of_the_table() -> None:
    names = {*table.SAME_NAME, *table.COMPLEX, *table.OTHER_NAMES, "lambertw"}
    assert set(table.KERNELS) == {f"special::{name}" for name in names}
    assert set(table.KERNELS) <= set(KERNELS)
