"""MPI on GPU memory, where the library supports it: then arrays are not copied to the host and
back."""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
from collections.abc import Iterable
from typing import Any

__all__ = ["AfterStreams", "is_cuda_aware"]

SETTING = "PLUGRAD_DISTRIBUTED_CUDA_AWARE"


def is_cuda_aware(mpi: Any) -> bool:
    """Whether MPI accepts pointers to GPU memory: the value of `PLUGRAD_DISTRIBUTED_CUDA_AWARE`, 0
    or 1, else the library's answer, by the query function of MPICH and Open MPI.

    Args:
        mpi: the module `mpi4py.MPI`.

    Raises:
        ValueError: the setting is neither 0 nor 1.
    """
    setting = os.environ.get(SETTING, "")
    if setting in ("0", "1"):
        return setting == "1"
    if setting:
        raise ValueError(f"{SETTING} must be 0 or 1, got {setting!r}")
    try:
        query = ctypes.CDLL(mpi.__file__).MPIX_Query_cuda_support
    except (OSError, AttributeError):
        return False
    query.restype = ctypes.c_int
    return bool(query())


class AfterStreams:
    """A communicator that waits for a GPU's stream before MPI reads or writes the memory, because
    MPI does not support streams.

    Args:
        comm: mpi4py's communicator.
    """

    def __init__(self, comm: Any) -> None:
        self._comm = comm

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._comm, name)
        # Operations on memory: Isend, Iallreduce and so on.
        if not name.startswith("I"):
            return found

        @functools.wraps(found)
        def call(*arguments: Any) -> Any:
            _settle(arguments)
            return found(*arguments)

        # Stored, so that the next access does not look it up.
        setattr(self, name, call)
        return call


def _settle(arguments: Iterable[Any]) -> None:
    """Wait for the current stream of each array's GPU."""
    for value in arguments:
        if isinstance(value, list | tuple):
            _settle(value)
        elif hasattr(value, "__cuda_array_interface__"):
            cuda = importlib.import_module("cupy").cuda
            cuda.get_current_stream(value.device.id).synchronize()
