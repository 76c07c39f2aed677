"""`Backend.compile_on_host`: captured steps on host arrays, as one program of XLA.

The operators of a step run once more, on tensors of this backend around JAX's tracers. Numbers that
change from run to run, such as a learning rate, are tracers, too. Only the operators of
`changing_numbers` take those. A step that passes them to another operator is not compiled.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

import plugrad
from plugrad.plugins import CapturedStep
from plugrad.plugins.tracing import generators, resolved, tensor_of
from plugrad_jax.changing_numbers import WITH_NUMBERS, Number, overload_of
from plugrad_jax.devices import device

Array = Any

# Parts of JAX have no types.
_jax: Final[Any] = jax

_RANDOM: Final = "the step draws random numbers, and XLA would draw others than the CPU"
# What JAX gives below so many bytes is copied, which is sooner done than to share memory.
_SHARED: Final = 1 << 16


class HostProgram:
    """A step as a program on NumPy's arrays, which it writes to where the step does.

    Raises:
        NotImplementedError: XLA cannot have it; the message says why.
    """

    def __init__(self, step: CapturedStep) -> None:
        kinds = [native for _, native in step.inputs]
        self._count = sum(native is not None for native in kinds)
        self._cpu = jax.local_devices(backend="cpu")[0]
        self._place = device(self._cpu)
        self._calls = [(overload_of(name), *rest) for name, *rest in step.calls]
        self._outputs = list(step.outputs)
        self._constants = [_constant(value) for value in step.constants]
        self._inputs = len(kinds)
        arrays = [
            _jax.ShapeDtypeStruct(shape, native)
            for shape, native in step.inputs
            if native is not None
        ]
        numbers = [_jax.ShapeDtypeStruct((), np.float64)] * (self._inputs - self._count)
        self._written: list[int] = []
        self._looked = False
        keys = [(generator, generator.key) for generator in generators("jax")]
        with jax.enable_x64(True), jax.default_device(self._cpu):
            try:
                self._program = jax.jit(self._trace).lower(arrays, numbers).compile()
                if any(generator.key is not key for generator, key in keys):
                    raise NotImplementedError(_RANDOM)
            except NotImplementedError:
                raise
            except (TypeError, ValueError, RuntimeError) as error:  # JAX's words are long
                raise NotImplementedError(f"JAX: {str(error).partition(chr(10))[0]}") from error
            finally:
                for generator, key in keys:
                    generator.key = key

    def __call__(self, *inputs: Any) -> list[Array]:
        arrays, numbers = inputs[: self._count], [np.float64(n) for n in inputs[self._count :]]
        if not self._looked:
            self._check_memory(arrays)
        with jax.enable_x64(True), jax.default_device(self._cpu):
            results, written = self._program(list(arrays), numbers)
        found = [_of_the_host(result) for result in results]
        for number, result in zip(self._written, written, strict=True):
            np.copyto(arrays[number], np.asarray(result))
        return found

    def _check_memory(self, arrays: Sequence[Array]) -> None:
        """What is written to shares no memory with what else goes in: XLA would not see that."""
        for number in self._written:
            for other, array in enumerate(arrays):
                if other != number and np.may_share_memory(arrays[number], array):
                    raise RuntimeError(
                        "the compiled step writes to a tensor that shares memory with another one "
                        'that it takes, which XLA cannot do: compile it with backend="tape"'
                    )
        self._looked = True

    def _trace(self, arrays: list[Array], numbers: list[Array]) -> tuple[list[Array], list[Array]]:
        given = [self._tensor(array) for array in arrays]
        given += [Number(number) for number in numbers]
        given += [self._tensor(array) for array in self._constants]
        values: dict[int, Any] = dict(enumerate(given))
        before = [resolved(values[place]).array for place in range(self._count)]
        with plugrad.no_grad():
            for overload, args, results in self._calls:
                found = self._call(overload, [self._resolved(arg, values) for arg in args])
                parts = found if isinstance(found, (list, tuple)) else [found]
                values.update(zip(results, parts, strict=False))  # results numbered -1 are unused
        after = [resolved(values[place]).array for place in range(self._count)]
        changed = [place for place in range(self._count) if after[place] is not before[place]]
        self._written = changed
        return (
            [resolved(values[number]).array for number in self._outputs],
            [after[place] for place in changed],
        )

    def _tensor(self, array: Array) -> Any:
        return tensor_of(array, getattr(plugrad, array.dtype.name), self._place)

    def _resolved(self, value: Any, values: dict[int, Any]) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)([self._resolved(item, values) for item in value])
        if isinstance(value, plugrad.device):
            return self._place
        number = getattr(value, "number", None)
        return value if number is None else values[number]

    def _call(self, overload: Any, args: list[Any]) -> Any:
        name: str = overload.name()
        if name in WITH_NUMBERS:
            return WITH_NUMBERS[name](*args)
        if any(isinstance(arg, Number) for arg in _flat(args)):
            raise NotImplementedError(f"{name} gets a number that changes from run to run")
        return overload.call(tuple(args))


def _flat(values: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        found += _flat(value) if isinstance(value, (list, tuple)) else [value]
    return found


def _constant(value: Any) -> Array:
    if not isinstance(value, np.ndarray):
        raise NotImplementedError(_RANDOM)
    with jax.enable_x64(True):
        return jnp.array(value)


def _of_the_host(result: Array) -> Array:
    """A NumPy array with a result, which may be written to: nothing else refers to the result."""
    if result.nbytes < _SHARED:
        return np.array(result)
    result.block_until_ready()
    memory = (ctypes.c_byte * result.nbytes).from_address(result.unsafe_buffer_pointer())
    memory.owner = result  # keeps the memory
    return np.frombuffer(memory, result.dtype).reshape(result.shape)
