"""Decompositions for a backend without kernels, against the CPU's kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.errors import OperatorNotFoundError
from plugrad.testing import assert_close
from tests.core.ops.decompositions.bare_backend import bare_backend

DEVICE = "bare_core"


@pytest.fixture(scope="module", autouse=True)
def backend() -> Iterator[None]:
    with bare_backend("core"):
        yield


FACTORIES: dict[str, Callable[[str], Any]] = {
    "zeros": lambda d: plugrad.zeros(2, 3, device=d),
    "zeros of int": lambda d: plugrad.zeros(2, dtype=plugrad.int16, device=d),
    "ones": lambda d: plugrad.ones(2, device=d),
    "ones of bool": lambda d: plugrad.ones(2, dtype=plugrad.bool, device=d),
    "full": lambda d: plugrad.full((2, 2), 1.5, device=d),
    "full of int": lambda d: plugrad.full((), 7, device=d),
    "full of wrapped": lambda d: plugrad.full((2,), -1, dtype=plugrad.uint8, device=d),
    "full of complex": lambda d: plugrad.full((2,), 1 + 2j, device=d),
    "full of bfloat16": lambda d: plugrad.full((2,), 1.1, dtype=plugrad.bfloat16, device=d),
    "arange": lambda d: plugrad.arange(5, device=d),
    "arange of floats": lambda d: plugrad.arange(0.5, 3.0, 0.7, device=d),
    "arange backwards": lambda d: plugrad.arange(5, 0, -2, device=d),
    "arange of nothing": lambda d: plugrad.arange(0, device=d),
    "linspace": lambda d: plugrad.linspace(0, 1, 7, device=d),
    "linspace of int": lambda d: plugrad.linspace(0, 9, 4, dtype=plugrad.int32, device=d),
    "linspace of one": lambda d: plugrad.linspace(2, 9, 1, device=d),
    "linspace of none": lambda d: plugrad.linspace(2, 9, 0, device=d),
    "logspace": lambda d: plugrad.logspace(0, 2, 5, device=d),
    "eye": lambda d: plugrad.eye(2, 3, device=d),
    "tril_indices": lambda d: plugrad.tril_indices(3, 3, device=d),
    "triu_indices": lambda d: plugrad.triu_indices(3, 4, 1, device=d),
    "zeros_like": lambda d: plugrad.zeros_like(plugrad.ones(2, device=d)),
    "ones_like": lambda d: plugrad.ones_like(plugrad.zeros(2, device=d)),
    "full_like": lambda d: plugrad.full_like(plugrad.zeros(2, device=d), 3),
    "new_full": lambda d: plugrad.zeros(2, device=d).new_full((3,), 2),
    "fill_": lambda d: plugrad.zeros(2, device=d).fill_(4),
    "fill_ by tensor": lambda d: plugrad.zeros(2, device=d).fill_(plugrad.full((), 4, device=d)),
    "zero_": lambda d: plugrad.ones(2, device=d).zero_(),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_factories_build_on_the_host(name: str) -> None:
    made = FACTORIES[name](DEVICE)
    expected = FACTORIES[name]("cpu")
    assert made.device == plugrad.device(DEVICE)
    assert made.dtype is expected.dtype
    assert made.shape == expected.shape
    assert_close(made.cpu(), expected)


def test_empty_has_the_shape() -> None:
    made = plugrad.empty(2, 3, dtype=plugrad.int8, device=DEVICE)
    assert made.shape == (2, 3)
    assert made.dtype is plugrad.int8


def test_factories_check_as_ever() -> None:
    with pytest.raises(RuntimeError, match="negative dimension"):
        plugrad.full((-1,), 1, device=DEVICE)
    with pytest.raises(RuntimeError, match="without overflow"):
        plugrad.full((1,), 300, dtype=plugrad.int8, device=DEVICE)
    with pytest.raises(RuntimeError, match="step must be nonzero"):
        plugrad.arange(0, 3, 0, device=DEVICE)


NUMBERS = np.array([[-1.5, 0.5, 2.0], [0.25, -3.0, 1.0]])
OTHERS = np.array([[0.5, 0.5, -2.0], [1.25, 3.0, 1.0]])

# Functions of one or two floating point tensors, with gradients.
DIFFERENTIABLE: dict[str, Callable[[Any, Any], Any]] = {
    "sub": lambda a, b: a - b,
    "sub alpha": lambda a, b: plugrad.sub(a, b, alpha=0.5),
    "sub broadcast": lambda a, b: a - b.sum(0),
    "sub number": lambda a, b: a - 1,
    "sub number alpha": lambda a, b: plugrad.sub(a, 3, alpha=2),
    "rsub number": lambda a, b: 1.5 - a,
    "rsub number alpha": lambda a, b: plugrad.rsub(a, 3, alpha=2),
    "neg": lambda a, b: -a,
    "reciprocal": lambda a, b: a.reciprocal(),
    "number over": lambda a, b: 2 / a,
    "rsqrt": lambda a, b: (a * a).rsqrt(),
    "sigmoid": lambda a, b: a.sigmoid(),
    "square": lambda a, b: a.square(),
    "cube": lambda a, b: a**3,
    "maximum": plugrad.maximum,
    "minimum": plugrad.minimum,
    "fmax": plugrad.fmax,
    "fmin": plugrad.fmin,
    "relu": lambda a, b: a.relu(),
    "clamp": lambda a, b: a.clamp(-1, 1),
    "clamp low": lambda a, b: a.clamp(min=0.3),
    "clamp by tensors": lambda a, b: a.clamp(b, b + 1),
    "clamp_min": lambda a, b: a.clamp_min(0),
    "clamp_max": lambda a, b: a.clamp_max(b),
    "where number": lambda a, b: plugrad.where(a > 0, a, 0),
    "where number first": lambda a, b: plugrad.where(a > 0, 1.5, a),
    "lerp": lambda a, b: a.lerp(b, 0.3),
    "lerp tensor": lambda a, b: a.lerp(b, b * b),
    "addcmul": lambda a, b: a.addcmul(a, b, value=2),
    "addcdiv": lambda a, b: a.addcdiv(a, b, value=-1),
    "mean": lambda a, b: a.mean(),
    "mean dim": lambda a, b: a.mean(1, keepdim=True),
    "nansum": lambda a, b: a.nansum(0),
    "var": lambda a, b: a.var(),
    "var dim": lambda a, b: a.var(1, correction=0),
    "std": lambda a, b: a.std(0),
    "var_mean": lambda a, b: plugrad.var_mean(a, 1)[0],
    "std_mean": lambda a, b: plugrad.std_mean(a, 1)[1],
    "clone": lambda a, b: a.clone() * b,
    "to dtype": lambda a, b: a.to(plugrad.float32),
    "centered": lambda a, b: (a - a.mean()).sigmoid(),
}


def values_and_gradients(function: Callable[[Any, Any], Any], device: str) -> list[Any]:
    a = plugrad.tensor(NUMBERS, device=device, requires_grad=True)
    b = plugrad.tensor(OTHERS, device=device, requires_grad=True)
    result = function(a, b)
    assert result.device == plugrad.device(device)
    weights = plugrad.arange(1, result.numel() + 1, dtype=result.dtype, device=device)
    (result * weights.view(result.shape)).sum().backward()
    found = [result.detach(), a.grad, b.grad]
    return [None if t is None else t.cpu() for t in found]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_value_and_gradient_equal_those_of_kernels(name: str) -> None:
    made = values_and_gradients(DIFFERENTIABLE[name], DEVICE)
    expected = values_and_gradients(DIFFERENTIABLE[name], "cpu")
    for found, wanted in zip(made, expected, strict=True):
        assert (found is None) == (wanted is None)
        if wanted is not None:
            assert_close(found, wanted)


SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -1.0, 2.0])
PARTNERS = np.array([1.0, np.nan, 0.0, 0.0, -1.0, np.inf])

# Functions with exact results, on nan and infinities.
EXACT: dict[str, Callable[[Any, Any], Any]] = {
    "ne": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "le": lambda a, b: a <= b,
    "ge": lambda a, b: a >= b,
    "ne number": lambda a, b: a != 0,
    "gt number": lambda a, b: a > -1,
    "le number": lambda a, b: a <= 0,
    "ge number": lambda a, b: a >= 0,
    "logical_not": lambda a, b: a.logical_not(),
    "logical_and": plugrad.logical_and,
    "logical_or": plugrad.logical_or,
    "logical_xor": plugrad.logical_xor,
    "isnan": lambda a, b: a.isnan(),
    "isinf": lambda a, b: a.isinf(),
    "isfinite": lambda a, b: a.isfinite(),
    "isfinite of bool": lambda a, b: (a == b).isfinite(),
    "isinf of bool": lambda a, b: (a == b).isinf(),
    "maximum": plugrad.maximum,
    "minimum": plugrad.minimum,
    "fmax": plugrad.fmax,
    "fmin": plugrad.fmin,
    "clamp": lambda a, b: a.clamp(-1, 1),
    "where numbers": lambda a, b: plugrad.where(a > b, 1, 2.5),
    "neg": lambda a, b: -a,
    "sub": lambda a, b: a - b,
    "sigmoid": lambda a, b: a.sigmoid(),
    "nansum": lambda a, b: plugrad.where(a.isinf(), 1.0, a).nansum(),
    "mean of nothing": lambda a, b: a.new_ones(0).mean(),
}


@pytest.mark.parametrize("name", EXACT)
def test_nan_and_infinity_go_as_in_kernels(name: str) -> None:
    made = EXACT[name](*(plugrad.tensor(n, device=DEVICE) for n in (SPECIAL, PARTNERS)))
    expected = EXACT[name](plugrad.tensor(SPECIAL), plugrad.tensor(PARTNERS))
    assert made.dtype is expected.dtype
    np.testing.assert_array_equal(made.cpu().numpy(), expected.numpy())


INTEGERS: dict[str, Callable[[Any, Any], Any]] = {
    "sub": lambda a, b: a - b,
    "sub number": lambda a, b: a - 3,
    "rsub number": lambda a, b: 100 - a,
    "sub float": lambda a, b: a - 0.5,
    "neg": lambda a, b: -a,
    "square": lambda a, b: a.square(),
    "float power": lambda a, b: a**2.0,
    "reciprocal": lambda a, b: a.reciprocal(),
    "sigmoid": lambda a, b: a.sigmoid(),
    "gt": lambda a, b: a > b,
    "gt float": lambda a, b: a > 1.5,
    "maximum": plugrad.maximum,
    "clamp": lambda a, b: a.clamp(2, 4),
    "clamp float": lambda a, b: a.clamp_min(2.5),
    "where float": lambda a, b: plugrad.where(a > b, a, 0.5),
    "addcmul": lambda a, b: plugrad.addcmul(a, a, b, value=2),
}


@pytest.mark.parametrize("dtypes", [("uint8", "uint8"), ("int64", "int8"), ("uint8", "int16")])
@pytest.mark.parametrize("name", INTEGERS)
def test_integers_promote_as_in_kernels(name: str, dtypes: tuple[str, str]) -> None:
    def run(device: str) -> Any:
        first = np.array([1, 2, 5, 100], dtype=dtypes[0])
        second = np.array([3, 2, 1, 127], dtype=dtypes[1])
        if dtypes[1] == "int8":
            second[0] = -128
        return INTEGERS[name](
            plugrad.tensor(first, device=device), plugrad.tensor(second, device=device)
        )

    made, expected = run(DEVICE), run("cpu")
    assert made.dtype is expected.dtype
    assert_close(made.cpu(), expected)


@pytest.mark.parametrize("wanted", ["float32", "int64", "uint8", "bool", "complex64", "bfloat16"])
def test_casts_go_through_the_host(wanted: str) -> None:
    dtype = getattr(plugrad, wanted)
    made = plugrad.tensor([-1.7, 0.0, 2.5], device=DEVICE).to(dtype)
    assert made.device == plugrad.device(DEVICE)
    assert_close(made.cpu(), plugrad.tensor([-1.7, 0.0, 2.5]).to(dtype))


def test_clone_has_memory_of_its_own() -> None:
    x = plugrad.ones(2, device=DEVICE)
    y = x.clone()
    y.fill_(3)
    assert x.tolist() == [1.0, 1.0]
    assert y.tolist() == [3.0, 3.0]


def test_in_place_operators_are_decomposed_too() -> None:
    x = plugrad.ones(2, device=DEVICE)
    x -= 3
    x.clamp_(min=-1)
    assert x.tolist() == [-1.0, -1.0]


def test_bools_have_no_difference() -> None:
    flags = plugrad.ones(2, dtype=plugrad.bool, device=DEVICE)
    for function in (lambda: flags - flags, lambda: flags - 1.0 - True, lambda: -flags):
        with pytest.raises(RuntimeError, match=r"bool tensor"):
            function()


def test_tensors_print() -> None:
    assert repr(plugrad.ones(2, device=DEVICE)) == "tensor([1., 1.], device='bare_core')"


def test_what_has_no_decomposition_says_so() -> None:
    with pytest.raises(OperatorNotFoundError, match=r"plugrad::view_as_complex"):
        plugrad.complex(plugrad.ones(2, device=DEVICE), plugrad.ones(2, device=DEVICE))
