"""The types of the objects that a backend passes to the core, for plugin authors and type checkers.

These are protocols: a class with the methods conforms without inheriting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, Protocol, TypeAlias, runtime_checkable

__all__ = ["Array", "CapturedStep", "Generator", "Kernel", "KernelSource"]


@runtime_checkable
class Array(Protocol):
    """A backend's array. The core reads only shape and dtype; the rest is private to kernels.

    >>> import numpy as np
    >>> from plugrad.plugins import Array
    >>> isinstance(np.ones(2), Array)
    True
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes, outermost dimension first."""

    @property
    def dtype(self) -> Any:
        """What `Backend.native_dtype` gives for one of the core's dtypes."""


@runtime_checkable
class Generator(Protocol):
    """A stream of random numbers on one device; random kernels draw from it.

    >>> import plugrad
    >>> from plugrad.plugins import Generator
    >>> isinstance(plugrad.default_generator, Generator)
    True
    """

    def manual_seed(self, seed: int, /) -> Any:
        """Start again from a seed in [-2**63, 2**64); returns the generator."""

    def seed(self) -> int:
        """Start again from a seed chosen by the operating system; returns it."""

    def initial_seed(self) -> int:
        """The seed that the stream started from."""

    def get_state(self) -> Any:
        """The state, as an array or tensor of bytes (uint8) in host memory."""

    def set_state(self, state: Any, /) -> Any:
        """Continue from a state that `get_state` returned."""


class Kernel(Protocol):
    """A function on raw arrays, called with positional arguments only.

    Array for `Tensor`, list of arrays for `Tensor[]`, number for `Scalar`, the backend's own dtype
    for `ScalarType`, the device's index for `Device`, the backend's generator for `Generator`.

    >>> import numpy as np
    >>> from plugrad.plugins import Kernel
    >>> product: Kernel = np.multiply
    >>> product(np.array([1.0, 2.0]), 3.0)
    array([3., 6.])
    """

    def __call__(self, *args: Any) -> Any:
        """One array, a tuple of them for several results, a list for a `Tensor[]`."""


# What `Backend.kernels` may return: see `kernel_table`.
KernelSource: TypeAlias = (
    Mapping[str, Callable[..., Any]] | ModuleType | type | object | Sequence[Any]
)


class CapturedStep(Protocol):
    """A step recorded as calls of operators, for `Backend.compile`.

    Values are numbered: first the inputs, then the constants, then each call's results in turn.

    >>> from plugrad.plugins import Backend, CapturedStep
    >>> class Compiling(Backend):
    ...     def compile(self, step: CapturedStep):
    ...         names = [name for name, arguments, results in step.calls()]
    ...         raise NotImplementedError(f"no code for {names}")
    """

    @property
    def inputs(self) -> Sequence[tuple[tuple[int, ...], Any]]:
        """Shape and native dtype of each array that the compiled function is called with."""

    @property
    def constants(self) -> Sequence[Any]:
        """Arrays that are the same in every call."""

    @property
    def calls(self) -> Sequence[tuple[str, tuple[Any, ...], Sequence[int]]]:
        """Operator's full name, its arguments in schema order (`Value` objects have a `number`),
        and the numbers of its results."""

    @property
    def outputs(self) -> Sequence[int]:
        """Numbers of the values that the compiled function returns, as a list of arrays."""
