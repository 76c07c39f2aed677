"""local_map: turns a function on the ranks' parts into one on DTensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from plugrad import Tensor
from plugrad_distributed.mesh.device_mesh import DeviceMesh
from plugrad_distributed.tensor.dtensor import DTensor
from plugrad_distributed.tensor.placement import Placement

__all__ = ["local_map"]

Layout = Sequence[Placement] | None


def local_map(
    func: Callable[..., Any] | None = None,
    out_placements: Any = None,
    in_placements: Sequence[Layout] | None = None,
    in_grad_placements: Sequence[Layout] | None = None,
    device_mesh: DeviceMesh | None = None,
    *,
    redistribute_inputs: bool = False,
) -> Any:
    """Turn a function on ranks' tensors into one on DTensors.

    Args:
        func: a function of this rank's parts; without it, `local_map` is a decorator.
        out_placements: a list with the placements of the result; for several results a tuple of
            such lists, with None for results that are not tensors.
        in_placements: the required placements of the arguments, one entry for each; None accepts
            any.
        in_grad_placements: the placements of the parts' gradients.
        device_mesh: the mesh of the results; by default the first DTensor's.
        redistribute_inputs: redistribute arguments to the required placements; otherwise other
            placements are an error.

    Raises:
        ValueError: arguments or results do not fit the placements.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.device_mesh import init_device_mesh
    >>> from plugrad.distributed.tensor import Shard, distribute_tensor
    >>> from plugrad.distributed.tensor.experimental import local_map
    >>> def run():
    ...     x = distribute_tensor(plugrad.arange(4.0), init_device_mesh("cpu", (2,)), [Shard(0)])
    ...     return local_map(lambda part: part.flip(0), [Shard(0)])(x).full_tensor()
    >>> dist.run_ranks(run, 2)[0]
    tensor([1., 0., 3., 2.])
    """
    if func is None:
        return functools.partial(
            local_map,
            out_placements=out_placements,
            in_placements=in_placements,
            in_grad_placements=in_grad_placements,
            device_mesh=device_mesh,
            redistribute_inputs=redistribute_inputs,
        )

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        for what, layouts in (("in", in_placements), ("in_grad", in_grad_placements)):
            if layouts is not None and len(layouts) != len(args):
                raise ValueError(
                    f"local_map: {what}_placements must have an entry for each of the {len(args)} "
                    f"arguments, got {len(layouts)}"
                )
        mesh = device_mesh
        parts: list[Any] = []
        for number, value in enumerate(args):
            if isinstance(value, DTensor):
                mesh = value.device_mesh if mesh is None else mesh
                wanted = None if in_placements is None else in_placements[number]
                grads = None if in_grad_placements is None else in_grad_placements[number]
                parts.append(_part(value, wanted, grads, redistribute_inputs))
            else:
                parts.append(value)
        out = func(*parts, **kwargs)
        if not any(isinstance(value, DTensor) for value in args):
            return out
        return _wrapped(out, out_placements, mesh)

    return mapped


def _part(value: DTensor, wanted: Layout, grads: Layout, redistribute: bool) -> Tensor:
    if wanted is not None and value.placements != tuple(wanted):
        if not redistribute:
            raise ValueError(
                f"local_map: an argument has the placements {value.placements}, but in_placements "
                f"requires {tuple(wanted)}; redistribute_inputs=True redistributes it"
            )
        value = value.redistribute(placements=wanted)
    return value.to_local(grad_placements=grads)


def _wrapped(out: Any, placements: Any, mesh: DeviceMesh | None) -> Any:
    several = isinstance(out, (tuple, list))
    results = list(out) if several else [out]
    layouts = list(placements) if several else [placements]
    if len(results) != len(layouts):
        raise ValueError(
            f"local_map: out_placements must have an entry for each of the {len(results)} results, "
            f"got {len(layouts)}"
        )
    made: list[Any] = []
    for result, layout in zip(results, layouts, strict=True):
        if isinstance(result, Tensor) and layout is not None:
            made.append(DTensor.from_local(result, mesh, layout))
        elif layout is None:
            made.append(result)
        else:
            raise ValueError(
                f"local_map: out_placements must be None for {type(result).__name__}, got {layout}"
            )
    return type(out)(made) if several else made[0]
