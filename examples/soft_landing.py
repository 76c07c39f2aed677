"""Land a rocket softly with little fuel: gradient descent through a simulation.

State: height h and speed v. Thrust u in [0, 2] g at each of 40 steps. The whole flight is recorded
as one graph, so its cost has a gradient for every thrust.
"""

from __future__ import annotations

import plugrad
from plugrad import Tensor, optim

GRAVITY = 1.0
STEPS = 40
SECONDS = 8.0


def fly(thrust: Tensor, height: float = 10.0, speed: float = -1.0) -> tuple[Tensor, Tensor]:
    """Height and speed at the end of the flight (semi-implicit Euler)."""
    dt = SECONDS / STEPS
    h, v = plugrad.tensor(height), plugrad.tensor(speed)
    for u in thrust:
        v = v + dt * (u - GRAVITY)
        h = h + dt * v
    return h, v


def main(iterations: int = 300) -> tuple[float, float, float]:
    """Returns the height and speed at touchdown and the fuel used, as a mean thrust."""
    # A sigmoid maps every value of the parameter to a possible thrust.
    throttle = plugrad.zeros(STEPS, requires_grad=True)
    optimizer = optim.Adam([throttle], lr=0.1)
    for _ in range(iterations):
        optimizer.zero_grad()
        thrust = 2 * throttle.sigmoid() * GRAVITY
        h, v = fly(thrust)
        cost = h**2 + v**2 + 1e-4 * (thrust**2).sum()
        cost.backward()
        optimizer.step()
    with plugrad.no_grad():
        thrust = 2 * throttle.sigmoid() * GRAVITY
        h, v = fly(thrust)
    return h.item(), v.item(), thrust.mean().item()


if __name__ == "__main__":
    height, speed, fuel = main()
    print(f"height {height:+.3f}, speed {speed:+.3f}, mean thrust {fuel:.3f} g")
