"""The operator suite: values, dtypes and gradients against PyTorch, finite differences, errors.

A family's test file is three lines::

    from plugrad.testing.cases import family_cases
    from tests.core.ops.harness import OpSuite

    class TestPointwise(OpSuite):
        cases = family_cases("pointwise")
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

import plugrad
from plugrad.tensor.math_bits import as_stored
from plugrad.testing import gradcheck, gradgradcheck
from plugrad.testing.cases import Arguments, OpCase, OpError, OpSample, flatten, resolve, seed_of
from tests.core.ops.against_torch.oracle import (
    TorchArguments,
    dtype_name,
    is_tensor,
    to_numpy,
    torch,
)

__all__ = ["OpSuite", "needs_torch", "torch"]

needs_torch = pytest.mark.skipif(
    torch is None, reason="PyTorch is not installed: make test ORACLE=torch"
)

# rtol and atol; NumPy rounds 16-bit numbers after each step where PyTorch sums in float32
TOLERANCE = {
    "float64": (1e-7, 1e-9),
    "complex128": (1e-7, 1e-9),
    "float32": (2e-5, 2e-5),
    "complex64": (2e-5, 2e-5),
    "float16": (5e-3, 5e-3),
    "bfloat16": (3e-2, 3e-2),
}
# Finite differences element by element up to here, along random directions above, which show what
# is wrong as well, and take no two evaluations for each element.
SLOW_MODE_LIMIT = 9


def _call(library: Any, case: OpCase, sample: OpSample, dtype: str) -> tuple[Any, list[Any]]:
    """The result of the sample and the leaves that require grad."""
    made = (Arguments if library is plugrad else TorchArguments)(dtype, seed_of(case, sample))
    args = made.make(tuple(sample.args))
    kwargs = made.make(dict(sample.kwargs))
    path = case.op if library is plugrad else case.torch or case.op
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return resolve(path, library)(*args, **kwargs), made.leaves


def _assert_same(actual: Any, expected: Any, case: OpCase, where: str) -> None:
    if not is_tensor(expected):
        if isinstance(expected, (int, float, complex)):
            assert type(actual) is type(expected), where
            np.testing.assert_allclose(actual, expected, rtol=1e-6, err_msg=where)
        else:
            assert str(actual).replace("plugrad", "torch") == str(expected), where
        return
    assert is_tensor(actual), f"{where}: expected a Tensor, got {type(actual)}"
    assert tuple(actual.shape) == tuple(expected.shape), f"{where}: shape"
    if case.exact_dtype:
        assert dtype_name(actual) == dtype_name(expected), f"{where}: dtype"
    name = dtype_name(expected)
    rtol, atol = TOLERANCE.get(name, (0.0, 0.0))
    if name in ("float64", "complex128"):
        rtol, atol = case.rtol or rtol, case.atol or atol
    if name in ("float16", "bfloat16"):
        rtol, atol = rtol * case.low_precision, atol * case.low_precision
    np.testing.assert_allclose(
        to_numpy(actual), to_numpy(expected), rtol=rtol, atol=atol, err_msg=where
    )


def _differentiable(result: Any) -> list[Any]:
    return [leaf for leaf in flatten(result) if is_tensor(leaf) and leaf.requires_grad]


def _grad_outputs(library: Any, outputs: list[Any], seed: int) -> list[Any]:
    rng = np.random.default_rng(seed + 1)
    made = []
    for output in outputs:
        values = np.asarray(rng.uniform(0.5, 1.5, tuple(output.shape)))
        if dtype_name(output).startswith("complex"):
            values = values + 1j * np.asarray(rng.uniform(0.5, 1.5, tuple(output.shape)))
        made.append(library.from_numpy(np.array(values, dtype=np.dtype(dtype_name(output)))))
    return made


def _grads(library: Any, case: OpCase, sample: OpSample, dtype: str) -> list[Any]:
    result, leaves = _call(library, case, sample, dtype)
    outputs = _differentiable(result)
    assert outputs, f"{case.op}: no output requires grad"
    weights = _grad_outputs(library, outputs, seed_of(case, sample))
    grads = library.autograd.grad(outputs, leaves, weights, allow_unused=True)
    return [
        np.zeros(tuple(leaf.shape)) if grad is None else grad
        for leaf, grad in zip(leaves, grads, strict=True)
    ]


def _finite_differences(
    case: OpCase, sample: OpSample, dtype: str, arguments: type[Arguments] = Arguments
) -> tuple[Any, list[Any]]:
    """The function of the leaves alone that `gradcheck` requires, and the leaves."""
    made = arguments(dtype, seed_of(case, sample), overlapping=False)
    args = made.make(tuple(sample.args))
    kwargs = made.make(dict(sample.kwargs))
    leaves = made.leaves
    position = {id(leaf): i for i, leaf in enumerate(leaves)}
    function = resolve(case.op)

    def substitute(value: Any, tensors: tuple[Any, ...]) -> Any:
        if is_tensor(value):
            return tensors[position[id(value)]] if id(value) in position else value
        if isinstance(value, (list, tuple)):
            return type(value)([substitute(item, tensors) for item in value])
        if isinstance(value, dict):
            return {key: substitute(item, tensors) for key, item in value.items()}
        return value

    def of_leaves(*tensors: Any) -> Any:
        result = function(*substitute(args, tensors), **substitute(kwargs, tensors))
        return tuple(_differentiable(result))

    return of_leaves, leaves


def _count(leaves: list[Any]) -> int:
    return sum(leaf.numel() for leaf in leaves)


class OpSuite:
    """Subclass it with `cases`; every case becomes tests named by operator and sample."""

    cases: ClassVar[list[OpCase]] = []

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """One test per sample, dtype or error, according to the test's arguments."""
        names = metafunc.fixturenames
        kind = metafunc.function.__name__
        rows: list[tuple[Any, ...]] = []
        ids: list[str] = []
        columns = [name for name in ("case", "sample", "dtype", "error") if name in names]
        if "case" not in columns:
            return
        for case in self.cases:
            label = case.op
            if "error" in columns:
                for i, error in enumerate(case.errors):
                    rows.append((case, error))
                    ids.append(f"{label}-{error.sample.name or i}")
                continue
            if kind == "test_dtype_rules_match_torch":
                for dtype in case.dtypes:
                    if dtype not in case.wider:
                        rows.append((case, dtype))
                        ids.append(f"{label}-{dtype}")
                continue
            if not _wanted(kind, case):
                continue
            for i, sample in enumerate(case.all_samples()):
                has_leaf = "requires_grad=True" in repr(sample)
                if "grad" in kind and not has_leaf:
                    continue
                for dtype in _grad_dtypes(kind, case, i) if "dtype" in columns else ("",):
                    rows.append((case, sample, dtype) if "dtype" in columns else (case, sample))
                    ids.append("-".join(filter(None, (label, sample.name or str(i), dtype))))
        metafunc.parametrize(columns, rows, ids=ids)

    @needs_torch
    def test_values_match_torch(self, case: OpCase, sample: OpSample) -> None:
        actual = flatten(_call(plugrad, case, sample, "float64")[0])
        expected = flatten(_call(torch, case, sample, "float64")[0])
        assert len(actual) == len(expected)
        for i, (ours, theirs) in enumerate(zip(actual, expected, strict=True)):
            _assert_same(ours, theirs, case, f"{case.op} output {i}")

    @needs_torch
    def test_dtype_rules_match_torch(self, case: OpCase, dtype: str) -> None:
        for i, sample in enumerate(case.all_samples()):
            where = f"{case.op} sample {sample.name or i} at {dtype}"
            try:
                expected = flatten(_call(torch, case, sample, dtype)[0])
            except Exception as error:
                try:
                    result = _call(plugrad, case, sample, dtype)[0]
                except (RuntimeError, TypeError, ValueError, IndexError):
                    continue
                pytest.fail(f"{where}: PyTorch raised {error!r}, plugrad returned {result!r}")
            actual = flatten(_call(plugrad, case, sample, dtype)[0])
            assert len(actual) == len(expected), where
            for j, (ours, theirs) in enumerate(zip(actual, expected, strict=True)):
                _assert_same(ours, theirs, case, f"{where}, output {j}")

    @needs_torch
    def test_gradients_match_torch(self, case: OpCase, sample: OpSample, dtype: str) -> None:
        actual = _grads(plugrad, case, sample, dtype)
        expected = _grads(torch, case, sample, dtype)
        for i, (ours, theirs) in enumerate(zip(actual, expected, strict=True)):
            if is_tensor(ours) and is_tensor(theirs):
                _assert_same(ours, theirs, case, f"{case.op} gradient of input {i}")
                continue
            left, right = (to_numpy(x) if is_tensor(x) else x for x in (ours, theirs))
            np.testing.assert_allclose(left, right, atol=1e-9, err_msg=f"{case.op} gradient {i}")

    def test_gradcheck(self, case: OpCase, sample: OpSample, dtype: str) -> None:
        function, leaves = _finite_differences(case, sample, dtype)
        assert gradcheck(function, leaves, fast_mode=_count(leaves) > SLOW_MODE_LIMIT)

    def test_gradgradcheck(self, case: OpCase, sample: OpSample, dtype: str) -> None:
        function, leaves = _finite_differences(case, sample, dtype)
        assert gradgradcheck(function, leaves, fast_mode=_count(leaves) > SLOW_MODE_LIMIT // 3)

    def test_inplace_matches_function(self, case: OpCase, sample: OpSample) -> None:
        def arguments() -> tuple[Any, Any]:
            made = Arguments("float64", seed_of(case, sample), overlapping=False)
            return made.make(tuple(sample.args)), made.make(dict(sample.kwargs))

        with plugrad.no_grad():
            args, kwargs = arguments()
            expected = resolve(case.op)(*args, **kwargs)
            args, kwargs = arguments()
            receiver = args[0]
            if not is_tensor(receiver) or tuple(receiver.shape) != tuple(expected.shape):
                return  # the result would not fit into the receiver: that is an error case
            before = receiver._version
            result = getattr(receiver, case.inplace or "")(*args[1:], **kwargs)
        assert result is receiver
        assert receiver._version > before
        written = to_numpy(receiver)
        np.testing.assert_allclose(written, to_numpy(expected).astype(written.dtype))

    def test_returns_a_view(self, case: OpCase, sample: OpSample) -> None:
        made = Arguments("float64", seed_of(case, sample))
        args = made.make(tuple(sample.args))
        base = args[0].detach()
        result = resolve(case.op)(base, *args[1:], **made.make(sample.kwargs))
        for view in flatten(result):
            assert view._version == base._version
            if view.numel():
                assert np.shares_memory(as_stored(view).numpy(), base.numpy())

    def test_errors(self, case: OpCase, error: OpError) -> None:
        with pytest.raises(error.exception, match=error.regex):
            _call(plugrad, case, error.sample, "float64")

    @needs_torch
    def test_errors_are_those_of_torch(self, case: OpCase, error: OpError) -> None:
        # Where the words differ on purpose, the type still must not.
        regex = None if error.torch_differs else error.regex
        with pytest.raises(error.exception, match=regex):
            _call(torch, case, error.sample, "float64")


def _grad_dtypes(kind: str, case: OpCase, number: int) -> Sequence[str]:
    """Those that a sample is tried with: of finite differences all for the first, then in turn."""
    dtypes = case.grad_dtypes
    if number == 0 or not kind.endswith("gradcheck"):
        return dtypes
    return (dtypes[number % len(dtypes)],) if dtypes else ()


def _wanted(kind: str, case: OpCase) -> bool:
    if kind == "test_inplace_matches_function":
        return case.inplace is not None
    if kind == "test_returns_a_view":
        return case.view
    if kind == "test_gradgradcheck":
        return case.gradient and case.second
    return case.gradient if "grad" in kind else True
