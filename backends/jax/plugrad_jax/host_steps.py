"""Captured steps on arrays of the host, as one program of XLA: what `Backend.compile_on_host` is.

The operators of a step run once more, on tensors of this backend around JAX's tracers. Numbers that
change from run to run, such as a learning rate, are tracers, too. Only few operators take those, by
functions of their own below; any other says so, and the step then runs as it is written.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

import plugrad
from plugrad.plugins import CapturedStep
from plugrad.plugins.tracing import generators, resolved, tensor_of
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
        self._calls = [(_overload(name), *rest) for name, *rest in step.calls]
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
        given += [_Number(number) for number in numbers]
        given += [self._tensor(array) for array in self._constants]
        values: dict[int, Any] = dict(enumerate(given))
        before = [resolved(values[place]).array for place in range(self._count)]
        with plugrad.no_grad():
            for overload, args, results in self._calls:
                found = self._call(overload, [self._resolved(arg, values) for arg in args])
                parts = found if isinstance(found, (list, tuple)) else [found]
                values.update(zip(results, parts, strict=False))  # those of -1 nobody asks for
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
        if name in _WITH_NUMBERS:
            return _WITH_NUMBERS[name](*args)
        if any(isinstance(arg, _Number) for arg in _flat(args)):
            raise NotImplementedError(f"{name} gets a number that changes from run to run")
        return overload.call(tuple(args))


class _Number:
    """A number that changes from run to run: a tracer of float64."""

    def __init__(self, value: Array) -> None:
        self.value = value


def _flat(values: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        found += _flat(value) if isinstance(value, (list, tuple)) else [value]
    return found


def _overload(name: str) -> Any:
    namespace, _, rest = name.partition("::")
    operator, _, overload = rest.partition(".")
    packet = getattr(getattr(plugrad.ops, namespace), operator)
    return getattr(packet, overload or "default")


def _constant(value: Any) -> Array:
    if not isinstance(value, np.ndarray):
        raise NotImplementedError(_RANDOM)
    with jax.enable_x64(True):
        return jnp.array(value)


def _of_the_host(result: Array) -> Array:
    """An array of NumPy with a result, which may be written to: nobody else has the result."""
    if result.nbytes < _SHARED:
        return np.array(result)
    result.block_until_ready()
    memory = (ctypes.c_byte * result.nbytes).from_address(result.unsafe_buffer_pointer())
    memory.owner = result  # keeps the memory
    return np.frombuffer(memory, result.dtype).reshape(result.shape)


# Operators that take numbers which change.


def _plain(number: Any, dtype: Any) -> Array:
    """A number in an array's dtype, after what is computed of numbers alone in float64."""
    return jnp.asarray(number.value if isinstance(number, _Number) else number).astype(dtype)


def _wide(number: Any) -> Any:
    return number.value if isinstance(number, _Number) else float(number)


def _put(target: Any, array: Array) -> None:
    target.copy_(tensor_of(array, target.dtype, target.device))


def _array(tensor: Any) -> Array:
    return resolved(tensor).array


def _binary(function: Callable[[Array, Array], Array], a: Any, number: Any, *rest: Any) -> Any:
    array = _array(a)
    if array.dtype.kind not in "fV":
        raise NotImplementedError(f"a number that changes, beside {array.dtype.name}")
    # add and sub have a factor after the number.
    factor = _wide(rest[0]) if rest else 1
    made = function(array, _plain(_wide(number) * factor, array.dtype))
    return tensor_of(made, a.dtype, a.device)


def _in_place(function: Callable[[Array, Array], Array], a: Any, number: Any, *rest: Any) -> Any:
    _put(a, _array(_binary(function, a, number, *rest)))
    return a


def _add_scaled(a: Any, b: Any, alpha: Any) -> Any:
    left, right = _array(a), _array(b)
    if left.dtype != right.dtype:
        raise NotImplementedError("two dtypes beside a number that changes")
    return tensor_of(left + right * _plain(alpha, right.dtype), a.dtype, a.device)


