"""A runtime of the fused kernels on NumPy arrays: launches run in the emulation."""

from __future__ import annotations

import ctypes
import mmap
from collections import Counter
from typing import Any

import numpy as np

from plugrad_cuda.fused import EXPRESSIONS
from plugrad_cuda.fused.runtime import MOST_BLOCKS, Array, source_text
from tests.cuda.emulation.build import build

_PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class EmulationError(RuntimeError):
    """What a kernel did that it must not do."""


class _Guarded:
    """A copy of an array with an inaccessible page after its last element.

    In front of it are bytes that must not change, and another inaccessible page.
    """

    def __init__(self, array: Array) -> None:
        self.array = array
        size = max(array.nbytes, 1)
        pages = -(-size // _PAGE)
        self.memory = mmap.mmap(-1, (pages + 2) * _PAGE)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        # Alignment comes first: a 0-dim array of 2 bytes still ends where the page does.
        self.offset = _PAGE + pages * _PAGE - array.nbytes
        self.memory[_PAGE : self.offset] = b"\xa5" * (self.offset - _PAGE)
        self.copy = np.frombuffer(self.memory, array.dtype, array.size, self.offset)
        self.copy[...] = array.reshape(-1)
        for page in (self.base, self.base + (pages + 1) * _PAGE):
            assert _libc.mprotect(page, _PAGE, 0) == 0

    @property
    def address(self) -> int:
        return self.base + self.offset

    def back(self) -> None:
        """Copies into the array what the kernel has written."""
        if self.memory[_PAGE : self.offset].strip(b"\xa5"):
            raise EmulationError("a kernel wrote in front of an array")
        self.array.reshape(-1)[...] = self.copy


class _Namespace:
    """NumPy, but that what `empty` returns holds values that show when they are not written."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def empty(self, shape: Any, dtype: Any) -> Array:
        out = np.empty(shape, dtype)
        # nan in every floating dtype, a large negative number in the others.
        out.reshape(-1).view(np.uint8)[...] = 0xFF
        return out


class Emulation:
    """See `plugrad_cuda.fused.Runtime`.

    Args:
        check: whether indices are looked at before a launch.
        most_blocks: the size that a grid is cut down to, as real ones have one.

    Attributes:
        launched: how often each kernel was launched.
        kernels: those that can be launched, by source.
    """

    def __init__(self, check: bool = False, most_blocks: int = MOST_BLOCKS) -> None:
        self.xp: Any = _Namespace()
        self.check = check
        self.most_blocks = most_blocks
        self.launched: Counter[str] = Counter()
        self.kernels = EXPRESSIONS
        self._libraries: dict[str, ctypes.CDLL] = {}

    def text(self, source: str) -> str:
        return source_text(source)

    def may_wait(self) -> bool:
        return self.check

    def launch(
        self,
        source: str,
        kernel: str,
        grid: int,
        block: tuple[int, int],
        args: tuple[Any, ...],
    ) -> None:
        self.launched[kernel] += 1
        library = self._libraries.get(source)
        if library is None:
            library = build(source, self.text(source), self.kernels[source])
            self._libraries[source] = library
        guarded: dict[int, _Guarded] = {}
        values = [self._packed(a, guarded) for a in args]
        pointers = (ctypes.c_void_p * len(values))(
            *(ctypes.cast(ctypes.pointer(v), ctypes.c_void_p) for v in values)
        )
        number = self.kernels[source].index(kernel)
        grid = min(grid, self.most_blocks)
        if library.launch(number, len(values), grid, *block, pointers):
            raise EmulationError(f"{kernel}: {library.last_message().decode()}")
        for array in guarded.values():
            array.back()

    def _packed(self, value: Any, guarded: dict[int, _Guarded]) -> Any:
        """A value as CuPy would hand it to the driver: 8 bytes of a pointer, int64 or float64."""
        if value is None:
            return ctypes.c_int64(0)
        if isinstance(value, np.ndarray):
            assert value.flags.c_contiguous, "kernels get contiguous arrays"
            key = value.ctypes.data if value.size else id(value)
            if key not in guarded:
                guarded[key] = _Guarded(value)
            return ctypes.c_void_p(guarded[key].address)
        if type(value) is int:
            return ctypes.c_int64(value)
        if type(value) is float:
            return ctypes.c_double(value)
        raise TypeError(f"a kernel gets arrays, int and float, not {value!r}")
