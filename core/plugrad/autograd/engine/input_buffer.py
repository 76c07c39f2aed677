"""InputBuffer: collects the gradients that flow into a node, adding those of one input up."""

from __future__ import annotations

from typing import final

from mypy_extensions import i64, mypyc_attr

from plugrad._generated.calls import call_add_Tensor
from plugrad.device import CPU, Device
from plugrad.tensor.base import TensorBase


@mypyc_attr(free_list_len=1)
@final
class InputBuffer:
    """One slot per input of a node; an implicit addition for gradients that meet in one."""

    def __init__(self, size: i64) -> None:
        self.values: list[TensorBase | None] = [None] * size if size != 1 else [None]

    def add(self, position: i64, grad: TensorBase | None) -> None:
        if grad is None:
            return
        previous = self.values[position]
        self.values[position] = grad if previous is None else call_add_Tensor(previous, grad)

    def device(self) -> Device:
        """The first device that is not the host's: whose thread runs the node."""
        for value in self.values:
            if value is not None and value.device.type != "cpu":
                return value.device
        return CPU
