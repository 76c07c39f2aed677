"""Random backward passes over several devices, small, with gradients that are whole numbers."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from plugrad.testing.engines.naive import naive_grad
from tests.core.autograd.devices.graphs import leaf, then
from tests.torture.engine.toy_devices import DEVICES

Node = Callable[[Any], Any]


class RandomPasses:
    """Graphs that share leaves and nodes, one for each caller, and the gradients of each.

    Args:
        callers: how many graphs.
        steps: how many nodes are made, beside those that move a tensor to another device.
        node: called in backward by some nodes, with the gradient; not while the expected gradients
            are computed.
    """

    def __init__(
        self, chance: random.Random, callers: int, steps: int, node: Node | None = None
    ) -> None:
        self._node = node
        self._called = False
        devices = chance.sample(DEVICES, chance.randint(1, 4))
        self.leaves = [
            leaf(device, float(chance.randint(1, 3)))
            for device in chance.choices(devices, k=chance.randint(1, 3))
        ]
        values: list[Any] = list(self.leaves)
        for _ in range(steps):
            device = chance.choice(devices)
            a, b = chance.choice(values), chance.choice(values)
            kind = chance.randrange(4)
            if kind == 0:
                made = a.to(device) * float(chance.randint(1, 3)) + b.to(device)
            elif kind == 1:
                made = a.to(device) * 2.0
            elif kind == 2 and node is not None:
                made = then(a.to(device), self._run)
            else:
                made = a.to(device) + b.to(device)
            values.append(made)
        self.roots = [
            (values[-1 - index % len(values)].to("cpu") * 1.0).sum() for index in range(callers)
        ]
        self.expected = [
            [None if grad is None else grad.tolist() for grad in naive_grad([root], self.leaves)]
            for root in self.roots
        ]
        self._called = True

    def _run(self, grad: Any) -> Any:
        return self._node(grad) if self._called and self._node is not None else None

    def backward(self, caller: int) -> None:
        """One pass, which leaves the graph as it was."""
        self.roots[caller].backward(retain_graph=True)

    def forget(self) -> None:
        """Take the gradients away."""
        for x in self.leaves:
            x.grad = None

    def check(self, passes: list[int]) -> None:
        """AssertionError unless the leaves have the gradients of as many passes of each caller."""
        for index, x in enumerate(self.leaves):
            parts = [
                [times * value for value in grads[index]]
                for grads, times in zip(self.expected, passes, strict=True)
                if grads[index] is not None and times
            ]
            wanted = [sum(values) for values in zip(*parts, strict=True)] if parts else None
            found = None if x.grad is None else x.grad.tolist()
            assert found == wanted, f"leaf {index}: {found} instead of {wanted}"
