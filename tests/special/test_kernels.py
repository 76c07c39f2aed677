"""Kernels come from the plugin; a backend that it has none for uses decompositions or says so."""

from __future__ import annotations

import numpy as np
import pytest

import plugrad
from plugrad.errors import OperatorNotFoundError
from plugrad.plugins import get_manager, load_operators
from plugrad_special.kernels.cpu import KERNELS


def test_every_kernel_is_of_an_operator() -> None:
    operators = {f"special::{name}" for name in load_operators("special").__all__}
    assert set(KERNELS) <= operators


def test_the_plugin_brings_kernels_for_three_backends() -> None:
    plugin = get_manager().load("special")
    assert plugin.error is None
    assert sorted(plugin.kernels) == ["cpu", "cuda", "jax"]


def test_a_backend_without_a_kernel_says_so(second_backend: str) -> None:
    x = plugrad.ones(2, device=second_backend)
    with pytest.raises(OperatorNotFoundError, match="special::jv"):
        plugrad.special.jv(1.0, x)


def test_decompositions_serve_a_backend_without_kernels(second_backend: str) -> None:
    x = plugrad.full((2,), 0.5, device=second_backend)
    found = plugrad.special.chebyshev_polynomial_t(x, 3)
    assert found.device.type == second_backend
    np.testing.assert_allclose(found.cpu().numpy(), [-1.0, -1.0])
    np.testing.assert_allclose(plugrad.special.entr(x).cpu().numpy(), -0.5 * np.log(0.5), rtol=1e-6)
