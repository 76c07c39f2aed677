"""L-BFGS, with or without a line search."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_nn.optim.checks import require_not_negative
from plugrad_nn.optim.elementwise import State
from plugrad_nn.optim.line_search import Point, flat, strong_wolfe
from plugrad_nn.optim.optimizer import Closure, Optimizer, ParamsT, _to_scalar

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """Steps with an approximation of the inverse Hessian from recent gradients.

    `step` needs a closure, and evaluates it several times.

    Args:
        params: parameters, in one group and on one device.
        lr: the size of steps, or the first size that the line search tries.
        max_iter: how many iterations one `step` does.
        max_eval: how many evaluations they may take; max_iter * 1.25 by default.
        tolerance_grad: the largest element of the gradient of a minimum.
        tolerance_change: stop when the loss and the parameters change by less than this.
        history_size: how many gradients the approximation uses.
        line_search_fn: "strong_wolfe", or None for steps of size `lr`.

    Raises:
        ValueError: `lr` is out of its range, or there are several groups.

    Source: Nocedal and Wright 2006, algorithms 7.4 and 7.5.

    >>> import plugrad
    >>> p = plugrad.nn.Parameter(plugrad.tensor([3.0, -2.0]))
    >>> optimizer = plugrad.optim.LBFGS([p], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (p - plugrad.tensor([1.0, 1.0])).square().sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item()
    13.0
    >>> p.round(decimals=4).tolist()
    [1.0, 1.0]
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        require_not_negative(lr=lr)
        super().__init__(
            params,
            {
                "lr": lr,
                "max_iter": max_iter,
                "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad,
                "tolerance_change": tolerance_change,
                "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self) -> list[Tensor]:
        params: list[Tensor] = self.param_groups[0]["params"]
        return params

    @plugrad.no_grad()
    def step(self, closure: Closure) -> Any:  # type: ignore[override]  # it needs one
        """Does up to `max_iter` iterations, and returns the loss before them.

        Args:
            closure: clears the gradients, computes the loss and its gradients, and returns it.
        """
        closure = plugrad.enable_grad()(closure)
        group = self.param_groups[0]
        lr, max_iter, max_eval = _to_scalar(group["lr"]), group["max_iter"], group["max_eval"]
        tolerance_change = group["tolerance_change"]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        first_loss = closure()
        loss, grad = _number(first_loss), self._flat_grad()
        evaluations = 1
        state["func_evals"] += 1
        if grad.abs().max() <= group["tolerance_grad"]:
            return first_loss

        for iteration in range(1, max_iter + 1):
            state["n_iter"] += 1
            direction = state["d"] = self._direction(state, grad, group["history_size"])
            state["prev_flat_grad"] = grad.clone()
            state["prev_loss"] = former_loss = loss
            size = lr
            if state["n_iter"] == 1:
                size = min(1.0, 1.0 / grad.abs().sum()) * lr
            state["t"] = size
            slope = grad.dot(direction)
            if slope > -tolerance_change:
                break
            used = 0
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                found, used = strong_wolfe(
                    self._evaluation(closure, direction),
                    direction,
                    Point(0, loss, grad, slope),
                    size,
                    max_evaluations=max_eval - evaluations,
                )
                loss, grad, size = found.loss, found.grad, found.size
                state["t"] = size
                self._move(size, direction)
            else:
                self._move(size, direction)
                if iteration != max_iter:
                    # The last gradient would be of no use: `step` begins with one.
                    loss, grad, used = _number(closure()), self._flat_grad(), 1
            evaluations += used
            state["func_evals"] += used
            if (
                evaluations >= max_eval
                or grad.abs().max() <= group["tolerance_grad"]
                or (direction * size).abs().max() <= tolerance_change
                or abs(loss - former_loss) < tolerance_change
            ):
                break
        return first_loss

    def _direction(self, state: State, grad: Tensor, history_size: int) -> Tensor:
        """Minus the inverse Hessian times the gradient, by the recursion of two loops."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return grad.neg()
        changes, steps, inverses = state["old_dirs"], state["old_stps"], state["ro"]
        change, step = grad.sub(state["prev_flat_grad"]), state["d"].mul(state["t"])
        product = change.dot(step)
        if product > 1e-10:
            if len(changes) == history_size:
                for remembered in (changes, steps, inverses):
                    remembered.pop(0)
            changes.append(change)
            steps.append(step)
            inverses.append(1.0 / product)
            state["H_diag"] = product / change.dot(change)
        factors = state.setdefault("al", [None] * history_size)
        q = grad.neg()
        for i in reversed(range(len(changes))):
            factors[i] = steps[i].dot(q) * inverses[i]
            q.add_(changes[i], alpha=-factors[i].item())
        r = q.mul(state["H_diag"])
        for i in range(len(changes)):
            r.add_(steps[i], alpha=(factors[i] - changes[i].dot(r) * inverses[i]).item())
        return r

    def _flat_grad(self) -> Tensor:
        return flat([plugrad.zeros_like(p) if p.grad is None else p.grad for p in self._params])

    def _move(self, size: Any, direction: Tensor) -> None:
        """Adds size * direction to the parameters."""
        start = 0
        size = float(size)
        for parameter in self._params:
            p = plugrad.view_as_real(parameter) if parameter.is_complex() else parameter
            p.add_(direction[start : start + p.numel()].view(p.shape), alpha=size)
            start += p.numel()

    def _evaluation(self, closure: Closure, direction: Tensor) -> Any:
        here = [parameter.clone() for parameter in self._params]

        def evaluate(size: Any) -> tuple[float, Tensor]:
            self._move(size, direction)
            loss, grad = _number(closure()), self._flat_grad()
            for parameter, value in zip(self._params, here, strict=True):
                parameter.copy_(value)
            return loss, grad

        return evaluate


def _number(loss: Any) -> float:
    return float(loss.detach() if isinstance(loss, Tensor) else loss)
