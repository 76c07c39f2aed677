"""Imports CuPy when a GPU is first used, and reports why no GPU can be used."""

from __future__ import annotations

import functools
import importlib
import os
from typing import Any, Final

# The driver and the runtime count as cudaDriverGetVersion does: 12090 is CUDA 12.9.
_THOUSAND: Final = 1000


@functools.cache
def cupy() -> Any:
    """The module; ImportError if it is not installed, or its libraries are not."""
    return importlib.import_module("cupy")


@functools.cache
def _counted() -> int:
    count: int = cupy().cuda.runtime.getDeviceCount()
    return count


def device_count() -> int:
    """How many GPUs can be used; 0 if there is a `problem`. Never raises."""
    try:
        return _counted()  # cached only on success: a driver may be installed later
    except Exception:  # no CuPy, or CUDA's error for no driver and for no device
        return 0


def problem() -> str | None:
    """Why no GPU can be used, and the command that fixes it; None if one can."""
    if device_count():
        return None
    try:
        runtime = cupy().cuda.runtime
    except ModuleNotFoundError:
        return (
            "CuPy is not installed: pip install 'plugrad-cuda[cuda12x]' or "
            "'plugrad-cuda[cuda13x]', whichever CUDA `nvidia-smi` shows"
        )
    except ImportError as error:
        return f"CuPy cannot be imported ({error}): python -c 'import cupy' shows where"
    driver, wanted = int(runtime.driverGetVersion()), int(runtime.runtimeGetVersion())
    if driver == 0:
        return "driver not found: install NVIDIA's driver; `nvidia-smi` shows whether it works"
    if driver // _THOUSAND < wanted // _THOUSAND:
        return (
            f"the driver is for CUDA {_version(driver)}, CuPy for {_version(wanted)}: update the "
            f"driver, or pip install cupy-cuda{driver // _THOUSAND}x"
        )
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None:
        return f"no GPU is visible: CUDA_VISIBLE_DEVICES is {hidden!r}; unset it"
    return "no GPU was found, though there is a driver: `nvidia-smi` lists what it sees"


def require() -> Any:
    """CuPy, where there is a GPU to use it on; RuntimeError with `problem` where not."""
    why = problem()
    if why is not None:
        raise RuntimeError(f"backend 'cuda' has no device: {why}")
    return cupy()


def facts() -> dict[str, str]:
    """Versions and devices, as far as they can be determined."""
    try:
        module = cupy()
    except ImportError:
        return {}
    runtime = module.cuda.runtime
    driver = int(runtime.driverGetVersion())
    found = {
        "CuPy": module.__version__,
        "CUDA runtime": _version(int(runtime.runtimeGetVersion())),
        "driver": f"for CUDA {_version(driver)}" if driver else "none",
    }
    for index in range(device_count()):
        properties = runtime.getDeviceProperties(index)
        gib = properties["totalGlobalMem"] / 2**30
        capability = f"{properties['major']}.{properties['minor']}"
        found[f"cuda:{index}"] = f"{name_of(properties)}, {gib:.0f} GiB, capability {capability}"
    return found


def name_of(properties: Any) -> str:
    """The name among a device's properties."""
    name = properties["name"]
    return name.decode() if isinstance(name, bytes) else str(name)


def _version(number: int) -> str:
    return f"{number // _THOUSAND}.{number % _THOUSAND // 10}"
