"""Calls that PyTorch still takes: a number for the first tensor, numbers between tensors."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import pytest

import plugrad

NUMBER_FIRST = (
    *("lib.div(1., x)", "lib.div(1, n)", "lib.div(7, n, rounding_mode='floor')", "lib.add(2, x)"),
    *("lib.add(2.5, n)", "lib.add(1.1, d)", "lib.sub(2, x, alpha=3)", "lib.mul(2, h)"),
    *("lib.mul(True, n)", "lib.add(1, 2)", "lib.add(1, 2.5)", "lib.div(1, 2)", "lib.add(2j, x)"),
    *("lib.floor_divide(7, n)", "lib.true_divide(1, n)", "lib.subtract(1, x)"),
    *("lib.multiply(2, x)", "lib.divide(2, x)", "lib.mul(2.5, lib.tensor(3))"),
    "lib.where(n - 1)[0]",
)
NUMBERS_BETWEEN = (
    *("lib.add(x, 2, x)", "x.clone().add_(2, x)", "x.sub(2, x)", "lib.sub(x, 2, x)"),
    *("x.clone().addcmul_(2, x, x)", "lib.addcdiv(x, 2, x, x + 1)", "lib.addmm(3, m, m, m)"),
    *("lib.addmm(3, m, 2, m, m)", "m.addmm(3, m, m)", "m.clone().addmm_(3, 2, m, m)"),
    *("lib.addmv(2, x, m, x)", "lib.addbmm(2, m, b, b)", "lib.baddbmm(2, b, 3, b, b)"),
    "lib.add(x, 2, x, out=lib.zeros(2))",
)


def result(call: str, lib: Any) -> Any:
    m = lib.tensor([[1.0, 2.0], [3.0, 4.0]])
    names = {
        "x": lib.tensor([1.0, 2.0]),
        "n": lib.tensor([1, 2]),
        "d": lib.tensor([1.0, 2.0], dtype=lib.float64),
        "h": lib.tensor([1.0, 2.0], dtype=lib.float16),
        "m": m,
        "b": lib.stack([m, m]),
    }
    return eval(call, {"lib": lib}, names)


@pytest.mark.filterwarnings("ignore:This overload of")
@pytest.mark.parametrize("call", [*NUMBER_FIRST, *NUMBERS_BETWEEN])
def test_the_call_gives_what_pytorch_gives(call: str, torch_oracle: ModuleType) -> None:
    found, expected = result(call, plugrad), result(call, torch_oracle)
    assert str(found.dtype).removeprefix("plugrad.") == str(expected.dtype).removeprefix("torch.")
    assert found.shape == expected.shape
    assert found.flatten().tolist() == pytest.approx(expected.flatten().tolist())


def test_numbers_between_tensors_are_said_to_be_deprecated() -> None:
    with pytest.warns(UserWarning, match=r"overload of add_ is deprecated: add_\(alpha, other\)"):
        plugrad.ones(2).add_(2, plugrad.ones(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plugrad.ones(2).add_(plugrad.ones(2), alpha=2)


def test_gradients_flow_through_older_calls() -> None:
    x = plugrad.tensor([1.0, 2.0], requires_grad=True)
    with pytest.warns(UserWarning, match="deprecated"):
        plugrad.add(plugrad.div(1.0, x), 3, x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.75]


@pytest.mark.parametrize("call", ["lib.add(2, 'a')", "lib.add(x, 1, 2, 3)", "lib.add('a', x)"])
def test_other_calls_are_refused(call: str) -> None:
    with pytest.raises(TypeError):
        result(call, plugrad)
