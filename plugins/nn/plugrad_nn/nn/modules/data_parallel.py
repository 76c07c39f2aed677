"""DataParallel: a module that divides batches among devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plugrad_nn.nn import parallel
from plugrad_nn.nn.module import Module


class DataParallel(Module):
    """Calls its module on several devices of a backend, each with a part of the batch.

    Names in the state dict begin with "module.", as PyTorch's do.

    Args:
        module: its parameters and buffers are on the first device.
        device_ids: devices, or their numbers in the module's backend. With none or one, the module
            is called directly.
        output_device: where outputs are joined, the first device by default.
        dim: along which inputs are cut and outputs are joined.

    >>> import plugrad
    >>> net = plugrad.nn.DataParallel(plugrad.nn.Linear(2, 1))
    >>> net(plugrad.ones(3, 2)).shape, list(net.state_dict())
    (plugrad.Size([3, 1]), ['module.weight', 'module.bias'])
    """

    module: Any

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        self.module = module
        kind = parallel.device_type_of(list(module.parameters()))
        self.device_ids: list[Any] = parallel.devices_of(device_ids or (), kind)
        first = self.device_ids[0] if self.device_ids else None
        self.output_device = first if output_device is None else output_device
        self.dim = dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return parallel.data_parallel(
            self.module, inputs, self.device_ids, self.output_device, self.dim, kwargs
        )

    def scatter(self, inputs: tuple[Any, ...], kwargs: Any, device_ids: Sequence[Any]) -> Any:
        """Inputs and keywords for each device."""
        places = parallel.scatter(inputs, device_ids, self.dim) if inputs else []
        named = parallel.scatter(kwargs, device_ids, self.dim) if kwargs else []
        used = max(len(places), len(named))
        return (
            (*places, *((),) * (used - len(places))),
            (*named, *({},) * (used - len(named))),
        )

    def replicate(self, module: Any, device_ids: Sequence[Any]) -> list[Any]:
        """Copies of the module, one for each device."""
        return parallel.replicate(module, device_ids)

    def parallel_apply(
        self, replicas: Sequence[Any], inputs: Sequence[Any], kwargs: Any
    ) -> list[Any]:
        """The outputs of all copies."""
        return parallel.parallel_apply(replicas, inputs, kwargs)

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """The outputs as one."""
        return parallel.gather(outputs, output_device, self.dim)
