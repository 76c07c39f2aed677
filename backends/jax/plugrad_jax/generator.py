"""The random generator of a JAX device: a key of threefry with PyTorch's interface.

The state is one raw key, an array of two uint32. Each draw splits it: one half is the next state,
the other one is what the kernel draws from. While a function is traced that has taken the key as
an argument (`plugrad_jax.jit` does) the key is a tracer, and every run of the program goes on in
the stream. A key that is no tracer is split while tracing, and becomes a constant of the program.
"""

from __future__ import annotations

import secrets
from typing import Any, Final, NamedTuple

import jax
import jax.core
import numpy as np

from plugrad_jax.devices import all_devices
from plugrad_jax.precision import is_tracing

Key = Any

_WORD: Final = 1 << 64
_IMPLEMENTATION: Final = "threefry2x32"
_STATE_BYTES: Final = 16


def typed_key(key: Key) -> Any:
    """The key as `jax.random`'s functions take it; for use inside of kernels that are compiled."""
    return jax.random.wrap_key_data(key, impl=_IMPLEMENTATION)


@jax.jit
def _split(key: Key) -> tuple[Key, Key]:
    following, drawn = jax.random.key_data(jax.random.split(typed_key(key)))
    return following, drawn


class _TracedState(NamedTuple):
    """The position in a stream whose key is not known yet."""

    seed: int
    key: Key


class JaxGenerator:
    """A stream of random numbers on one device; kernels draw from `next_key()`.

    Attributes:
        key: the state, two uint32 on the device. Whoever traces a step takes it as an argument and
            sets it to what the step has made of it.
    """

    key: Key

    def __init__(self, index: int = 0, seed: int | None = None) -> None:
        self.index = index
        self.manual_seed(secrets.randbits(63) if seed is None else seed)

    def next_key(self) -> Key:
        """A key that was not drawn from yet, raw: see `typed_key`."""
        if is_tracing() and not isinstance(self.key, jax.core.Tracer):
            with jax.core.ensure_compile_time_eval():
                self.key, drawn = _split(self.key)
        else:
            self.key, drawn = _split(self.key)
        return drawn

    def manual_seed(self, seed: int) -> JaxGenerator:
        """Start again from a seed in [-2**63, 2**64); returns the generator.

        Raises RuntimeError for a seed outside.
        """
        number = int(seed)
        if not -(_WORD // 2) <= number < _WORD:
            raise RuntimeError(
                "Overflow when unpacking long long: expected a seed in "
                f"[-0x8000_0000_0000_0000, 0xffff_ffff_ffff_ffff], got {seed}"
            )
        self._seed = number % _WORD
        self._set_key(np.array([self._seed >> 32, self._seed & 0xFFFFFFFF], np.uint32))
        return self

    def _set_key(self, words: Any) -> None:
        with jax.core.ensure_compile_time_eval():
            # JAX reads the memory later: it gets some that nobody else writes to.
            self.key = jax.device_put(np.array(words), all_devices()[self.index])

    def seed(self) -> int:
        """Start again from a seed that the operating system picks; returns it."""
        self.manual_seed(secrets.randbits(63))
        return self._seed

    def initial_seed(self) -> int:
        """The seed the stream started from."""
        return self._seed

    def get_state(self) -> Any:
        """The position in the stream as bytes: the seed, then the key. Waits for the device.

        While the key is being traced it has no bytes, and only `set_state` can read the result.
        """
        if isinstance(self.key, jax.core.Tracer):
            return _TracedState(self._seed, self.key)
        seed = np.array([self._seed], np.uint64).view(np.uint8)
        return np.concatenate([seed, np.asarray(self.key).view(np.uint8)])

    def set_state(self, state: Any) -> None:
        """Go to a position that `get_state` gave; RuntimeError for anything else."""
        if isinstance(state, _TracedState):
            self._seed, self.key = state
            return
        data = np.ascontiguousarray(state)
        if data.dtype != np.uint8 or data.size != _STATE_BYTES:
            raise RuntimeError(
                f"set_state(): expected the {_STATE_BYTES} bytes (uint8) that get_state() "
                f"returns, got {data.size} elements of {data.dtype}"
            )
        flat = data.reshape(-1)
        self._seed = int(flat[:8].view(np.uint64)[0])
        self._set_key(flat[8:].view(np.uint32))
