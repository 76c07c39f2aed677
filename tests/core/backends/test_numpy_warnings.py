"""The CPU's kernels compute inf and nan silently, and leave the user's own NumPy as it is."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import plugrad

HOSTILE = [float("inf"), -float("inf"), float("nan"), 0.0, -0.0, 6e4, -1.0]
DTYPES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
REAL = DTYPES[:4]


@pytest.fixture(params=["warnings are errors", "numpy.seterr raises"])
def strict(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a user may have set who wants to hear of every inf and nan of his own."""
    kind = "warn" if request.param == "warnings are errors" else "raise"
    with warnings.catch_warnings(), np.errstate(all=kind):
        warnings.simplefilter("error")
        yield


CALLS: dict[str, tuple[tuple[str, ...], Callable[[Any], Any]]] = {
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


def test_a_kernel_that_raises_runs_once() -> None:
    from plugrad_cpu.kernels.floating_errors import quiet_kernel

    calls: list[int] = []

    def kernel() -> None:
        calls.append(1)
        raise RuntimeError("its own")

    with pytest.raises(RuntimeError, match="its own"):
        quiet_kernel(kernel)()
    assert calls == [1]
