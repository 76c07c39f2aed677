"""Forward mode: the tangents of every differentiable operator agree with its gradients.

With the Jacobian J, a tangent v of the arguments and a gradient w of the results, w · J · v is both
the product of w and the tangent J · v, and the product of the gradient w · J and v.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import plugrad
import plugrad.autograd.forward_ad as fwAD
from plugrad.testing.conformance.kit.derivatives import differentiable, numbers, of_leaves
from plugrad.testing.conformance.kit.matrix import each
from plugrad.testing.conformance.kit.subject import Subject, skip
from plugrad.testing.conformance.kit.trials import Selection, Trial

# By dtype, what rounding may make of a sum of products, in parts of the sum of their sizes.
_TOLERANCE = {"float64": 1e-8, "complex128": 1e-8, "float32": 1e-3, "complex64": 1e-3}
_WIDE_TOLERANCE = 5e-2


def with_tangent(subject: Subject, selection: Selection) -> Iterator[Trial]:
    """One trial for each function and dtype, since tangents are computed by operators that other
    topics test; all trials of operators that were requested."""
    seen: set[tuple[str, str | None]] = set()
    for trial in differentiable(subject, selection, twice=False):
        about = (trial.case.op, trial.dtype)
        if selection.names or about not in seen:
            seen.add(about)
            yield trial


@each("trial", with_tangent)
def test_tangent(subject: Subject, trial: Trial) -> None:
    made = trial.arguments(subject, overlapping=False)
    function, leaves = of_leaves(trial, made)
    tangents = numbers(leaves, trial.seed() + 3, made.device, requires_grad=False)
    with made.device:
        recorded = function(*leaves)
        weights = numbers(recorded, trial.seed() + 1, made.device, requires_grad=False)
        grads = plugrad.autograd.grad(recorded, leaves, weights, allow_unused=True)
        with fwAD.dual_level():
            duals = [fwAD.make_dual(x, t) for x, t in zip(leaves, tangents, strict=True)]
            try:
                results = function(*duals)
            except NotImplementedError as error:
                if "Trying to use forward AD with" not in str(error) or "plugrad::" in str(error):
                    raise
                skip(f"no forward rule: {trial.operator}")
            forward = [fwAD.unpack_dual(result).tangent for result in results]
    ahead, size = _product(weights, forward)
    back, other_size = _product(grads, tangents)
    allowed = _TOLERANCE.get(trial.dtype or subject.floating, _WIDE_TOLERANCE)
    assert abs(ahead - back) <= allowed * (size + other_size), (
        f"{trial.label}: the tangent times a gradient of the results is {ahead}, but the gradient "
        f"times the arguments' tangent is {back}: the forward rule and the derivative disagree"
    )


def _product(first: Any, second: Any) -> tuple[float, float]:
    """The sum of the products of two lists of tensors, and the sum of the products' sizes; None is
    zero."""
    total = size = 0.0
    for a, b in zip(first, second, strict=True):
        if a is None or b is None:
            continue
        products = (_on_host(a).conj() * _on_host(b)).real
        finite = products[plugrad.isfinite(products)]
        total += finite.sum().item()
        size += finite.abs().sum().item()
    return total, size


def _on_host(tensor: Any) -> Any:
    wide = plugrad.complex128 if tensor.is_complex() else plugrad.float64
    return tensor.detach().cpu().to(wide)
