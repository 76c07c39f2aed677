"""The hooks of this plugin, which the entry point `plugrad: distributed` names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from plugrad.plugins import Backend, hookimpl
from plugrad_distributed.operators import formulas, rules
from plugrad_distributed.tensor.backend import ShardedBackend

plugrad_api_version = (1, 0)

OPS = Path(__file__).parent / "operators"


@hookimpl
def plugrad_ops() -> Iterator[Any]:
    """The collectives as operators, then the object that holds their rules."""
    modules: list[ModuleType] = [formulas]
    yield OPS / "collectives.yaml", modules
    yield rules.Rules()


@hookimpl
def plugrad_namespaces() -> dict[str, str]:
    return {
        "distributed": "plugrad_distributed.distributed",
        "futures": "plugrad_distributed.futures",
    }


@hookimpl
def plugrad_kernels() -> dict[str, str]:
    """The modules of the kernels, by backend; each is imported when its backend becomes active."""
    return {
        "cpu": "plugrad_distributed.operators.kernels:CPU",
        "jax": "plugrad_distributed.operators.kernels:JAX",
        "cuda": "plugrad_distributed.operators.kernels:CUDA",
    }


@hookimpl
def plugrad_backends() -> list[type[Backend]]:
    """The backend of DTensors, which have arrays spread over ranks."""
    return [ShardedBackend]


@hookimpl
def plugrad_carriers() -> dict[str, str]:
    """The carriers of arrays between processes."""
    return {
        "alone": "plugrad_distributed.carriers.alone:AloneCarrier",
        "fake": "plugrad_distributed.carriers.threads:ThreadsCarrier",
        "mpi": "plugrad_distributed.carriers.mpi:MPICarrier",
    }


@hookimpl
def plugrad_cli(app: Any) -> None:
    """Adds `plugrad launch`."""
    from plugrad_distributed.launching.command import SETTINGS, launch

    app.command("launch", context_settings=SETTINGS)(launch)
