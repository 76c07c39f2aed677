"""DataParallel, for programs that have it; there is one device to run on."""

from __future__ import annotations

from typing import Any

from plugrad_nn.nn.module import Module


class DataParallel(Module):
    """Calls its module, on one device; the other arguments are taken, and without effect.

    Names in the state dict begin with "module.", as PyTorch's do.

    >>> import plugrad
    >>> net = plugrad.nn.DataParallel(plugrad.nn.Linear(2, 1))
    >>> net(plugrad.ones(3, 2)).shape, list(net.state_dict())
    (plugrad.Size([3, 1]), ['module.weight', 'module.bias'])
    """

    module: Any

    def __init__(
        self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[Any] = []
        self.output_device = output_device
        self.dim = dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)
