"""Fused kernels: operators that are one launch of CUDA C++, or two, instead of a chain.

The sources are in `sources`, one file for each family; the modules here launch them with the
signatures of the CPU backend's kernels. They are compiled by NVRTC on the first launch.

    table = kernels(array_kernels)

gives them by operator. Calls that they do not take, for example on integers or complex numbers, go
to the kernel of that name in `array_kernels`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from plugrad_cuda.fused import (
    convolution,
    embedding,
    loss,
    lu,
    normalization,
    pooling,
    random,
    softmax,
)
from plugrad_cuda.fused.launching import Kernel, Launcher, bind
from plugrad_cuda.fused.runtime import CuPyRuntime, Runtime

__all__ = ["EXPRESSIONS", "LAUNCHERS", "CuPyRuntime", "Runtime", "kernels"]

_MODULES: Final = (softmax, normalization, loss, embedding, pooling, convolution, random, lu)

# By operator. Launchers get the runtime first, then what the CPU backend's kernel gets.
LAUNCHERS: Final[dict[str, Launcher]] = {
    name: launcher for module in _MODULES for name, launcher in module.LAUNCHERS.items()
}

# All kernels that can be launched, as C++ names them, by source file.
EXPRESSIONS: Final[dict[str, tuple[str, ...]]] = {
    source: names for module in _MODULES for source, names in module.EXPRESSIONS.items()
}


def kernels(
    otherwise: Mapping[str, Kernel] | None = None, run: Runtime | None = None
) -> dict[str, Kernel]:
    """The fused kernels by operator.

    Args:
        otherwise: kernels for the dtypes and shapes that the fused ones do not take.
        run: where they run, by default CuPy's current device and stream.

    Raises:
        ImportError: CuPy is not installed, and no `run` is given.
    """
    return bind(CuPyRuntime() if run is None else run, LAUNCHERS, otherwise or {})
