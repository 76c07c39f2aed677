"""The random generator of the CPU: the Mersenne Twister, with PyTorch's seeds and states.

The same seed gives the same numbers as PyTorch on the CPU, and a state of one is a state of the
other. NumPy has the same twister; this module reads it as PyTorch does.

Source: Matsumoto and Nishimura, Mersenne Twister, ACM TOMACS 8 (1998).
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Generator
from typing import Any, Final, Self

import numpy as np

import plugrad
from plugrad.plugins.generators import SeededGenerator
from plugrad_cpu.compiled import loops_for

Array = np.ndarray[Any, Any]

# How many words the twister makes at once.
BLOCK: Final = 624

# From here on NumPy's bounded integers are faster than its raw words.
_MANY: Final = 4096

# PyTorch's state: what `CPUGeneratorImpl` writes, in the layout that C gives it.
STATE: Final = np.dtype(
    {
        "names": [
            "seed", "left", "seeded", "next", "key",
            "double", "has_double", "float", "has_float",
        ],
        "formats": ["u8", "i4", "i4", "u8", ("u8", BLOCK), "f8", "i4", "f4", "u1"],
        "offsets": [0, 8, 12, 16, 24, 5024, 5040, 5048, 5052],
        "itemsize": 5056,
    }
)  # fmt: skip

# How many numbers are made at once: they fit into the cache.
_CHUNK: Final = 1 << 15

_UNIT_FLOAT: Final = np.float32(2.0**-24)
_UNIT_DOUBLE: Final = 2.0**-53


class CpuGenerator(SeededGenerator):
    """A stream of words of 32 bits; kernels read numbers from it.

    Attributes:
        next_double: the second of the last pair of normal numbers, if it is still unused.
    """

    def __init__(self, seed: int | None = None) -> None:
        self.next_double: float | None = None
        self._next_float: float | None = None
        self._bits = np.random.MT19937(0)
        self._source = np.random.RandomState(self._bits)
        # The number of words taken from the twister's block, and the ones among them that are still
        # unused.
        self._taken = BLOCK
        self._unread: Array | None = None
        self._fresh = True
        super().__init__(seed)

    def restart(self, seed: int) -> None:
        self._source.seed(seed & 0xFFFFFFFF)
        self._taken = BLOCK
        self._unread = None
        self._fresh = True
        self.next_double = self._next_float = None

    def fill(self, loop: str, out: Array, *arguments: object) -> bool:
        """Fill an array with a loop of `compiled.random`; returns False if NumPy must do it.

        `out` is contiguous and has a dtype that numba supports.
        """
        random = loops_for("random", out.size)
        if random is None:
            return False
        self.run(getattr(random, loop), out, *arguments)
        return True

    def run(self, loop: Callable[..., int], out: Array, *arguments: object) -> None:
        """Fill an array of any length by a loop of `compiled.random`."""
        if not out.size:
            return
        # Other threads run meanwhile, and may draw.
        with self._bits.lock:
            state: Any = self._bits.state
            inner = state["state"]
            # Unread words are the last ones of those that were taken from the block.
            position = self._taken - (0 if self._unread is None else len(self._unread))
            inner["pos"] = loop(inner["key"], position, out, *arguments)
            self._bits.state = state
            self._taken, self._unread, self._fresh = inner["pos"], None, False

    def _take(self, count: int) -> Array:
        """Words of the twister as uint32 or uint64."""
        self._fresh = False
        self._taken = (self._taken + count - 1) % BLOCK + 1
        if count < _MANY:
            words: Array = self._bits.random_raw(count)
            return words
        return self._source.randint(0, 1 << 32, count, np.uint32)

    def words(self, count: int) -> Array:
        """The next words, as uint32, in memory that may be written to."""
        if loops_for("random", count) is not None:
            made = np.empty(count, np.uint32)
            self.fill("words", made)
            return made
        unread = self._unread
        if unread is None:
            return self._take(count).astype(np.uint32, copy=False) if count else np.empty(0, "u4")
        if count < len(unread):
            self._unread = unread[count:]
            return unread[:count].copy()
        self._unread = None
        return np.concatenate([unread, self.words(count - len(unread))])

    def long_words(self, count: int) -> Array:
        """The next words of 64 bits: each combines two words, the high one first."""
        words = self.words(2 * count)
        if sys.byteorder == "little":
            # The halves in the other order: exchanged, with no strides.
            long = words.view(np.uint64)
            low = long >> np.uint64(32)
            long <<= np.uint64(32)
            long |= low
            return long
        return words.view(np.uint64)

    def floats(self, count: int) -> Array:
        """Multiples of 2**-24 in [0, 1), as float32."""
        drawn = np.empty(count, np.float32)
        if self.fill("floats", drawn):
            return drawn
        for start in range(0, count, _CHUNK):
            part = drawn[start : start + _CHUNK]
            words = self.words(part.size)
            words &= np.uint32(0xFFFFFF)
            # As integers with a sign, which processors convert faster.
            np.copyto(part, words.view(np.int32), casting="same_kind")
            part *= _UNIT_FLOAT
        return drawn

    def doubles(self, count: int) -> Array:
        """Multiples of 2**-53 in [0, 1)."""
        drawn = np.empty(count)
        if self.fill("doubles", drawn):
            return drawn
        for start in range(0, count, _CHUNK):
            part = drawn[start : start + _CHUNK]
            long = self.long_words(part.size)
            long &= np.uint64((1 << 53) - 1)
            np.copyto(part, long.view(np.int64), casting="same_kind")
            part *= _UNIT_DOUBLE
        return drawn

    def one_by_one(self) -> Generator[float, None, None]:
        """The same numbers as `doubles`, for an unknown number of them; call `close` on the
        iterator after the last one."""
        while True:
            ahead = self.doubles_ahead()
            used = 0
            try:
                for number in ahead:
                    used += 1
                    yield number
            finally:
                self.give_back(len(ahead) - used)

    def doubles_ahead(self) -> list[float]:
        """The doubles that the block has left, or one of this block and the next one."""
        ahead = len(self._unread) if self._unread is not None else BLOCK - self._taken % BLOCK
        words = self.words(max(ahead // 2, 1) * 2)
        self._ahead = words
        long = (words[::2].astype(np.uint64) << np.uint64(32)) | words[1::2]
        drawn: list[float] = ((long & np.uint64((1 << 53) - 1)) * _UNIT_DOUBLE).tolist()
        return drawn

    def give_back(self, count: int) -> None:
        """Let the last numbers of `doubles_ahead` be read again."""
        if count:
            back = self._ahead[len(self._ahead) - 2 * count :]
            self._unread = back if self._unread is None else np.concatenate([back, self._unread])

    def get_state(self) -> Any:
        """PyTorch's bytes of a state, as a tensor."""
        state = np.zeros((), STATE)
        if self._fresh:
            following, left = 0, 1
        else:
            following = self._taken - (0 if self._unread is None else len(self._unread))
            left = BLOCK + 1 - following
        inner: Any = self._bits.state
        state["seed"] = self.started_from
        state["left"] = left
        state["seeded"] = 1
        state["next"] = following
        state["key"] = inner["state"]["key"]
        if self.next_double is not None:
            state["double"], state["has_double"] = self.next_double, 1
        if self._next_float is not None:
            state["float"], state["has_float"] = self._next_float, 1
        return plugrad.from_numpy(np.frombuffer(state.tobytes(), np.uint8).copy())

    def set_state(self, state: Any) -> None:
        """Go to a position that `get_state` gave, or PyTorch's `Generator.get_state`.

        Raises TypeError unless it is bytes (uint8), RuntimeError if it is not a state.
        """
        data = np.asarray(state)
        if data.dtype != np.uint8:
            raise TypeError(f"RNG state must be a torch.ByteTensor, got {data.dtype}")
        if data.size != STATE.itemsize:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {STATE.itemsize} but found the input "
                f"RNG state size to be {data.size}"
            )
        found = np.frombuffer(data.tobytes(), STATE)[0]
        left, following = int(found["left"]), int(found["next"])
        if found["seeded"] != 1 or not 0 < left <= BLOCK or following > BLOCK:
            raise RuntimeError("Invalid mt19937 state")
        self._fresh = left == 1 and following == 0
        self._taken = BLOCK if left == 1 else following
        self._unread = None
        self._bits.state = {
            "bit_generator": "MT19937",
            "state": {"key": found["key"].astype(np.uint32), "pos": self._taken},
        }
        self.started_from = int(found["seed"])
        self.next_double = float(found["double"]) if found["has_double"] else None
        self._next_float = float(found["float"]) if found["has_float"] else None

    def clone_state(self) -> Self:
        """A generator that goes on from here by itself."""
        made = type(self)(0)
        made.set_state(self.get_state())
        for name, value in vars(self).items():
            if name not in vars(made):
                setattr(made, name, copy.copy(value))
        return made

    def get_offset(self) -> int:
        """Only generators that count have an offset: RuntimeError."""
        raise RuntimeError("CPU Generator does not use offset")

    def set_offset(self, offset: int) -> None:
        """Only generators that count have an offset: RuntimeError."""
        if not isinstance(offset, int):
            raise RuntimeError(f"manual_offset expected a long, but got {type(offset).__name__}")
        raise RuntimeError("CPU Generator does not use offset")
