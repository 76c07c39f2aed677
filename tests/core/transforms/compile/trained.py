"""The same training twice: as written, and through `plugrad.compile`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plugrad

Step = Callable[..., Any]
# A function that makes a step, and what it changes: modules and optimizers.
Make = Callable[[], tuple[Step, list[Any]]]


def flat(value: Any) -> list[Any]:
    """The tensors and numbers in a state dict."""
    if isinstance(value, dict):
        return [each for key in value for each in flat(value[key])]
    if isinstance(value, (list, tuple)):
        return [each for item in value for each in flat(item)]
    return [value]


def outcome(make: Make, inputs: tuple[Any, ...], steps: int, compiled: bool) -> Any:
    """Results, states, gradients and versions after some steps, and the step."""
    plugrad.manual_seed(0)
    step, owners = make()
    run: Any = plugrad.compile(step) if compiled else step
    plugrad.manual_seed(1)
    results = [flat(run(*inputs)) for _ in range(steps)]
    results = [[x.detach() if isinstance(x, plugrad.Tensor) else x for x in r] for r in results]
    found = flat(results)
    for owner in owners:
        found += flat(owner.state_dict())
        if hasattr(owner, "parameters"):
            for parameter in owner.parameters():
                found += [parameter.grad, parameter._version]
    found.append(plugrad.rand(2))  # the generator is where it should be
    return found, run


def same(a: Any, b: Any) -> bool:
    if isinstance(a, plugrad.Tensor):
        return isinstance(b, plugrad.Tensor) and a.dtype is b.dtype and plugrad.equal(a, b)
    return type(a) is type(b) and bool(a == b)


def check(make: Make, *inputs: Any, steps: int = 6, hits: int = 3) -> Any:
    """Bit for bit the same, and at least so many steps by a program; the compiled function."""
    wanted, _ = outcome(make, inputs, steps, False)
    found, run = outcome(make, inputs, steps, True)
    assert len(wanted) == len(found)
    for number, (a, b) in enumerate(zip(wanted, found, strict=True)):
        assert same(a, b), (number, a, b, run.explain())
    assert run.cache_info().hits >= hits, run.explain()
    return run
