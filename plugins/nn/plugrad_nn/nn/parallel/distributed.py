"""`DistributedDataParallel` and `_MixedPrecision`, where PyTorch has them. They are in the package
plugrad-distributed."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from plugrad_nn.processes import distributed_package

__all__ = []

if TYPE_CHECKING:
    # Loaded at first use: see `__getattr__`.
    from plugrad_distributed.data_parallel import distributed as _data_parallel
    from plugrad_distributed.data_parallel import mixed_precision as _mixed

    DistributedDataParallel = _data_parallel.DistributedDataParallel
    _MixedPrecision = _mixed._MixedPrecision
    __all__ += ["DistributedDataParallel", "_MixedPrecision"]


def __getattr__(name: str) -> Any:
    if name not in ("DistributedDataParallel", "_MixedPrecision"):
        raise AttributeError(f"module 'plugrad.nn.parallel.distributed' has no attribute {name!r}")
    if distributed_package() is None:
        raise ImportError(
            f"plugrad.nn.parallel.distributed.{name} is in a package of its own: "
            "pip install plugrad-distributed"
        )
    module = importlib.import_module("plugrad_distributed.data_parallel.distributed")
    return getattr(module, name)
