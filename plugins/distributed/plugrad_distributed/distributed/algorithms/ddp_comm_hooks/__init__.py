"""Communication hooks for `DistributedDataParallel.register_comm_hook`, and a table of them.

>>> import plugrad, plugrad.distributed as dist
>>> from plugrad.distributed.algorithms import ddp_comm_hooks
>>> def program():
...     net = plugrad.nn.parallel.DistributedDataParallel(plugrad.nn.Linear(1, 1))
...     kind = ddp_comm_hooks.DDPCommHookType.BF16_COMPRESS
...     ddp_comm_hooks.register_ddp_comm_hook(kind, net)
...     net(plugrad.ones(1, 1)).sum().backward()
...     return net.module.bias.grad
>>> dist.run_ranks(program, 2)[0]
tensor([1.])
"""

from __future__ import annotations

import enum
from functools import partial
from typing import Any

from plugrad_distributed.distributed.algorithms.ddp_comm_hooks import (
    ddp_zero_hook,
    debugging_hooks,
    default_hooks,
    post_localSGD_hook,
    powerSGD_hook,
)

__all__ = [
    "DDPCommHookType",
    "ddp_zero_hook",
    "debugging_hooks",
    "default_hooks",
    "post_localSGD_hook",
    "powerSGD_hook",
    "register_ddp_comm_hook",
]


def _register(hook: Any, model: Any, state: Any) -> None:
    model.register_comm_hook(state, hook)


def _register_power_sgd(hook: Any, rank: int, model: Any, state: Any) -> None:
    made = powerSGD_hook.PowerSGDState(state, matrix_approximation_rank=rank)
    model.register_comm_hook(made, hook)


class _Kind:
    """The function that registers a hook: `value(model=..., state=...)`."""

    def __init__(self, function: partial[None]) -> None:
        self._function = function

    def __call__(self, model: Any, state: Any = None) -> None:
        self._function(model=model, state=state)


class DDPCommHookType(enum.Enum):
    """The hooks by name; the state of each is a group of ranks or None.

    >>> from plugrad.distributed.algorithms.ddp_comm_hooks import DDPCommHookType
    >>> [kind.name for kind in DDPCommHookType][:3]
    ['ALLREDUCE', 'FP16_COMPRESS', 'BF16_COMPRESS']
    """

    ALLREDUCE = _Kind(partial(_register, default_hooks.allreduce_hook))
    FP16_COMPRESS = _Kind(partial(_register, default_hooks.fp16_compress_hook))
    BF16_COMPRESS = _Kind(partial(_register, default_hooks.bf16_compress_hook))
    POWER_SGD = _Kind(partial(_register_power_sgd, powerSGD_hook.powerSGD_hook, 1))
    POWER_SGD_RANK2 = _Kind(partial(_register_power_sgd, powerSGD_hook.powerSGD_hook, 2))
    BATCHED_POWER_SGD = _Kind(partial(_register_power_sgd, powerSGD_hook.batched_powerSGD_hook, 1))
    BATCHED_POWER_SGD_RANK2 = _Kind(
        partial(_register_power_sgd, powerSGD_hook.batched_powerSGD_hook, 2)
    )
    NOOP = _Kind(partial(_register, debugging_hooks.noop_hook))


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Register a hook of the table on a `DistributedDataParallel`.

    Args:
        state: a group of ranks, or None for all.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.algorithms.ddp_comm_hooks import (
    ...     DDPCommHookType,
    ...     register_ddp_comm_hook,
    ... )
    >>> def program():
    ...     net = plugrad.nn.parallel.DistributedDataParallel(plugrad.nn.Linear(1, 1))
    ...     register_ddp_comm_hook(DDPCommHookType.FP16_COMPRESS, net)
    ...     net(plugrad.ones(1, 1) * dist.get_rank()).sum().backward()
    ...     return net.module.weight.grad
    >>> dist.run_ranks(program, 2)[0]
    tensor([[0.5000]])
    """
    comm_hook_type.value(model=model, state=state)
