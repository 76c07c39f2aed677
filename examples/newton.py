"""Newton's method on the Rosenbrock function: double backward gives exact Hessian-vector products.

The Newton step solves H s = -g by conjugate gradients, which need only products H p. Such a product
is the gradient of (g . p), so the graph of the gradient is kept (`create_graph=True`).
Source of the algorithm: Nocedal and Wright 2006, algorithm 7.1.
"""

from __future__ import annotations

import plugrad
from plugrad import Tensor
from plugrad.autograd import grad


def rosenbrock(x: Tensor) -> Tensor:
    """Its only minimum for x (N), N < 4, is at (1, ..., 1)."""
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def newton_step(x: Tensor) -> Tensor:
    """The solution s of H s = -g, or the best direction found before curvature turns negative."""
    (g,) = grad(rosenbrock(x), x, create_graph=True)
    step = plugrad.zeros_like(g)
    residual = -g.detach()
    direction = residual
    for _ in range(2 * x.numel()):
        if residual.norm().item() < 1e-10:
            break
        (product,) = grad((g * direction).sum(), x, retain_graph=True)
        curvature = direction @ product
        if curvature.item() <= 0:
            break
        length = (residual @ residual) / curvature
        step = step + length * direction
        shrunk = residual - length * product
        direction = shrunk + (shrunk @ shrunk) / (residual @ residual) * direction
        residual = shrunk
    return step if step.norm().item() > 0 else -g.detach()


def main(iterations: int = 60) -> tuple[list[float], int]:
    """Returns the point reached from (-1.2, 1) and how many Newton steps it took."""
    x = plugrad.tensor([-1.2, 1.0], dtype=plugrad.float64, requires_grad=True)
    for taken in range(iterations):
        value = rosenbrock(x).item()
        if value < 1e-20:
            return x.tolist(), taken
        step = newton_step(x)
        length = 1.0
        with plugrad.no_grad():
            while rosenbrock(x + length * step).item() > value and length > 1e-8:
                length /= 2
            x += length * step
    return x.tolist(), iterations


if __name__ == "__main__":
    point, steps = main()
    print(f"reached {point} in {steps} steps")
