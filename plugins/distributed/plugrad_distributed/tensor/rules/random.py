"""Random numbers: each rank draws for the whole tensor from the same stream, then keeps its part.
So they equal one process's."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.mesh.device_mesh import DeviceMesh
from plugrad_distributed.tensor.placement import Placements, Shard, local_part
from plugrad_distributed.tensor.spec import Choice, DTensorSpec, Rule

__all__ = [
    "DRAWS",
    "DRAWS_IN_PLACE",
    "FACTORIES",
    "LIKE",
    "RULES",
    "cut",
    "generator_for",
    "laid_out",
    "part",
]

# Operators that take tensors; that draw like a tensor; from sizes; into a tensor.
DRAWS = (
    *("bernoulli", "bernoulli.p", "multinomial"),
    *("normal.Tensor_Tensor", "normal.Tensor_float", "normal.float_Tensor"),
)
LIKE = ("rand_like", "randn_like", "randint_like", "randint_like.low_dtype")
FACTORIES = ("rand", "randn", "randint", "randint.low", "randperm", "normal.float_float")
DRAWS_IN_PLACE = (
    *("uniform_", "normal_", "exponential_", "bernoulli_.float", "bernoulli_.Tensor"),
    *("random_", "random_.to", "random_.from"),
)


def generator_for(mesh: DeviceMesh, given: Any) -> Any:
    """The host's generator that all ranks of a mesh draw from."""
    from plugrad_distributed.tensor.backend import MeshGenerator, host_generator

    if given is None:
        return host_generator(mesh)
    return given.host if isinstance(given, MeshGenerator) else given


def cut(whole: Tensor, mesh: DeviceMesh, placements: Placements) -> Tensor:
    """Write this rank's part of a tensor that every rank has to its local tensor."""
    sizes, offsets = local_part(whole.shape, mesh, placements)
    for dim, (size, offset) in enumerate(zip(sizes, offsets, strict=True)):
        if size != whole.shape[dim]:
            whole = whole.narrow(dim, offset, size)
    return whole


def part(call: Any, whole: Tensor, placements: Placements) -> Tensor:
    """This rank's part of a tensor that every rank has."""
    return cut(whole, call.mesh, placements).contiguous()


def laid_out(whole: Tensor, spec: DTensorSpec) -> Tensor:
    """A whole tensor with the strides of the DTensor: operators that depend on memory order then
    behave as in one process."""
    if tuple(whole.stride()) == spec.steps and whole.storage_offset() == 0:
        return whole
    last = sum((size - 1) * step for size, step in zip(spec.shape, spec.steps, strict=True))
    if 0 <= last < spec.numel() - 1:
        # Elements share memory, so each location is written several times, with the same number.
        places = plugrad.arange(last + 1, device=whole.device)
        places = places.as_strided(spec.shape, spec.steps).reshape(-1)
        memory = whole.new_empty(last + 1).index_copy(0, places, whole.reshape(-1))
        shared: Tensor = memory.as_strided(spec.shape, spec.steps)
        return shared
    found: Tensor = plugrad.empty_strided(spec.shape, spec.steps, dtype=whole.dtype)
    return found.to(whole.device).copy_(whole)


def _on_host(call: Any, args: list[Any]) -> Any:
    """The operator on the host, with the mesh's generator."""
    names = [argument.name for argument in call.op.schema.arguments]
    given = []
    for name, value, spec in zip(names, args, call.args, strict=True):
        if name == "generator":
            value = generator_for(call.mesh, value)
        elif name == "device":
            value = plugrad.device("cpu")
        elif isinstance(value, Tensor):
            value = laid_out(value, spec).cpu()
        given.append(value)
    return call.op.call(tuple(given)).to(call.mesh.device_type)


def _alike(*args: Any) -> list[Choice]:
    """The result has its model's placement."""
    return [([Shard(dim)], [Shard(dim), *[None] * (len(args) - 1)]) for dim in range(args[0].ndim)]


def _draw_alike(call: Any, args: list[Any]) -> Tensor:
    """Only shape, strides and dtype of a model matter."""
    spec = call.args[0]
    model = plugrad.empty_strided(spec.shape, spec.steps, dtype=spec.dtype)
    return part(call, _on_host(call, [model, *args[1:]]), call.plan.outputs[0])


RULES: dict[str, Rule] = {
    **{name: Rule(lambda *args: (), _on_host) for name in (*DRAWS, *FACTORIES)},
    **{name: Rule(_alike, _draw_alike) for name in LIKE},
}
