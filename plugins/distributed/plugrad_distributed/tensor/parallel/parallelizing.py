"""parallelize_module: applies a plan of styles by names of submodules."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from fnmatch import fnmatch
from typing import Any

from plugrad_distributed.mesh.device_mesh import DeviceMesh, current_mesh
from plugrad_distributed.tensor.parallel.styles import ParallelStyle

__all__ = ["parallelize_module"]


def parallelize_module(
    module: Any,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | Mapping[str, ParallelStyle] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Any:
    """Make a module tensor parallel, in place, and return it.

    Args:
        device_mesh: a mesh of one dimension, such as ``mesh["tp"]``; by default the mesh of the
            ``with mesh:`` block.
        parallelize_plan: a style for the module, or styles by names of submodules; names may be
            patterns such as ``"layers.*.mlp"``.
        src_data_rank: the rank that provides the parameters; None: each rank uses its own.

    Raises:
        TypeError: the plan is neither a style nor a mapping.
        ValueError: the mesh has several dimensions.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.device_mesh import init_device_mesh
    >>> from plugrad.distributed.tensor.parallel import (
    ...     ColwiseParallel, RowwiseParallel, parallelize_module)
    >>> def run():
    ...     mlp = plugrad.nn.Sequential(plugrad.nn.Linear(4, 8), plugrad.nn.Linear(8, 4))
    ...     mesh = init_device_mesh("cpu", (2,))
    ...     parallelize_module(mlp, mesh, {"0": ColwiseParallel(), "1": RowwiseParallel()})
    ...     return mlp(plugrad.ones(3, 4)).shape, mlp[0].weight.to_local().shape
    >>> dist.run_ranks(run, 2)[0]
    (plugrad.Size([3, 4]), plugrad.Size([4, 4]))
    """
    mesh = current_mesh() if device_mesh is None else device_mesh
    if mesh.ndim != 1:
        raise ValueError(
            f"parallelize_module(): device_mesh must have one dimension, got {mesh!r}; take a part "
            "of it, as in mesh['tp']"
        )
    if parallelize_plan is None:
        warnings.warn(
            "No parallelize_plan is provided and auto-parallel is not supported at the moment, so "
            "this parallelize_module call will do nothing.",
            stacklevel=2,
        )
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, Mapping):
        raise TypeError(
            "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, "
            f"{type(parallelize_plan).__name__} found!"
        )
    for path, style in parallelize_plan.items():
        if not path:
            parallelize_module(module, mesh, style, src_data_rank=src_data_rank)
            continue
        token, _, rest = path.partition(".")
        matching = [child for name, child in module.named_children() if fnmatch(name, token)]
        if not matching:
            warnings.warn(
                f"Parallelize plan key '{path}' could not be resolved: no submodule matching token "
                f"'{token}' in module {module}, skipping this plan entry.",
                stacklevel=2,
            )
        for child in matching:
            plan = {rest: style} if rest else style
            parallelize_module(child, mesh, plan, src_data_rank=src_data_rank)
    return module
