"""The CPU's kernels compute inf and nan silently, and leave the user's own NumPy as it is."""

from __future__ import annotations

import contextvars
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.plugins import InContext
from plugrad.testing.cases import (
    FAMILIES,
    Arguments,
    OpCase,
    family_cases,
    flatten,
    lay_out,
    resolve,
)
from plugrad.testing.needs import REFUSALS
from plugrad_cpu.numerics.floating_errors import SILENT

HOSTILE = [float("inf"), -float("inf"), float("nan"), 0.0, -0.0, 6e4, -1.0]
DTYPES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
REAL = DTYPES[:4]


@pytest.fixture(params=["warnings are shown", "warnings are errors", "numpy.seterr raises"])
def strict(request: pytest.FixtureRequest) -> Iterator[None]:
    """The settings of a user who wants a warning for every inf and nan."""
    kind = "raise" if request.param == "numpy.seterr raises" else "warn"
    with warnings.catch_warnings(record=True) as shown, np.errstate(all=kind):
        warnings.simplefilter("always" if request.param == "warnings are shown" else "error")
        yield
    assert shown == []


CALLS: dict[str, tuple[tuple[str, ...], Callable[[Any], Any]]] = {
    "add": (DTYPES, lambda x: x + x.flip(0)),
    "add a multiple": (DTYPES, lambda x: plugrad.add(x, x, alpha=2)),
    "subtract": (DTYPES, lambda x: x - x),
    "multiply": (DTYPES, lambda x: x * x.flip(0)),
    "multiply by a number": (DTYPES, lambda x: x * 1e30),
    "write": (DTYPES, lambda x: x.mul_(x).add_(x).sub_(x)),
    "matmul": (DTYPES, lambda x: x.reshape(1, 7) @ x.reshape(7, 1)),
    "dot": (DTYPES, lambda x: x.dot(x)),
    "linear": (DTYPES, lambda x: plugrad.nn.functional.linear(x, x.reshape(1, 7), x[:1])),
    "addmm": (DTYPES, lambda x: plugrad.addmm(x[:1, None], x[None], x[:, None], alpha=2)),
    "divide": (DTYPES, lambda x: x / x.flip(0)),
    "power": (DTYPES, lambda x: x**x),
    "log and exp": (DTYPES, lambda x: x.log().exp()),
    "sum": (DTYPES, lambda x: x.sum()),
    "mean": (DTYPES, lambda x: x.mean()),
    "mean of nothing": (DTYPES, lambda x: x[:0].mean()),
    "prod": (DTYPES, lambda x: x.prod()),
    "var": (DTYPES, lambda x: x.var()),
    "norm": (DTYPES, lambda x: x.norm(3)),
    "cumsum": (DTYPES, lambda x: x.cumsum(0)),
    "inverse": (("float32", "float64"), lambda x: plugrad.linalg.det(x[:4].reshape(2, 2))),
    "index_add": (DTYPES, lambda x: x.index_add(0, plugrad.zeros(7, dtype=plugrad.int64), x)),
    "less": (REAL, lambda x: x < x.flip(0)),
    "maximum": (REAL, lambda x: plugrad.maximum(x, x.flip(0))),
    "clamp": (REAL, lambda x: x.clamp(-1, 1)),
    "amax": (REAL, lambda x: x.amax()),
    "max": (REAL, lambda x: x.max(0)),
    "round": (REAL, lambda x: x.round(decimals=3)),
    "relu": (REAL, lambda x: plugrad.relu(x)),
    "softmax": (REAL, lambda x: x.softmax(0)),
    "to int": (REAL, lambda x: x.to(plugrad.int32)),
    "to half": (DTYPES[2:4], lambda x: plugrad.full_like(x, 1e30).to(plugrad.float16)),
    "printing": (DTYPES, repr),
}


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("name", CALLS)
def test_no_operator_warns_of_inf_and_nan(name: str) -> None:
    dtypes, call = CALLS[name]
    for dtype in dtypes:
        x = plugrad.tensor(HOSTILE, dtype=getattr(plugrad, dtype))
        call(x)


