"""The shared library of oneDNN: where it is, how it is opened, and how many threads it uses.

It is opened at the first large call: it is 50 MB, and most programs have only small arrays. Where
it is missing, every variant gives that as its reason, and the plain kernels compute.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.metadata
import os
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from plugrad.plugins import get_manager

# The major version of the interface that this package uses.
NAME: Final = "libdnnl.so.3"
# Packages on PyPI that contain the library, the one that uses GNU OpenMP first.
PACKAGES: Final = ("onednn-cpu-gomp", "onednn")

_MISSING: Final = (
    f"{NAME} of oneDNN is not installed: `pip install onednn-cpu-gomp` on Linux with x86-64, or "
    "the system's package of oneDNN 3"
)
# What oneDNN says of processors that have instructions for bfloat16.
_BFLOAT16: Final = 0x80
# The variables by which the user may have configured waiting threads.
_WAITING: Final = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")


class NotHere(Exception):
    """The library cannot be used; the message says why, and how to fix it."""


class Library:
    """The functions of oneDNN.

    Attributes:
        call: slow functions, called without Python's lock.
        quick: the same for functions that only set something, called with the lock held.
        engine: the handle of the CPU.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.call: Any = ctypes.CDLL(path)
        self.quick: Any = ctypes.PyDLL(path)
        self.engine = ctypes.c_void_p()
        if self.call.dnnl_engine_create(ctypes.byref(self.engine), 1, ctypes.c_size_t(0)):
            raise NotHere(f"{path}: oneDNN makes no engine for the CPU")
        # The functions of the OpenMP that it was linked with; without OpenMP there is one thread.
        self.set_threads: Any = getattr(self.quick, "omp_set_num_threads", None)


class _State(threading.local):
    """The number last given to OpenMP, which stores it per thread."""

    threads = 0


class _Process:
    """Whether this process is a fork: GNU OpenMP has no threads in forked processes."""

    forked = False


_state: Final = _State()
_process: Final = _Process()


def _forked() -> None:
    _process.forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def paths() -> Iterator[str]:
    """Where the library may be, the best place first."""
    for package in PACKAGES:
        try:
            files = importlib.metadata.files(package) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in files:
            path = Path(str(file.locate())).resolve()
            if path.name == NAME and path.exists():
                yield str(path)
    if ctypes.util.find_library("dnnl") is not None:
        yield NAME


@cache
def opened() -> Library:
    """The library.

    Raises:
        NotHere: there is none, or it cannot be opened.
    """
    found = next(paths(), None)
    if found is None:
        raise NotHere(_MISSING)
    # OpenMP threads that wait for work must not spin and block others such as BLAS: that takes ten
    # times as long on a busy machine. OpenMP reads this when it is loaded.
    passive = not any(name in os.environ for name in _WAITING)
    if passive:
        os.environ[_WAITING[0]] = "passive"
    try:
        return Library(found)
    except OSError as error:
        raise NotHere(f"{found} cannot be opened: {error}") from error
    finally:
        if passive:
            del os.environ[_WAITING[0]]


@cache
def problem() -> str:
    """Why the library cannot be used; empty if it can."""
    try:
        opened()
    except NotHere as error:
        return str(error)
    return ""


@cache
def problem_of_bfloat16() -> str:
    """Why products of bfloat16 cannot be computed; empty if they can."""
    if problem():
        return problem()
    if not opened().quick.dnnl_get_effective_cpu_isa() & _BFLOAT16:
        return "the processor has no instructions for bfloat16"
    return ""


@cache
def _allowed() -> Callable[[], int]:
    return get_manager().backend("cpu").num_threads


def use_threads(library: Library, shared: bool) -> int:
    """Make the calling thread use as many threads as `plugrad.set_num_threads` allows, or one if
    the work is not shared. Returns their number."""
    alone = library.set_threads is None or _process.forked or not shared
    count = 1 if alone else _allowed()()
    if _state.threads != count and library.set_threads is not None:
        library.set_threads(count)
        _state.threads = count
    return count
