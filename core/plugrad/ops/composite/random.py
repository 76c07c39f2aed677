"""Random numbers for backends that cannot draw them: drawn on the CPU by its generator, and copied.

The same seed gives the same numbers as on the CPU. A `generator=` argument must be a CPU generator.
"""

# Operators with several overloads are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.device import CPU, Device
from plugrad.dispatch.backends.active import canonical_device, find_backend, generator_of
from plugrad.dispatch.local_state import current_state
from plugrad.dtype import DType, float32, float64
from plugrad.errors import OperatorNotFoundError
from plugrad.ops.prepare import creation as prepare
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Sizes = tuple[int, ...]


def _target(device: Device | None, name: str, generator: object) -> Device:
    """The device that numbers drawn on the CPU are copied to; an error for the CPU itself."""
    wanted = canonical_device(device)
    if wanted.type == "cpu":
        operator = f"plugrad::{name}"
        raise OperatorNotFoundError(
            f"Could not run '{operator}' with arguments from the 'CPU' backend: it has no kernel.",
            operator=operator,
            backend="cpu",
            primitive=operator,
        )
    if generator is not None and type(generator) is not type(generator_of(CPU)):
        raise RuntimeError(
            f"Expected a 'cpu' device type for generator but found a {type(generator).__name__}: "
            f"backend '{wanted.type}' draws no numbers for '{name}' itself, so the CPU does"
        )
    return wanted


def widest(device: Device) -> DType:
    """float64, or float32 where a backend does without."""
    try:
        find_backend(device.type).backend.native_dtype(float64)
    except TypeError:
        return float32
    return float64


def draws_on_host(device: Device) -> bool:
    """Whether a device gets its random numbers from the CPU's generator."""
    return current_state().host_numbers or type(generator_of(device)) is type(generator_of(CPU))


def truths(size: Sizes, p: float, generator: object, device: Device) -> Tensor:
    """True with probability `p`, as bool."""
    if draws_on_host(device):
        drawn = F.rand(size, generator=generator, dtype=float64, device=CPU)
        return F._to_device(drawn < p, device)
    return F.rand(size, generator=generator, dtype=widest(device), device=device) < p


def rand(size: Sizes, generator: object, dtype: DType | None, device: Device | None) -> Tensor:
    target = _target(device, "rand", generator)
    return F._to_device(F.rand(size, generator=generator, dtype=dtype, device=CPU), target)


def randn(size: Sizes, generator: object, dtype: DType | None, device: Device | None) -> Tensor:
    target = _target(device, "randn", generator)
    return F._to_device(F.randn(size, generator=generator, dtype=dtype, device=CPU), target)


def randint(
    low: int, high: int, size: Sizes, generator: object, dtype: DType | None, device: Device | None
) -> Tensor:
    target = _target(device, "randint", generator)
    drawn = F.randint(low, high, size, generator=generator, dtype=dtype, device=CPU)
    return F._to_device(drawn, target)


def randint_high(
    high: int, size: Sizes, generator: object, dtype: DType | None, device: Device | None
) -> Tensor:
    return randint(0, high, size, generator, dtype, device)


def randperm(n: int, generator: object, dtype: DType | None, device: Device | None) -> Tensor:
    target = _target(device, "randperm", generator)
    return F._to_device(F.randperm(n, generator=generator, dtype=dtype, device=CPU), target)


def on_host(self: Tensor, name: str, generator: object) -> Any:
    """A tensor on the CPU, for drawing there."""
    _target(self.device, name, generator)
    return F._to_device(self.detach(), CPU)


def bernoulli(self: Tensor, generator: object) -> Tensor:
    drawn = F.bernoulli(on_host(self, "bernoulli", generator), generator=generator)
    return F._to_device(drawn, self.device)


def multinomial(self: Tensor, num_samples: int, replacement: bool, generator: object) -> Tensor:
    weights = on_host(self, "multinomial", generator)
    drawn = F.multinomial(weights, num_samples, replacement, generator=generator)
    return F._to_device(drawn, self.device)


def empty_on_host(self: Tensor, name: str, generator: object) -> Any:
    """A tensor on the CPU, to be filled and copied."""
    _target(self.device, name, generator)
    return F.empty(sizes_of(self), dtype=self.dtype, device=CPU)


def uniform_(self: Tensor, from_: float, to: float, generator: object) -> Tensor:
    prepare.uniform_(self, from_, to, generator)
    empty = empty_on_host(self, "uniform_", generator)
    return self.copy_(empty.uniform_(from_, to, generator=generator))


def normal_(self: Tensor, mean: float, std: float, generator: object) -> Tensor:
    prepare.normal_(self, mean, std, generator)
    empty = empty_on_host(self, "normal_", generator)
    return self.copy_(empty.normal_(mean, std, generator=generator))


def exponential_(self: Tensor, lambd: float, generator: object) -> Tensor:
    prepare.exponential_(self, lambd, generator)
    return self.copy_(
        empty_on_host(self, "exponential_", generator).exponential_(lambd, generator=generator)
    )


def bernoulli_float_(self: Tensor, p: float, generator: object) -> Tensor:
    prepare.bernoulli_float_(self, p, generator)
    return self.copy_(
        empty_on_host(self, "bernoulli_.float", generator).bernoulli_(p, generator=generator)
    )


def bernoulli_tensor_(self: Tensor, p: Tensor, generator: object) -> Tensor:
    probabilities = F._to_device(p.detach(), CPU)
    drawn = empty_on_host(self, "bernoulli_.Tensor", generator).bernoulli_(
        probabilities, generator=generator
    )
    return self.copy_(drawn)


def random_(self: Tensor, generator: object) -> Tensor:
    prepare.random_(self, generator)
    empty = empty_on_host(self, "random_", generator)
    return self.copy_(empty.random_(generator=generator))


def random_to_(self: Tensor, to: int, generator: object) -> Tensor:
    return random_from_(self, 0, to, generator)


def random_from_(self: Tensor, from_: int, to: int | None, generator: object) -> Tensor:
    prepare.random_from_(self, from_, to, generator)
    return self.copy_(
        empty_on_host(self, "random_.from", generator).random_(from_, to, generator=generator)
    )