@pytest.mark.usefixtures("strict")
def test_a_second_thread_is_as_silent() -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with np.errstate(all="raise"):
                for _ in range(50):
                    plugrad.full((300, 300), float("inf")).matmul(plugrad.zeros(300, 300))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_the_users_own_warnings_stay() -> None:
    plugrad.zeros(2) / 0
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        np.ones(1) / np.zeros(1)


class Hostile(Arguments):
    """Arguments with extreme values in their floating point and integer tensors."""

    def tensor_of(self, values: Any, layout: str) -> Any:
        tensor = super().tensor_of(values, layout)
        worst = WORST[tensor.dtype.is_floating_point or tensor.dtype.is_complex]
        if tensor.dtype is plugrad.bool:
            return tensor
        with plugrad.no_grad(), np.errstate(all="ignore"):
            array = lay_out(np.resize(worst, values.shape).astype(values.dtype), layout)
        return plugrad.from_numpy(array)


WORST = {
    True: np.array([np.inf, -1e38, np.nan, 0.0, 1e38, -0.0, 1e-44, -np.inf, 60000.0]),
    False: np.array([0, -1, 127, -128, 2, 1]),
}


def hostile_results(case: OpCase, dtype: str) -> None:
    """Call an operator, and its gradient, with such values; positions must stay what they are."""
    function = resolve(case.op)
    for sample in case.all_samples():
        arguments = Hostile(dtype, 0)
        args, kwargs = arguments.make(tuple(sample.args)), arguments.make(dict(sample.kwargs))
        try:
            out = function(*args, **kwargs)
            tensors = [x for x in flatten(out) if isinstance(x, plugrad.Tensor) and x.requires_grad]
            if tensors:
                plugrad.autograd.backward(tensors, [plugrad.full_like(x, 1e38) for x in tensors])
        except (FloatingPointError, RuntimeWarning) as error:
            pytest.fail(f"{case.op}, {sample.name!r}, {dtype}: {error}")
        except REFUSALS as error:
            # Refused: some arguments are positions, sizes or probabilities.
            if "encountered" in str(error):
                pytest.fail(f"{case.op}, {sample.name!r}, {dtype}: {error}")


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64", "int8"])
@pytest.mark.parametrize("family", FAMILIES)
def test_no_kernel_tells_of_what_it_computes(family: str, dtype: str) -> None:
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error", RuntimeWarning)
        for case in family_cases(family):
            hostile_results(case, dtype)


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: -x - y,
    "multiply": lambda x, y: x * y,
    "multiply by a number": lambda x, y: x * 1e30,
    "add in place": lambda x, y: x.clone().add_(y, alpha=1e10),
    "subtract in place": lambda x, y: x.clone().neg_().sub_(y),
    "multiply in place": lambda x, y: x.clone().mul_(y),
    "multiply by a number in place": lambda x, y: x.clone().mul_(1e30),
    "sum": lambda x, y: x.sum(),
}


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_overflows_silently(name: str) -> None:
    x = plugrad.full((3, 3), 3e38)
    assert ARITHMETIC[name](x, x).isinf().all()


class TestContexts:
    def test_a_kernel_that_raises_runs_once(self) -> None:
        calls: list[int] = []

        def kernel() -> None:
            calls.append(1)
            raise RuntimeError("its own")

        with pytest.raises(RuntimeError, match="its own"):
            InContext(kernel, contextvars.Context())()
        assert calls == [1]

    def test_a_context_that_is_entered_is_copied(self) -> None:
        seen = contextvars.ContextVar("seen", default=0)
        context = contextvars.Context()
        context.run(seen.set, 7)
        inner = InContext(seen.get, context)
        assert inner() == 7
        assert InContext(lambda: (inner(), seen.get()), context)() == (7, 7)

    @pytest.mark.parametrize("name", ["mul", "exp", "sum"])
    def test_operators_run_while_the_context_is_entered(self, name: str) -> None:
        x = plugrad.full((2,), 200.0)
        call = {"mul": lambda: x * 3e38, "exp": x.exp, "sum": lambda: (x * 1e36).sum()}[name]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert SILENT.run(call).isinf().all()

    def test_a_kernels_error_is_explained_while_the_context_is_entered(self) -> None:
        def multiply() -> Any:
            return plugrad.ones(2) * plugrad.ones(3)

        with pytest.raises(RuntimeError, match="must match the size of tensor b"):
            SILENT.run(multiply)
