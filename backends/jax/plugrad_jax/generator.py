"""The random generator of a JAX device: a key of threefry with PyTorch's interface.

The state is one raw key, an array of two uint32. Each draw splits it: one half is the next state,
and the kernel draws from the other one. While a function is traced that has taken the key as an
argument (`plugrad_jax.jit` does) the key is a tracer, and every run of the program continues the
stream. A key that is not a tracer is split while tracing, and becomes a constant of the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import jax
import jax.core
import numpy as np

from plugrad.plugins.generators import SeededGenerator
from plugrad_jax.devices import all_devices
from plugrad_jax.precision import is_tracing

Key = Any

_IMPLEMENTATION: Final = "threefry2x32"


def typed_key(key: Key) -> Any:
    """The key as `jax.random`'s functions take it; for use inside kernels that are compiled."""
    return jax.random.wrap_key_data(key, impl=_IMPLEMENTATION)


@jax.jit
def _split(key: Key) -> tuple[Key, Key]:
    following, drawn = jax.random.key_data(jax.random.split(typed_key(key)))
    return following, drawn


class _TracedState(NamedTuple):
    """The position in a stream with a key that is not known yet."""

    seed: int
    key: Key


class JaxGenerator(SeededGenerator):
    """A stream of random numbers on one device; kernels draw from `next_key()`.

    Attributes:
        key: the state, two uint32 on the device. A traced step takes it as an argument and sets it
            to the step's new key.
    """

    key: Key

    def __init__(self, index: int = 0, seed: int | None = None) -> None:
        self.index = index
        super().__init__(seed)

    def next_key(self) -> Key:
        """A key that was not drawn from yet, raw: see `typed_key`."""
        if is_tracing() and not isinstance(self.key, jax.core.Tracer):
            with jax.core.ensure_compile_time_eval():
                self.key, drawn = _split(self.key)
        else:
            self.key, drawn = _split(self.key)
        return drawn

    def restart(self, seed: int) -> None:
        self._set_key(np.array([seed >> 32, seed & 0xFFFFFFFF], np.uint32))

    def _set_key(self, words: Any) -> None:
        with jax.core.ensure_compile_time_eval():
            # JAX reads the memory later: it gets a copy that is never written to.
            self.key = jax.device_put(np.array(words), all_devices()[self.index])

    def get_state(self) -> Any:
        """The position in the stream as bytes: the seed, then the key. Waits for the device.

        While the key is being traced it has no bytes, and only `set_state` can read the result.
        """
        if isinstance(self.key, jax.core.Tracer):
            return _TracedState(self.started_from, self.key)
        return super().get_state()

    def set_state(self, state: Any) -> None:
        """Go to a position that `get_state` gave; RuntimeError for anything else."""
        if isinstance(state, _TracedState):
            self.started_from, self.key = state
        else:
            super().set_state(state)

    def state_words(self) -> Sequence[int]:
        return [int(np.asarray(self.key).view(np.uint64)[0])]

    def set_state_words(self, seed: int, words: Sequence[int]) -> None:
        self._set_key(np.array(words, np.uint64).view(np.uint32))
