"""Where the fused kernels run: the array library, the compiler of their sources, the launch."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from importlib import resources
from typing import Any, Final, Protocol

Array = Any
# Of a launch: at most this many blocks, the most that a grid may have along x.
MOST_BLOCKS: Final = 2**31 - 1
OPTIONS: Final = ("-std=c++17",)


class Runtime(Protocol):
    """The interface that launchers need. CuPy provides it, and on the host the tests' emulation.

    Attributes:
        xp: the array library; `empty`, `zeros` and `ascontiguousarray` are used.
    """

    @property
    def xp(self) -> Any: ...

    def may_wait(self) -> bool:
        """Whether a launcher may read values, which waits for the device: it checks indices to
        raise PyTorch's IndexError of the CPU. Otherwise an index out of range ends the kernel, like
        PyTorch's assertions on the device.
        """
        ...

    def launch(
        self,
        source: str,
        kernel: str,
        grid: int,
        block: tuple[int, int],
        args: tuple[Any, ...],
    ) -> None:
        """Queues a kernel of a source file on the current stream.

        Args:
            source: the file's name in `sources`, without its ending.
            kernel: the function as C++ writes it, with its template arguments.
            grid: how many blocks; every kernel goes round until all is done, so fewer will do.
            block: threads along x and y.
            args: contiguous arrays, None for a null pointer, int and float.
        """


@functools.cache
def source_text(name: str) -> str:
    """The text of `sources/<name>.cu`, with what it includes."""
    folder = resources.files(__package__) / "sources"
    text = folder.joinpath(f"{name}.cu").read_text("utf-8")
    common = folder.joinpath("common.cuh").read_text("utf-8")
    return text.replace('#include "common.cuh"\n', common)


class CuPyRuntime:
    """Compiles with NVRTC, which CuPy caches on disk, and launches on CuPy's current stream.

    A kernel is compiled when it is launched for the first time, and loaded once on each device:
    before a graph is captured, a step has to run once.

    Args:
        check: whether indices are checked before a launch, which waits for the device, unless a
            graph is being captured. Without it no launch waits.
    """

    def __init__(self, check: bool = False) -> None:
        self.xp: Any = importlib.import_module("cupy")
        self.check = check
        self._kernels: dict[str, Callable[..., None]] = {}

    def may_wait(self) -> bool:
        return self.check and not self.xp.cuda.get_current_stream().is_capturing()

    def launch(
        self,
        source: str,
        kernel: str,
        grid: int,
        block: tuple[int, int],
        args: tuple[Any, ...],
    ) -> None:
        function = self._kernels.get(kernel)
        if function is None:
            function = self._kernels[kernel] = self._compiled(source, kernel)
        # None would be a missing argument to the driver; a pointer is as wide as an int64.
        function((min(grid, MOST_BLOCKS),), block, tuple(0 if a is None else a for a in args))

    def _compiled(self, source: str, kernel: str) -> Callable[..., None]:
        module = self.xp.RawModule(
            code=source_text(source), options=OPTIONS, name_expressions=(kernel,)
        )
        found: Callable[..., None] = module.get_function(kernel)
        return found
