"""Fixtures of the nn tests: PyTorch as the oracle, and tensors that go to it and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad


@pytest.fixture
def torch(torch_oracle: Any) -> Any:
    return torch_oracle


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture
def assert_equal_to_torch(torch: Any) -> Callable[..., None]:
    """Compares a plugrad tensor with a torch one; None only equals None."""

    def compare(actual: Any, expected: Any, rtol: float = 1e-7, atol: float = 1e-9) -> None:
        if expected is None or actual is None:
            assert actual is None
            assert expected is None
            return
        assert tuple(actual.shape) == tuple(expected.shape)
        assert str(actual.dtype).partition(".")[2] == str(expected.dtype).partition(".")[2]
        np.testing.assert_allclose(
            actual.detach().numpy(), expected.detach().numpy(), rtol=rtol, atol=atol
        )

    return compare


@pytest.fixture
def same_parameters(torch: Any) -> Callable[[Any, Any], None]:
    """Copies every parameter and buffer of a plugrad module into a torch module of equal layout."""

    def copy(module: Any, torch_module: Any) -> None:
        state = {
            name: torch.from_numpy(np.array(value.detach().numpy()))
            for name, value in module.state_dict().items()
        }
        torch_module.load_state_dict(state)

    return copy


@pytest.fixture(autouse=True)
def seeded() -> None:
    plugrad.manual_seed(0)
