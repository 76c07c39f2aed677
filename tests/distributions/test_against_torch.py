"""The same values, samples and gradients as torch.distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad import distributions
from tests.distributions.table import CASES, Case

# PyTorch refuses float64 in the one, and draws samples of the other twice that are not singular.
OTHERWISE = {"GeneralizedPareto", "Wishart"}


@pytest.mark.parametrize("case", [c for c in CASES if c.name not in OTHERWISE], ids=str)
def test_as_in_torch(case: Case, torch_oracle: Any) -> None:
    torch = torch_oracle
    ours, tensors = case.make(plugrad, distributions, grad=True)
    theirs, others = case.make(torch, torch.distributions, grad=True)
    assert repr(ours.support) == repr(theirs.support) or "tensor" in repr(ours.support)
    for name in ("mean", "variance"):
        both(lambda name=name: getattr(ours, name), lambda name=name: getattr(theirs, name))
    both(lambda: ours.entropy(), lambda: theirs.entropy())
    both(lambda: ours.enumerate_support(), lambda: theirs.enumerate_support())
    drawn = []
    for library, made in ((plugrad, ours), (torch, theirs)):
        library.manual_seed(7)
        drawn.append(made.sample((2, 3)))
    both(lambda: drawn[0], lambda: drawn[1])
    found, expected = ours.log_prob(drawn[0]), theirs.log_prob(drawn[1])
    both(lambda: found, lambda: expected)
    for mine, other in zip(
        plugrad.autograd.grad(found.cos().sum(), tensors, retain_graph=True),
        torch.autograd.grad(expected.cos().sum(), others, retain_graph=True),
        strict=True,
    ):
        both(lambda mine=mine: mine, lambda other=other: other)
    if ours.has_rsample:
        grads = []
        for library, made, parameters in ((plugrad, ours, tensors), (torch, theirs, others)):
            library.manual_seed(8)
            grads.append(library.autograd.grad(made.rsample((2,)).cos().sum(), parameters))
        for mine, other in zip(*grads, strict=True):
            both(lambda mine=mine: mine, lambda other=other: other)


def both(ours: Any, theirs: Any) -> None:
    """The same values, or the same kind of error."""
    try:
        expected = theirs()
    except NotImplementedError:
        with pytest.raises(NotImplementedError):
            ours()
        return
    found = ours()
    assert tuple(found.shape) == tuple(expected.shape)
    np.testing.assert_allclose(
        found.detach().numpy(), expected.detach().numpy(), rtol=1e-7, atol=1e-9
    )
