"""Every divergence that PyTorch registers, and distribution functions: values and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad import distributions
from tests.distributions.table import CASES, Case
from tests.distributions.test_against_torch import OTHERWISE, both

BY_NAME = {case.name: case for case in reversed(CASES)}
# PyTorch's are infinite for Uniform(0, 1), which has the same values.
MENDED = {("ContinuousBernoulli", "Uniform"), ("Uniform", "ContinuousBernoulli")}
# Of the shapes that the others have.
ALIKE = {
    "ContinuousBernoulli": Case("ContinuousBernoulli", {"probs": [0.3, 0.9]}),
    "LowRankMultivariateNormal": Case(
        "LowRankMultivariateNormal",
        {"loc": [[0.0, 1.0]], "cov_factor": [[1.0], [2.0]], "cov_diag": [1.0, 2.0]},
    ),
}
BASES = {"Independent", "TransformedDistribution", "ExponentialFamily"}
# With other parameters than its left side, so that no divergence is trivially 0.
SHIFTS = {"loc": 0.25, "concentration": 0.5, "rate": 0.25, "scale": 0.5, "high": 1.5, "df": 1.0}


def made(library: Any, module: Any, name: str, shift: bool = False) -> tuple[Any, list[Any]]:
    """A distribution, and what its parameters are computed from."""
    case = BY_NAME[name]
    case = ALIKE.get(name, case)
    if shift:
        parameters = {
            key: np.asarray(value) + SHIFTS[key]
            if key in SHIFTS and not isinstance(value, int)
            else value
            for key, value in case.parameters.items()
        }
        case = Case(name, parameters)
    return case.make(library, module, grad=True, validate_args=False)


def registered(torch: Any) -> list[tuple[str, str]]:
    registry = torch.distributions.kl._KL_REGISTRY
    return sorted((left.__name__, right.__name__) for left, right in registry)


def test_every_pair_of_torch_is_registered(torch_oracle: Any) -> None:
    from plugrad.distributions.kl import _KL_REGISTRY

    ours = {(left.__name__, right.__name__) for left, right in _KL_REGISTRY}
    assert set(registered(torch_oracle)) <= ours


def test_every_divergence_is_torchs(torch_oracle: Any) -> None:
    compared = 0
    for left, right in registered(torch_oracle):
        if BASES & {left, right} or (left, right) in MENDED:
            continue
        found = []
        for library, module in (
            (plugrad, distributions),
            (torch_oracle, torch_oracle.distributions),
        ):
            p, first = made(library, module, left)
            q, second = made(library, module, right, shift=left == right)
            value = module.kl_divergence(p, q)
            used = [x for x in [*first, *second] if value.requires_grad]
            finite = value[library.isfinite(value)]
            grads = (
                library.autograd.grad(finite.sum(), used, allow_unused=True, retain_graph=True)
                if finite.requires_grad and finite.numel()
                else []
            )
            found.append([value, *grads])
        for number, (mine, other) in enumerate(zip(*found, strict=True)):
            if mine is None or other is None:
                for side in (mine, other):
                    assert side is None or not side.any(), (left, right, number)
                continue
            np.testing.assert_allclose(
                mine.detach().numpy(),
                other.detach().numpy(),
                rtol=1e-7,
                atol=1e-9,
                err_msg=f"{left} {right} {number}",
            )
        compared += 1
    assert compared > 70


def test_divergence_of_wrapped_distributions_is_torchs(torch_oracle: Any) -> None:
    found = []
    for library, d in ((plugrad, distributions), (torch_oracle, torch_oracle.distributions)):
        loc = library.tensor([[0.5, 1.0], [0.2, -0.3]], dtype=library.float64, requires_grad=True)
        p = d.Normal(loc, loc.exp())
        q = d.Normal(library.zeros(2, dtype=library.float64), 2 * loc.detach().exp())
        warped = [
            d.TransformedDistribution(x, [d.ExpTransform(), d.AffineTransform(0.0, 2.0)])
            for x in (p, q)
        ]
        values = [
            d.kl_divergence(d.Independent(p, 1), d.Independent(q, 1)),
            d.kl_divergence(*warped),
        ]
        grads = library.autograd.grad(sum(value.cos().sum() for value in values), loc)
        found.append([*values, *grads])
    for mine, other in zip(*found, strict=True):
        both(lambda mine=mine: mine, lambda other=other: other)


@pytest.mark.parametrize("case", [c for c in CASES if c.name not in OTHERWISE], ids=str)
def test_distribution_functions_are_torchs(case: Case, torch_oracle: Any) -> None:
    sides = (
        (plugrad, *case.make(plugrad, distributions, grad=True)),
        (torch_oracle, *case.make(torch_oracle, torch_oracle.distributions, grad=True)),
    )
    values = np.array([0.125, 0.5, 0.75])

    def found(library: Any, distribution: Any, parameters: list[Any], name: str) -> Any:
        if name in ("cdf", "icdf"):
            shape = (3,) + (1,) * len(distribution.batch_shape + distribution.event_shape)
            x = library.tensor(values, dtype=library.float64).reshape(shape).requires_grad_()
            if name == "icdf" or distribution.support.check(x.detach()).all():
                result = getattr(distribution, name)(x)
                grads = ()
                if result.requires_grad:
                    grads = library.autograd.grad(
                        result.cos().sum(), [x, *parameters], allow_unused=True, retain_graph=True
                    )
                return [result, *(grad for grad in grads if grad is not None)]
            raise NotImplementedError
        if name == "entropy":
            result = distribution.entropy()
            if not result.requires_grad:
                return [result]
            grads = library.autograd.grad(
                result.cos().sum(), parameters, allow_unused=True, retain_graph=True
            )
            return [result, *(grad for grad in grads if grad is not None)]
        result = getattr(distribution, name)
        return [result() if callable(result) else result]

    for name in ("cdf", "icdf", "mode", "stddev", "entropy", "perplexity"):
        if case.name == "Kumaraswamy" and name == "mode":
            continue  # PyTorch's is nan
        try:
            expected = found(*sides[1], name)
        except NotImplementedError:
            with pytest.raises(NotImplementedError):
                found(*sides[0], name)
            continue
        for mine, other in zip(found(*sides[0], name), expected, strict=True):
            both(lambda mine=mine: mine, lambda other=other: other)


def test_expanded_and_printed_as_in_torch(torch_oracle: Any) -> None:
    for case in CASES:
        if case.name in OTHERWISE:
            continue
        ours, _ = case.make(plugrad, distributions)
        theirs, _ = case.make(torch_oracle, torch_oracle.distributions)
        assert repr(ours).replace("plugrad.", "torch.") == repr(theirs)
        wide, expected = ours.expand((4, *ours.batch_shape)), theirs.expand((4, *ours.batch_shape))
        assert wide.batch_shape == expected.batch_shape
        assert wide.event_shape == expected.event_shape
        assert list(ours.arg_constraints) == list(theirs.arg_constraints)
