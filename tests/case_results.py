"""What the cases of `plugrad.testing` compute, for tests that compare kernels."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad.testing.cases import OpCase, OpSample
from plugrad.testing.cases.arguments import Arguments, flatten, resolve, seed_of


def computed(case: OpCase, sample: OpSample, dtype: str = "float32") -> list[Any]:
    """Results, and gradients in what requires them."""
    made = Arguments(dtype, seed_of(case, sample))
    args = [made.make(value) for value in sample.args]
    kwargs = {name: made.make(value) for name, value in sample.kwargs.items()}
    results = flatten(resolve(case.op)(*args, **kwargs))
    found = [result.detach() for result in results if isinstance(result, plugrad.Tensor)]
    # The gradient of a plain sum is one element that is read again and again.
    loss = [(one * one.detach()).sum() for one in results if getattr(one, "requires_grad", False)]
    if made.leaves and loss:
        grads = plugrad.autograd.grad(sum(loss), made.leaves, allow_unused=True)
        found += [grad for grad in grads if grad is not None]
    return found
