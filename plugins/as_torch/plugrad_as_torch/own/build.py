"""`torch.__config__` and `torch.utils.collect_env`: descriptions of the installation."""

from __future__ import annotations

import importlib.metadata
import platform
import sys

import plugrad
from plugrad_as_torch.layout import TORCH_VERSION
from plugrad_as_torch.own.threads import get_num_interop_threads

__all__ = ["get_pretty_env_info", "main", "parallel_info", "show"]


def show() -> str:
    """How PyTorch was built; here, the versions of plugrad and Python in its place.

    >>> show().splitlines()[0]
    'plugrad built with:'
    """
    # Programs look for USE_MKL and the like; all are off.
    lines = [
        "plugrad built with:",
        f"  - plugrad {plugrad.__version__}, names of PyTorch {TORCH_VERSION}",
        f"  - Python {platform.python_version()}",
        "  - Build settings: USE_CUDA=OFF, USE_MKL=OFF, USE_MKLDNN=OFF, USE_OPENMP=OFF",
    ]
    return "\n".join(lines) + "\n"


def parallel_info() -> str:
    """How many threads compute."""
    return (
        f"get_num_threads() : {plugrad.get_num_threads()}\n"
        f"get_num_interop_threads() : {get_num_interop_threads()}\n"
    )


def get_pretty_env_info() -> str:
    """A description of this machine for bug reports."""
    lines = [
        f"plugrad version: {plugrad.__version__} (names of PyTorch {TORCH_VERSION})",
        f"Is CUDA available: {plugrad.cuda.is_available()}",
        f"OS: {platform.platform()}",
        f"Python version: {sys.version}",
        f"CPU: {platform.processor() or platform.machine()}",
        "Versions of relevant libraries:",
    ]
    found = {each.metadata["Name"]: each.version for each in importlib.metadata.distributions()}
    wanted = ("numpy", "scipy", "numba", "jax", "cupy")
    names = sorted(name for name in found if name and name.lower().startswith(("plugrad", *wanted)))
    return "\n".join([*lines, *(f"[pip3] {name}=={found[name]}" for name in names)])


def main() -> None:
    """Print `get_pretty_env_info()`."""
    print(get_pretty_env_info())
