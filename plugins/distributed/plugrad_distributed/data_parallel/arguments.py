"""Checks of the arguments of DistributedDataParallel."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from plugrad import Tensor
from plugrad_distributed.data_parallel.buckets import FIRST_BUCKET_BYTES, GradBucket
from plugrad_distributed.data_parallel.mixed_precision import _MixedPrecision
from plugrad_distributed.distributed.queries import get_group
from plugrad_distributed.groups.process_group import ProcessGroup
from plugrad_nn.nn.modules.uninitialized import UninitializedParameter

__all__ = [
    "bucket_limits",
    "check_comm_hook",
    "check_mixed_precision",
    "check_parameters",
    "checked_delays",
    "group_of",
]

DEFAULT_BUCKET_MB = 25


def checked_delays(named: Any, trigger: Any) -> list[tuple[str, Tensor]]:
    """The arguments `delay_all_reduce_named_params` and `param_to_hook_all_reduce`; a list of the
    former, empty without it."""
    if (named is None) != (trigger is None):
        raise ValueError(
            "delay_all_reduce_named_params and param_to_hook_all_reduce need to be set at the same "
            "time."
        )
    if trigger is not None and not (isinstance(trigger, Tensor) and trigger.requires_grad):
        raise ValueError(
            "DistributedDataParallel: param_to_hook_all_reduce must be a parameter that requires "
            f"grad, got {trigger!r}"
        )
    return [(str(name), parameter) for name, parameter in named or ()]


def group_of(process_group: Any, device_mesh: Any) -> ProcessGroup:
    if process_group is not None and device_mesh is not None:
        raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
    if device_mesh is not None:
        if device_mesh.ndim != 1:
            raise RuntimeError(f"Only 1D device mesh is supported, but got {device_mesh}.")
        process_group = device_mesh.get_group(mesh_dim=0)
    found = get_group(process_group, "DistributedDataParallel")
    if found is None:
        raise ValueError("DistributedDataParallel: this rank is not part of process_group")
    return found


def check_parameters(own: Sequence[Tensor]) -> None:
    if not any(p.requires_grad for p in own):
        raise RuntimeError(
            "DistributedDataParallel is not needed when a module doesn't have any parameter that "
            "requires a gradient."
        )
    if any(isinstance(p, UninitializedParameter) for p in own):
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DistributedDataParallel`. "
            "Run a dummy forward pass to correctly initialize the modules"
        )


def bucket_limits(cap: float | None, caps: Sequence[float] | None) -> list[int]:
    """The bytes after which buckets are full, from the arguments."""
    last = int((DEFAULT_BUCKET_MB if cap is None else cap) * (1 << 20))
    if caps is not None:
        return [*(int(each * (1 << 20)) for each in caps), last]
    return [FIRST_BUCKET_BYTES, last] if cap is None else [last]


def check_mixed_precision(value: Any) -> None:
    """Raise unless it is None or a `_MixedPrecision`."""
    if not isinstance(value, _MixedPrecision | None):
        raise TypeError(
            "DistributedDataParallel: mixed_precision must be a _MixedPrecision of "
            f"plugrad.nn.parallel.distributed, got {type(value).__name__}"
        )


def check_comm_hook(hook: Any) -> None:
    if not callable(hook):
        raise TypeError("Communication hook must be callable.")
    signature = inspect.signature(hook)
    bucket = signature.parameters.get("bucket")
    annotation = GradBucket if bucket is None else bucket.annotation
    # A string annotation may be an alias.
    if annotation not in (GradBucket, inspect.Parameter.empty) and not isinstance(annotation, str):
        raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
