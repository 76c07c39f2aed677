"""SparseAdam: for sparse gradients, which plugrad does not have; its error names the
alternative."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_nn.optim.checks import check_tensor, require_betas
from plugrad_nn.optim.elementwise import loss_of
from plugrad_nn.optim.optimizer import Closure, Optimizer, ParamsT

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam for sparse gradients. Gradients are dense here, and `step` refuses them as in PyTorch.

    Args:
        params: parameters or parameter groups; real.
        lr, betas, eps, maximize: as of `Adam`; `lr` and `eps` are not 0.

    Raises:
        ValueError: an option is out of its range, or a parameter is complex.

    >>> import plugrad
    >>> p = plugrad.nn.Parameter(plugrad.ones(2))
    >>> optimizer = plugrad.optim.SparseAdam([p])
    >>> p.sum().backward()
    >>> optimizer.step()
    Traceback (most recent call last):
        ...
    RuntimeError: SparseAdam does not support dense gradients, please consider Adam instead
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_tensor("lr", lr)
        if not lr > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        require_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        complex_params = [
            [number, place]
            for number, group in enumerate(self.param_groups)
            for place, parameter in enumerate(group["params"])
            if parameter.is_complex()
        ]
        if complex_params:
            raise ValueError(
                f"Complex params at indices {complex_params}: SparseAdam does not support complex "
                "parameters"
            )

    @plugrad.no_grad()
    def step(self, closure: Closure | None = None) -> Any:
        """Returns the closure's loss if no parameter has a gradient; see `Optimizer.step`."""
        loss = loss_of(closure)
        if any(p.grad is not None for group in self.param_groups for p in group["params"]):
            raise RuntimeError(
                "SparseAdam does not support dense gradients, please consider Adam instead"
            )
        return loss
