"""PostLocalSGDOptimizer: an optimizer after whose steps parameters are averaged over the ranks."""

from __future__ import annotations

import warnings
from typing import Any

from plugrad_distributed.distributed.algorithms.model_averaging.averagers import ModelAverager
from plugrad_nn.optim.optimizer import Optimizer

__all__ = ["PostLocalSGDOptimizer"]


class PostLocalSGDOptimizer(Optimizer):
    """Another optimizer, with averages of parameters after its steps.

    Args:
        optim: the optimizer.
        averager: which steps have averages, such as `PeriodicModelAverager`.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
    >>> from plugrad.distributed.optim import PostLocalSGDOptimizer
    >>> def program():
    ...     weight = plugrad.nn.Parameter(plugrad.zeros(1))
    ...     optimizer = PostLocalSGDOptimizer(
    ...         plugrad.optim.SGD([weight], lr=1.0), PeriodicModelAverager(period=2, warmup_steps=1)
    ...     )
    ...     found = []
    ...     for _ in range(2):
    ...         weight.grad = plugrad.ones(1) * dist.get_rank()
    ...         optimizer.step()
    ...         found.append(weight.item())
    ...     return found
    >>> dist.run_ranks(program, 2)
    [[0.0, -1.0], [-1.0, -1.0]]
    """

    def __init__(self, optim: Optimizer, averager: ModelAverager) -> None:
        self.optim = optim
        self.averager = averager
        self.defaults = optim.defaults
        self.param_groups = optim.param_groups
        self._make_hooks()
        self._patch_step_function()

    @property
    def state(self) -> Any:  # type: ignore[override]  # that of the optimizer
        """The state of the optimizer."""
        return self.optim.state

    def __repr__(self) -> str:
        return repr(self.optim)

    def step(self, closure: Any = None) -> Any:
        """A step of the optimizer, then an average if it is its turn."""
        found = self.optim.step(closure)
        self.averager.average_parameters(self.param_groups)
        return found

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients."""
        self.optim.zero_grad(set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with their own options."""
        self.optim.add_param_group(param_group)

    def state_dict(self) -> dict[str, Any]:
        """That of the optimizer, and the number of the averager's steps as "step"."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` returned; without "step", the averager's steps begin anew."""
        state = dict(state_dict)
        step = state.pop("step", None)
        self.optim.load_state_dict(state)
        # Loading replaces the groups.
        self.param_groups = self.optim.param_groups
        if step is None:
            warnings.warn(
                "Loaded state dict does not contain a step counter for an averager. Setting step "
                "counter to 0.",
                stacklevel=2,
            )
        self.averager.step = step or 0
