"""Tangents by forward mode, and by what they are compared with.

The product of a Jacobian and a vector is the gradient, along the vector, of the product of a
cotangent and the Jacobian, which is linear in the cotangent.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import plugrad
import plugrad.autograd.forward_ad as fwAD
from plugrad.testing.cases import OpCase, OpSample
from tests.core.ops.harness import _finite_differences

STEP = 1e-6


def _leaf_samples(case: OpCase) -> list[OpSample]:
    return [sample for sample in case.all_samples() if "requires_grad=True" in repr(sample)]


def _random_like(tensor: Any, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    values = np.asarray(rng.uniform(-1.0, 1.0, tuple(tensor.shape)))
    if tensor.is_complex():
        values = values + 1j * np.asarray(rng.uniform(-1.0, 1.0, tuple(tensor.shape)))
    return plugrad.tensor(values).to(tensor.dtype)


def _run(function: Any, leaves: list[Any]) -> list[Any]:
    plugrad.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(function(*leaves))


def _forward(function: Any, leaves: list[Any], tangents: list[Any]) -> list[Any]:
    with fwAD.dual_level():
        duals = [fwAD.make_dual(x, t) for x, t in zip(leaves, tangents, strict=True)]
        return [fwAD.unpack_dual(out).tangent for out in _run(function, duals)]


def _double_reverse(function: Any, leaves: list[Any], tangents: list[Any]) -> list[Any]:
    outputs = _run(function, leaves)
    cotangents = [plugrad.zeros_like(out).requires_grad_() for out in outputs]
    grads = plugrad.autograd.grad(outputs, leaves, cotangents, create_graph=True, allow_unused=True)
    used = [(g, t) for g, t in zip(grads, tangents, strict=True) if g is not None]
    used = [(g, t) for g, t in used if g.requires_grad]
    if not used:
        return [plugrad.zeros_like(out) for out in outputs]
    found = plugrad.autograd.grad(
        [g for g, _ in used], cotangents, [t for _, t in used], allow_unused=True
    )
    return [
        plugrad.zeros_like(out) if product is None else product
        for out, product in zip(outputs, found, strict=True)
    ]


def _assert_close(actual: Any, expected: Any, where: str, tolerance: float = 1e-9) -> None:
    assert actual is not None, f"{where}: no tangent"
    assert actual.dtype is expected.dtype, f"{where}: dtype"
    assert actual.shape == expected.shape, f"{where}: shape"
    np.testing.assert_allclose(
        actual.numpy(force=True),
        expected.numpy(force=True),
        rtol=tolerance,
        atol=tolerance,
        err_msg=where,
    )


def assert_tangents_match_double_reverse(case: OpCase) -> None:
    """For all samples of a case that have a gradient."""
    for number, sample in enumerate(_leaf_samples(case)):
        for dtype in case.grad_dtypes:
            function, leaves = _finite_differences(case, sample, dtype)
            tangents = [_random_like(leaf, 7 + i) for i, leaf in enumerate(leaves)]
            where = f"{case.op} sample {sample.name or number} at {dtype}"
            actual = _forward(function, leaves, tangents)
            # The mean of nothing is nan, and so is its tangent.
            if not case.second or not all(leaf.numel() for leaf in leaves):
                continue
            expected = _double_reverse(function, leaves, tangents)
            for ours, theirs in zip(actual, expected, strict=True):
                _assert_close(ours, theirs, where)


def assert_tangents_match_differences(case: OpCase) -> None:
    """For one sample, by central differences along the tangents."""
    for sample in _leaf_samples(case)[:1]:
        dtype = case.grad_dtypes[0]
        function, leaves = _finite_differences(case, sample, dtype)
        tangents = [_random_like(leaf, 7 + i) for i, leaf in enumerate(leaves)]
        actual = _forward(function, leaves, tangents)
        with plugrad.no_grad():
            low, high = (
                [(x + t * step).requires_grad_() for x, t in zip(leaves, tangents, strict=True)]
                for step in (-STEP, STEP)
            )
        before, after = _run(function, low), _run(function, high)
        for ours, a, b in zip(actual, after, before, strict=True):
            _assert_close(ours, (a - b) / (2 * STEP), case.op, 1e-5)


def assert_tangents_of_gradients_match(case: OpCase) -> None:
    """Forward over reverse against reverse over reverse, of one real sample: the derivatives of a
    gradient are symmetric."""
    if "float64" not in case.grad_dtypes or not case.second:
        return
    for sample in _leaf_samples(case)[:1]:
        function, leaves = _finite_differences(case, sample, "float64")
        tangents = [_random_like(leaf, 7 + i) for i, leaf in enumerate(leaves)]

        def gradients(*values: Any, function: Any = function) -> list[Any]:
            outputs = _run(function, list(values))
            weights = [_random_like(out, 3 + i) for i, out in enumerate(outputs)]
            return list(
                plugrad.autograd.grad(
                    outputs, values, weights, create_graph=True, materialize_grads=True
                )
            )

        products = [(grad * t).sum() for grad, t in zip(gradients(*leaves), tangents, strict=True)]
        total = sum(products[1:], products[0])
        if not total.requires_grad:
            continue
        expected = plugrad.autograd.grad(total, leaves, materialize_grads=True)
        with fwAD.dual_level():
            duals = [fwAD.make_dual(x, t) for x, t in zip(leaves, tangents, strict=True)]
            found = [fwAD.unpack_dual(grad).tangent for grad in gradients(*duals)]
            for ours, theirs in zip(found, expected, strict=True):
                ours = plugrad.zeros_like(theirs) if ours is None else ours
                _assert_close(ours, theirs, f"gradient of {case.op}", 1e-7)
