"""16-bit floats compute in float32: what a result has to hold, not what leads to it, overflows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pytest

import plugrad
from tests.core.ops.decompositions.bare_backend import bare_backend

F: Final = plugrad.nn.functional
SHAPE: Final = (4, 8)


@pytest.fixture(scope="module", params=["cpu", "decomposed"])
def device(request: Any) -> Iterator[str]:
    if request.param == "cpu":
        yield "cpu"
    else:
        with bare_backend("core") as name:
            yield name


FUNCTIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "rms_norm": lambda x, w: F.rms_norm(x, (8,), None, 1e-5),
    "rms_norm with weights": lambda x, w: F.rms_norm(x, (8,), w, 1e-5),
    "layer_norm": lambda x, w: F.layer_norm(x, (8,), w, w),
    "group_norm": lambda x, w: F.group_norm(x, 2, w, w),
    "batch_norm": lambda x, w: F.batch_norm(x, None, None, training=True),
    "mean": lambda x, w: x.mean(1),
    "std": lambda x, w: x.std(1),
    "std_mean": lambda x, w: plugrad.std_mean(x, 0),
    "var_mean": lambda x, w: plugrad.var_mean(x * 0.01, 0),
    "vector_norm": lambda x, w: plugrad.linalg.vector_norm(x, 2, 1),
    "hardswish": lambda x, w: F.hardswish(x),
    "round": lambda x, w: x.round(decimals=3),
    "round to thousands": lambda x, w: x.round(decimals=-3),
    "hypot": lambda x, w: plugrad.hypot(x, w),
}


def results(name: str, device: str, dtype: Any, values: np.ndarray[Any, Any]) -> list[Any]:
    """What a function gives, and the gradients, of values that 16 bits hold."""
    inputs = [plugrad.from_numpy(v).to(plugrad.float16).to(dtype) for v in (values, values[0] / 4)]
    x, weight = (v.to(device).requires_grad_() for v in inputs)
    with plugrad.enable_grad():
        outputs = FUNCTIONS[name](x, weight)
    tensors = list(outputs) if isinstance(outputs, tuple) else [outputs]
    total = sum(t.float().sum() for t in tensors)
    tensors += [
        g for g in plugrad.autograd.grad(total, [x, weight], allow_unused=True) if g is not None
    ]
    return [t.float().to("cpu").detach().numpy() for t in tensors]


@pytest.mark.parametrize("scale", [300.0, 6000.0])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_only_results_overflow(name: str, scale: float, device: str) -> None:
    values = (np.random.default_rng(3).standard_normal(SHAPE) * scale).astype(np.float32)
    found = results(name, device, plugrad.float16, values)
    expected = results(name, device, plugrad.float32, values)
    assert len(found) == len(expected)
    for each, wide in zip(found, expected, strict=True):
        largest = np.abs(wide).max()
        assert largest < 65504
        np.testing.assert_allclose(each, wide, rtol=4e-3, atol=4e-3 * max(largest, 1e-3))


@pytest.mark.parametrize("name", ["baddbmm", "addmv"])
def test_a_product_and_an_addend_are_rounded_once(name: str) -> None:
    """1 + 2**-8 needs more than the 8 bits of bfloat16, but 2**-8 is left if 1 is taken away."""
    ones = (1,) * (3 if name == "baddbmm" else 2)
    first = plugrad.tensor([1.0, 2.0**-8], dtype=plugrad.bfloat16).reshape(*ones[:-1], 2)
    second = plugrad.ones(2, dtype=plugrad.bfloat16)
    second = second.reshape(1, 2, 1) if name == "baddbmm" else second
    addend = -plugrad.ones(ones[:1], dtype=plugrad.bfloat16)
    assert getattr(plugrad, name)(addend, first, second).item() == 2.0**-8
