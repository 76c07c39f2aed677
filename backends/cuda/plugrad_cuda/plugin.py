"""The hooks that plugrad finds through the entry point. CuPy is imported when a device is
requested."""

from __future__ import annotations

from plugrad.plugins import Backend, hookimpl


@hookimpl
def plugrad_backends() -> list[type[Backend]]:
    from plugrad_cuda.backend import CudaBackend

    return [CudaBackend]


@hookimpl
def plugrad_namespaces() -> dict[str, str]:
    return {"cuda": "plugrad_cuda.cuda"}


@hookimpl
def plugrad_carriers() -> dict[str, str]:
    """The carriers of arrays between GPUs, for plugrad-distributed."""
    return {"nccl": "plugrad_cuda.collectives.carrier:NCCLCarrier"}
