"""A block in which an optimizer works on other parameters and another state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from plugrad import Tensor
from plugrad_nn.optim.optimizer import Optimizer

__all__ = ["swap_in_optimizer_params_and_state"]


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer,
    swapin_parameters: dict[str, Tensor],
    swapin_optim_state: dict[str, Any],
) -> Iterator[None]:
    """A block in which `optimizer` has the given parameters and state; afterwards its own are
    restored. A step in the block writes to the given tensors. New assignments, such as another
    rate, are lost at the end of the block.

    Args:
        optimizer: one that has made a step.
        swapin_parameters: as many tensors, in the order of the optimizer's parameters.
        swapin_optim_state: as `optimizer.state_dict()` gives it.

    Raises:
        RuntimeError: the optimizer has no state yet, or the numbers of parameters or groups differ;
            then nothing is changed.

    >>> import plugrad
    >>> p = plugrad.nn.Parameter(plugrad.ones(1))
    >>> optimizer = plugrad.optim.SGD([p], lr=0.5, momentum=0.9)
    >>> p.grad = plugrad.ones(1)
    >>> optimizer.step()
    >>> other = plugrad.zeros(1)
    >>> other.grad = plugrad.ones(1)
    >>> state = optimizer.state_dict()
    >>> with plugrad.optim.swap_in_optimizer_params_and_state(optimizer, {"p": other}, state):
    ...     optimizer.step()
    >>> other, p.detach()
    (tensor([-0.9500]), tensor([0.5000]))
    """
    name = "swap_in_optimizer_params_and_state"
    if not optimizer.state:
        raise RuntimeError(f"{name} requires initialized optimizer state.")
    tensors = list(swapin_parameters.values())
    own_groups = optimizer.param_groups
    if len(tensors) != sum(len(group["params"]) for group in own_groups):
        raise RuntimeError(
            f"{name} requires the explicit parameter state to match optimizer.param_groups "
            "ordering."
        )
    states = swapin_optim_state.get("state")
    if not isinstance(states, Mapping):
        raise RuntimeError(
            f"{name} requires swapin_optim_state['state'] to be a dict mapping packed parameter "
            f"ids to per-param state dicts, got {type(states).__name__}."
        )
    given_groups = swapin_optim_state.get("param_groups", ())
    if len(given_groups) != len(own_groups):
        raise RuntimeError(
            "swapin_optim_state has a different number of parameter groups than the live optimizer."
        )
    groups: list[dict[str, Any]] = []
    state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
    rest = iter(tensors)
    for own, given in zip(own_groups, given_groups, strict=True):
        params = [next(rest) for _ in own["params"]]
        groups.append({**given, "params": params})
        for number, tensor in zip(given["params"], params, strict=False):
            if number in states:
                state[tensor] = dict(states[number])
    own_state = optimizer.state
    optimizer.param_groups, optimizer.state = groups, state
    try:
        yield
    finally:
        optimizer.param_groups, optimizer.state = own_groups, own_state