def _add_scaled_(a: Any, b: Any, alpha: Any) -> Any:
    _put(a, _array(_add_scaled(a, b, alpha)))
    return a


def _decayed(p: Array, g: Array, weight_decay: Any, maximize: bool) -> Array:
    g = -g if maximize else g
    if isinstance(weight_decay, _Number):
        decay = _plain(weight_decay, p.dtype)
        return jnp.where(decay != 0, g + p * decay, g)
    return g + p * _plain(weight_decay, p.dtype) if weight_decay else g


def _update_sgd(
    parameters: Sequence[Any],
    grads: Sequence[Any],
    buffers: Sequence[Any],
    lr: Any,
    momentum: Any,
    dampening: Any,
    weight_decay: Any,
    nesterov: bool,
    maximize: bool,
) -> None:
    for place, (parameter, grad) in enumerate(zip(parameters, grads, strict=True)):
        p = _array(parameter)
        g = _decayed(p, _array(grad), weight_decay, maximize)
        if buffers:
            v = _array(buffers[place]) * _plain(momentum, p.dtype)
            v = v + g * jnp.asarray(1 - _wide(dampening)).astype(p.dtype)
            _put(buffers[place], v)
            g = g + v * _plain(momentum, p.dtype) if nesterov else v
        _put(parameter, p - g * _plain(lr, p.dtype))


def _update_adam(
    parameters: Sequence[Any],
    grads: Sequence[Any],
    means: Sequence[Any],
    squares: Sequence[Any],
    largest: Sequence[Any],
    rates: Sequence[Any],
    epsilons: Sequence[Any],
    beta1: Any,
    beta2: Any,
    decay: Any,
    weight_decay: Any,
    maximize: bool,
) -> None:
    lists = (parameters, grads, means, squares, rates, epsilons)
    for place, (parameter, grad, mean, square, rate, epsilon) in enumerate(
        zip(*lists, strict=True)
    ):
        p = _array(parameter)
        dtype = p.dtype
        p = p * jnp.asarray(1 - _wide(decay)).astype(dtype)
        g = _decayed(p, _array(grad), weight_decay, maximize)
        m = _array(mean)
        m = m + (g - m) * jnp.asarray(1 - _wide(beta1)).astype(dtype)
        s = _array(square) * _plain(beta2, dtype)
        s = s + g * g * jnp.asarray(1 - _wide(beta2)).astype(dtype)
        _put(mean, m)
        _put(square, s)
        if largest:
            s = jnp.maximum(_array(largest[place]), s)
            _put(largest[place], s)
        _put(parameter, p - m * _plain(rate, dtype) / (jnp.sqrt(s) + _plain(epsilon, dtype)))


_ARITHMETIC: Final[dict[str, Callable[..., Array]]] = {
    "add": jnp.add, "sub": jnp.subtract, "mul": jnp.multiply, "div": jnp.divide,
}  # fmt: skip
_WITH_NUMBERS: Final[dict[str, Callable[..., Any]]] = {
    "plugrad::_update_sgd": _update_sgd,
    "plugrad::_update_adam": _update_adam,
}


def _when_it_changes(name: str, with_number: Callable[..., Any]) -> Callable[..., Any]:
    """The operator itself for plain numbers."""
    plain = functools.partial(_overload, name)

    def call(*args: Any) -> Any:
        if any(isinstance(arg, _Number) for arg in args):
            return with_number(*args)
        return plain().call(args)

    return call


for _name, _function in _ARITHMETIC.items():
    for _suffix, _kind in (("", _binary), ("_", _in_place)):
        _full = f"plugrad::{_name}{_suffix}.Scalar"
        _WITH_NUMBERS[_full] = _when_it_changes(_full, functools.partial(_kind, _function))
for _name, _scaled in (("add", _add_scaled), ("add_", _add_scaled_)):
    _full = f"plugrad::{_name}.Tensor"
    _WITH_NUMBERS[_full] = _when_it_changes(_full, _scaled)
