"""Random numbers, as in `torch.random`: seeds, states, and generators.

>>> import plugrad
>>> generator = plugrad.Generator().manual_seed(7)
>>> isinstance(generator, plugrad.Generator), generator.initial_seed()
(True, 7)
"""

from __future__ import annotations

# Interpreted: a metaclass decides what a generator is.
from typing import Any

from plugrad.dispatch.backends.active import canonical_device, find_backend
from plugrad.tensor.creation.random import (
    default_generator,
    fork_rng,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
    use_host_numbers,
)

__all__ = [
    "Generator", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed",
    "seed", "set_rng_state", "use_host_numbers",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)


class _GeneratorType(type):
    """Counts every backend's generators among the instances of `Generator`."""

    def __instancecheck__(cls, instance: object) -> bool:
        from plugrad.plugins.protocols import Generator as GeneratorProtocol

        # A module such as `plugrad.random` has the functions, too.
        return isinstance(instance, GeneratorProtocol) and hasattr(instance, "device")


class Generator(metaclass=_GeneratorType):
    """A stream of random numbers on one device, to be passed as ``generator=``.

    It is an object of the device's backend, with the methods ``manual_seed(seed)``, ``seed()``,
    ``initial_seed()``, ``get_state()`` and ``set_state(state)``, and the attribute ``device``.

    Args:
        device: where its numbers are drawn; the host by default.

    Raises:
        RuntimeError: there is no such device.

    >>> import plugrad
    >>> a = plugrad.rand(2, generator=plugrad.Generator().manual_seed(1))
    >>> b = plugrad.rand(2, generator=plugrad.Generator("cpu").manual_seed(1))
    >>> plugrad.equal(a, b)
    True
    """

    __module__ = "plugrad"
    device: Any

    def __new__(cls, device: object = "cpu") -> Any:
        """A new generator, seeded by the operating system."""
        place = canonical_device(device)
        return find_backend(place.type).new_generator(place.index or 0)

    def manual_seed(self, seed: int) -> Generator:
        """Start again from a seed in [-2**63, 2**64); returns the generator.

        >>> import plugrad
        >>> plugrad.Generator().manual_seed(7).initial_seed()
        7
        """
        raise NotImplementedError

    def seed(self) -> int:
        """Start again from a seed that the operating system picks; returns it.

        >>> import plugrad
        >>> generator = plugrad.Generator()
        >>> generator.seed() == generator.initial_seed()
        True
        """
        raise NotImplementedError

    def initial_seed(self) -> int:
        """The seed that the stream started from.

        >>> import plugrad
        >>> generator = plugrad.Generator().manual_seed(7)
        >>> _ = plugrad.rand(3, generator=generator)
        >>> generator.initial_seed()
        7
        """
        raise NotImplementedError

    def get_state(self) -> Any:
        """The state, as bytes (uint8) in host memory.

        >>> import plugrad
        >>> plugrad.Generator().get_state().dtype
        plugrad.uint8
        """
        raise NotImplementedError

    def set_state(self, new_state: Any) -> None:
        """Go on from a state that `get_state` returned.

        >>> import plugrad
        >>> generator = plugrad.Generator()
        >>> state = generator.get_state()
        >>> first = plugrad.rand(3, generator=generator)
        >>> _ = generator.set_state(state)
        >>> plugrad.equal(plugrad.rand(3, generator=generator), first)
        True
        """
        raise NotImplementedError
