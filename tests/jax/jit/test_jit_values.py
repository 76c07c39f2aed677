"""Values that Python sees while a step is traced: the program would have them for good."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")

import jax.numpy as jnp

import plugrad
import plugrad_jax

CaptureError = plugrad_jax.CaptureError


class Hidden:
    """Holds a tensor where the walk does not look."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor


def ones(device: str = "jax") -> Any:
    return plugrad.ones(2, device=device)


ASK: list[Callable[[Any], Any]] = [
    lambda t: t.item(),
    lambda t: t.detach().item(),
    lambda t: float(t),
    lambda t: bool(t),
    lambda t: t.detach().cpu().numpy().item(),
    lambda t: np.from_dlpack(t.detach()).item(),
    lambda t: int(repr(t) != ""),
]


@pytest.mark.parametrize("place", ["jax", "cpu"])
@pytest.mark.parametrize(
    "ask", ASK, ids=["item", "alias", "float", "bool", "cpu", "dlpack", "repr"]
)
def test_the_value_of_a_tensor_that_was_not_found(ask: Callable[[Any], Any], place: str) -> None:
    hidden = Hidden(plugrad.tensor(3.0, device=place))

    def step(x: Any) -> Any:
        return x * ask(hidden.tensor)

    with pytest.raises(CaptureError, match=r"test_jit_values\.py:\d+|is on device cpu"):
        plugrad_jax.jit(step)(ones())
    step(ones())


def test_the_error_says_what_to_do() -> None:
    hidden = Hidden(plugrad.tensor(3.0, device="jax"))
    with pytest.raises(CaptureError, match=r"item.*of shape \(\).*pass the number as an argument"):
        plugrad_jax.jit(lambda x: x * hidden.tensor.item())(ones())
    limit = plugrad.tensor(3.0)
    with pytest.raises(CaptureError, match=r"the value of limit would be a constant"):
        plugrad_jax.jit(lambda x: x * limit.item())(ones())


def test_tensors_of_other_devices_that_were_not_found_are_refused() -> None:
    hidden = Hidden(plugrad.tensor(3.0))
    with pytest.raises(CaptureError, match=r"of shape \(\) is on device cpu"):
        plugrad_jax.jit(lambda x: x * hidden.tensor)(ones())


def test_what_the_step_makes_of_numbers_has_values() -> None:
    @plugrad_jax.jit
    def step(x: Any) -> Any:
        three = plugrad.tensor(3.0, device="jax").item()
        four = (plugrad.ones(2, 2) * plugrad.tensor([1.0, 3.0])).sum(1)[0].item()
        return x * three + four + plugrad.tensor([5, 6])[plugrad.tensor(1)].item()

    for _ in range(2):
        assert step(ones()).tolist() == [13.0, 13.0]


def test_arrays_of_tensors_that_were_not_found_are_inputs() -> None:
    hidden = Hidden(ones())

    @plugrad_jax.jit
    def step(x: Any) -> Any:
        return x * plugrad_jax.from_jax(jnp.sin(plugrad_jax.to_jax(hidden.tensor)))

    for value in (1.0, 2.0):
        hidden.tensor.fill_(value)
        np.testing.assert_allclose(step(ones()).tolist(), np.sin([value, value]), rtol=1e-6)
    assert step.traces == 1
