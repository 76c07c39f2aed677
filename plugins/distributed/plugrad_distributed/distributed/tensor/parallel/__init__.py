"""`plugrad.distributed.tensor.parallel`: tensor parallel modules, under the names of
`torch.distributed.tensor.parallel`."""

from __future__ import annotations

from plugrad_distributed.tensor.parallel.loss import loss_parallel
from plugrad_distributed.tensor.parallel.parallelizing import parallelize_module
from plugrad_distributed.tensor.parallel.preparing import (
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
)
from plugrad_distributed.tensor.parallel.styles import (
    ColwiseParallel,
    ParallelStyle,
    RowwiseParallel,
    SequenceParallel,
)

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
    "loss_parallel",
    "parallelize_module",
]
