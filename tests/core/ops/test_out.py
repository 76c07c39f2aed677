"""`out=`: which functions take it, what is written where, and what is refused. Oracle: PyTorch."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import pytest

import plugrad

# Arguments of functions that take `out=` in PyTorch.
CALLS = {
    "absolute": "(x,)",
    "add": "(x, x)",
    "aminmax": "(x,)",
    "arccos": "(x / 10,)",
    "argmax": "(x, 1)",
    "bucketize": "(x, v)",
    "cat": "([x, x],)",
    "column_stack": "([x, x],)",
    "concat": "([x, x],)",
    "copysign": "(x, -x)",
    "cummax": "(x, 1)",
    "cummin": "(x, 1)",
    "deg2rad": "(x,)",
    "diag": "(x,)",
    "diff": "(x,)",
    "dstack": "([x, x],)",
    "eye": "(2,)",
    "fix": "(x,)",
    "float_power": "(x, 2)",
    "full": "((2, 2), 3)",
    "gather": "(x, 1, i)",
    "greater": "(x, 2)",
    "hstack": "([x, x],)",
    "index_add": "(x, 1, j, x)",
    "index_copy": "(x, 1, j, x)",
    "index_select": "(x, 1, j)",
    "isin": "(x, v)",
    "isposinf": "(x,)",
    "kthvalue": "(x, 1)",
    "less_equal": "(x, x)",
    "linalg.cross": "(w, w)",
    "linalg.det": "(x,)",
    "linalg.inv": "(x,)",
    "linalg.matrix_norm": "(x,)",
    "linalg.multi_dot": "([x, x],)",
    "linalg.norm": "(x,)",
    "linalg.solve": "(x, x)",
    "linalg.vecdot": "(x, x)",
    "linspace": "(0, 3, 4)",
    "logaddexp2": "(x, x)",
    "logit": "(x / 10,)",
    "logspace": "(0, 3, 4)",
    "masked_select": "(x, x > 2)",
    "matrix_power": "(x, 2)",
    "max": "(x, 1)",
    "min": "(x, 1)",
    "msort": "(x,)",
    "multiply": "(x, x)",
    "nanmean": "(x,)",
    "negative": "(x,)",
    "nn.functional.softplus": "(x, 2)",
    "not_equal": "(x, 2)",
    "ones": "(2, 2)",
    "rad2deg": "(x,)",
    "scatter": "(x, 1, i, x)",
    "scatter_add": "(x, 1, i, x)",
    "scatter_reduce": "(x, 1, i, x, 'sum')",
    "searchsorted": "(v, x)",
    "signbit": "(x,)",
    "sinc": "(x,)",
    "softmax": "(x, 1)",
    "sort": "(x,)",
    "special.multigammaln": "(x, 2)",
    "special.sinc": "(x,)",
    "square": "(x,)",
    "stack": "([x, x],)",
    "subtract": "(x, x)",
    "take": "(x, i)",
    "take_along_dim": "(x, i, 1)",
    "tensordot": "(x, x, 1)",
    "threshold": "(x, 2, 5)",
    "topk": "(x, 1)",
    "tril": "(x,)",
    "true_divide": "(x, x)",
    "vstack": "([x, x],)",
    "ceil": "(x,)",
    "linalg.householder_product": "(x, v)",
    "logcumsumexp": "(x, 1)",
    "mode": "(x, 1)",
    "nn.functional.softshrink": "(x,)",
    "nn.functional.linear": "(x, x)",
    "permute_copy": "(x, (1, 0))",
    "quantile": "(x, 0.5, 1)",
    "zeros": "(2, 2)",
}


def call(lib: Any, name: str, change: Any, requires_grad: bool = False) -> Any:
    """A function's results in tensors that `change` makes of what it gives without `out=`: the
    numbers, whether they are the tensors given, and what was warned of; or an error's type."""
    function: Any = lib
    for part in name.split("."):
        function = getattr(function, part)
    known = {
        "x": lib.tensor([[4.0, 2.0], [1.0, 3.0]], requires_grad=requires_grad),
        "v": lib.tensor([1.0, 2.5]),
        "w": lib.arange(6.0).reshape(2, 3),
        "i": lib.tensor([[0, 1], [1, 0]]),
        "j": lib.tensor([1, 0]),
    }
    arguments = eval(CALLS[name], known)
    plain = function(*arguments)
    several = isinstance(plain, tuple)
    given = [change(lib, item.detach()) for item in (plain if several else (plain,))]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = function(*arguments, out=tuple(given) if several else given[0])
        except (RuntimeError, TypeError) as error:
            return "TypeError" if isinstance(error, TypeError) else "RuntimeError"
    results = list(found) if several else [found]
    same = all(result is item for result, item in zip(results, given, strict=True))
    said = [str(item.message) for item in caught if "out" in str(item.message)]
    numbers = [
        (str(item.dtype).rpartition(".")[2], rounded(item.detach().tolist()), item.stride())
        for item in results
    ]
    return (
        numbers,
        same,
        [text.partition(" (")[0].replace("PyTorch", "plugrad") for text in set(said)],
    )


def rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


CHANGES = {
    "right": lambda lib, item: lib.empty_like(item),
    "empty": lambda lib, item: lib.empty(0, dtype=item.dtype),
    "resized": lambda lib, item: lib.zeros(7, dtype=item.dtype),
    "strided": lambda lib, item: lib.zeros((*item.shape, 2), dtype=item.dtype)[..., 0],
    "wider": lambda lib, item: lib.empty(item.shape, dtype=lib.float64),
    "integers": lambda lib, item: lib.empty(item.shape, dtype=lib.int32),
}
# What PyTorch does otherwise than with its other functions.
LAYOUTS = {
    "linalg.householder_product",
    "linalg.inv",
    "linalg.solve",
    "matrix_power",
    "take_along_dim",
}
INTEGERS_ARE_TAKEN = {"bucketize", "searchsorted"}
WARN_OTHERWISE = {"kthvalue", "linspace", "logspace", "mode"}


@pytest.mark.parametrize("name", CALLS)
def test_results_are_written(torch_oracle: ModuleType, name: str) -> None:
    for kind, change in CHANGES.items():
        expected, found = call(torch_oracle, name, change), call(plugrad, name, change)
        if isinstance(expected, tuple) and isinstance(found, tuple):
            if name in LAYOUTS:
                expected, found = ([part[0][:2] for part in both[0]] for both in (expected, found))
            elif name in WARN_OTHERWISE:
                expected, found = expected[:2], found[:2]
        if not (kind == "integers" and name in INTEGERS_ARE_TAKEN):
            assert found == expected, kind


@pytest.mark.parametrize("name", CALLS)
def test_gradients_are_refused(torch_oracle: ModuleType, name: str) -> None:
    def leaf(lib: Any, item: Any) -> Any:
        return lib.zeros(item.shape, dtype=item.dtype, requires_grad=item.dtype.is_floating_point)

    for requires_grad in (False, True):
        found = call(plugrad, name, leaf, requires_grad)
        expected = call(torch_oracle, name, leaf, requires_grad)
        assert isinstance(found, str) == isinstance(expected, str), requires_grad
    with plugrad.no_grad():
        assert not isinstance(call(plugrad, name, leaf, True), str)


def test_a_factory_gives_the_dtype_of_out() -> None:
    out = plugrad.empty(0, dtype=plugrad.int64)
    assert plugrad.eye(2, out=out) is out
    assert (out.dtype, out.tolist()) == (plugrad.int64, [[1, 0], [0, 1]])
    assert plugrad.arange(3, out=plugrad.empty(3)).tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(RuntimeError, match=r"^dtype Double does not match dtype of out parameter"):
        plugrad.zeros(2, dtype=plugrad.float64, out=plugrad.empty(2))


def test_out_of_several_results_is_a_tuple() -> None:
    x, values = plugrad.tensor([2.0, 1.0]), plugrad.empty(2)
    for wrong in (values, (values,), 3, (values, 3)):
        with pytest.raises(TypeError, match=r"argument 'out' must be tuple of 2 Tensors"):
            plugrad.sort(x, out=wrong)


def test_out_shares_no_memory_with_an_argument() -> None:
    x, out = plugrad.ones(2, 2), plugrad.empty(0)
    plugrad.diag(x, out=out)
    out.zero_()
    assert x.tolist() == [[1.0, 1.0], [1.0, 1.0]]
