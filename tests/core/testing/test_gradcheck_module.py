"""`plugrad.autograd.gradcheck` is a function and can be imported from like PyTorch's module."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

import plugrad


@pytest.mark.parametrize(
    "program",
    [
        "import plugrad.autograd.gradcheck\nfunction = plugrad.autograd.gradcheck",
        "from plugrad.autograd.gradcheck import gradcheck as function",
        "from plugrad.autograd import gradcheck as function",
        "import plugrad\nfunction = plugrad.autograd.gradcheck\nimport plugrad.autograd.gradcheck",
    ],
)
def test_whoever_comes_first_it_can_be_called(program: str) -> None:
    rest = (
        "\nimport plugrad\n"
        "from plugrad.autograd.gradcheck import GradcheckError, gradgradcheck\n"
        "x = plugrad.ones(1, dtype=plugrad.float64, requires_grad=True)\n"
        "assert function(plugrad.sin, x) and plugrad.autograd.gradcheck(plugrad.sin, x)\n"
        "assert function.GradcheckError is GradcheckError is plugrad.testing.GradcheckError\n"
        "assert gradgradcheck is plugrad.autograd.gradgradcheck\n"
    )
    subprocess.run([sys.executable, "-c", program + rest], check=True)


def _warned(function: Any, *args: Any, **kwargs: Any) -> Any:
    with pytest.warns(FutureWarning, match="was part of PyTorch's private API"):
        return function(*args, **kwargs)


def _jacobians(torch: ModuleType) -> tuple[Any, ...]:
    from importlib import import_module

    kit: Any = import_module(f"{torch.__name__}.autograd.gradcheck")
    a = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    b = torch.tensor([3.0, 4.0], dtype=torch.float64, requires_grad=True)

    def function(inputs: Any) -> Any:
        return 2 * inputs[0] + inputs[1], inputs[0] + 2 * inputs[1]

    numerical = _warned(kit.get_numerical_jacobian, function, (a, b), eps=1e-6)
    of_a = _warned(kit.get_numerical_jacobian, function, (a, b), target=a, eps=1e-6)
    analytical = _warned(kit.get_analytical_jacobian, (a, b), function((a, b))[0])
    single = kit.get_numerical_jacobian_wrt_specific_input(
        lambda *inputs: function(inputs), 1, (a, b), function((a, b)), 1e-6
    )
    rounded = [
        [[[round(x, 4) for x in row] for row in matrix.tolist()] for matrix in found]
        for found in (numerical, of_a, analytical[0], single)
    ]
    return rounded, analytical[1:]


def test_older_functions(torch_oracle: ModuleType) -> None:
    assert _jacobians(plugrad) == _jacobians(torch_oracle)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_older_functions_refuse() -> None:
    from plugrad.autograd.gradcheck import get_analytical_jacobian, get_numerical_jacobian

    x = plugrad.ones(1, dtype=plugrad.float64, requires_grad=True)
    with pytest.raises(ValueError, match=r"Expected grad_out to be 1\.0"):
        get_numerical_jacobian(lambda inputs: inputs[0], (x,), grad_out=2.0)
    with pytest.raises(ValueError, match=r"Expected grad_out to be 1\.0"):
        get_analytical_jacobian((x,), x * 2, grad_out=2.0)
    with pytest.raises(ValueError, match="Expected output to be non-complex"):
        get_numerical_jacobian(lambda inputs: inputs[0] * 1j, (x,))
    with pytest.raises(ValueError, match="Expected output to be non-complex"):
        get_analytical_jacobian((x,), x * 1j)
