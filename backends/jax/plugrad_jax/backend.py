"""The backend for `device="jax"`: JAX's arrays on any device that JAX finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from plugrad.dtype import DType
from plugrad.plugins import Backend, DeviceQueue, package_kernels
from plugrad_jax import devices
from plugrad_jax.deferred import raise_found
from plugrad_jax.devices import all_devices
from plugrad_jax.generator import JaxGenerator
from plugrad_jax.precision import (
    WIDE_DTYPES,
    in_64_bits,
    is_tracing,
    is_wide,
    missing_dtype,
    wide_kernels,
)
from plugrad_jax.sharding import mixing
from plugrad_jax.sharding.placing import host_of, is_local, place

Array = Any
HostArray = np.ndarray[Any, Any]

# Parts of JAX have no types.
_jax: Final[Any] = jax

# DLPack's numbers for kinds of memory, by JAX's name of the platform.
_DLPACK_TYPES: Final = {"cpu": 1, "gpu": 2, "cuda": 2, "rocm": 10}


class JaxQueue(DeviceQueue):
    """Work on one JAX device. Arrays are futures, so events are not needed: work that reads an
    array waits for it on the device."""

    def __init__(self, index: int) -> None:
        self.index = index

    def is_bound(self) -> bool:
        """JAX traces on the thread that called the function."""
        return is_tracing()

    def synchronize(self) -> None:
        wait_for(self.index)


def wait_for(index: int) -> None:
    """Wait until all arrays of a device are computed.

    Programs may end in another order than they were started, so waiting for the last one is not
    enough: this waits for the arrays.
    """
    device = all_devices()[index]
    _jax.effects_barrier()
    for array in _jax.live_arrays(device.platform):
        try:
            if device in array.devices():
                array.block_until_ready()
        except RuntimeError:
            if not array.is_deleted():  # by another thread, which gave it away
                raise
    raise_found()


class JaxBackend(Backend):
    """JAX on all its devices. Arrays cannot be written to; views and writes are the core's."""

    def __init__(self) -> None:
        super().__init__("jax", array_type=jax.Array, mutable=False)

    def options(self) -> Mapping[str, object]:
        """`x64`: whether float64 and complex128 exist; None leaves it to JAX's own switch."""
        return {"x64": None}

    def configure(self, options: Mapping[str, object]) -> None:
        wide = options["x64"]
        if wide is not None:
            if not isinstance(wide, bool):
                raise TypeError(f"x64 must be true or false, got {wide!r}")
            _jax.config.update("jax_enable_x64", wide)
        if devices.problem() is None:
            # What functions give outside of traces: the core takes these without asking.
            with jax.core.eval_context():  # who chooses the backend first may be tracing
                self.array_type = type(jnp.zeros((), bool, device=all_devices()[0]))

    def device_count(self) -> int:
        return 0 if devices.problem() is not None else len(all_devices())

    def problem(self) -> str | None:
        """JAX's error if it cannot start the requested platform."""
        return devices.problem()

    def describe(self) -> Mapping[str, str]:
        """JAX's versions, the platform and kind of each device, and the 64-bit switch."""
        return devices.describe()

    def kernels(self) -> Mapping[str, Callable[..., Any]]:
        """Every kernel of `plugrad_jax.kernels`."""
        return wide_kernels(package_kernels("plugrad_jax.kernels"))

    def as_array(self, value: Any) -> Array:
        """Tracers are arrays; of NumPy's scalars arrays are made."""
        if isinstance(value, jax.Array):
            return value
        return in_64_bits(jnp.asarray)(value)

    def native_dtype(self, dtype: DType) -> Any:
        """NumPy's dtype; TypeError for float64 and complex128 where JAX has them off."""
        if dtype.name in WIDE_DTYPES and not is_wide():
            raise missing_dtype(dtype.name)
        return dtype.numpy

    def from_host(self, array: HostArray, index: int) -> Array:
        """A copy on device `index`; TypeError for a dtype that is off. Inside a trace it is a
        constant."""
        if array.dtype.name in WIDE_DTYPES and not is_wide():
            raise missing_dtype(array.dtype.name)
        # JAX reads the memory after `device_put` has returned, whatever `may_alias` says, and
        # others may write to it by then: it gets its own copy.
        own = np.array(array)
        if is_tracing():
            with jax.core.ensure_compile_time_eval():
                return _put(own, all_devices()[index])
        return _put(own, all_devices()[index])

    def to_host(self, array: Array) -> HostArray:
        """A copy in host memory; waits for the device, and raises the errors that kernels found
        there. RuntimeError for elements that only other processes have."""
        host: HostArray = np.array(host_of(array))
        raise_found()
        return host

    def has_values(self, array: Array) -> bool:
        """Tracers have none, and what is spread over several processes has not all here."""
        return not isinstance(array, jax.core.Tracer) and is_local(array)

    def is_local(self, array: Array) -> bool:
        """Not if some elements are on other processes' devices alone."""
        return isinstance(array, jax.core.Tracer) or is_local(array)

    def run_again(self, kernel: Any, arrays: tuple[Any, ...], error: Exception) -> Any:
        """On arrays that are all on the same devices, if those were not."""
        return mixing.run_again(kernel, arrays, error)

    def copy_from_host(self, array: HostArray, index: int, non_blocking: bool = False) -> Array:
        """`from_host`, which copies; JAX never waits for it."""
        return self.from_host(array, index)

    def copy_to_host(self, array: Array, non_blocking: bool = False) -> HostArray:
        """`to_host`, which copies."""
        return self.to_host(array)

    def copy_to_device(self, array: Array, index: int, non_blocking: bool = False) -> Array:
        """The array on another device; JAX never waits for it. RuntimeError inside a trace."""
        if isinstance(array, jax.core.Tracer):
            raise RuntimeError(
                f"a tensor is moved to jax:{index} in a function that JAX traces; its program runs "
                "on one device: move it outside"
            )
        device = all_devices()[index]
        if mixing.SPREAD.used and not is_tracing():
            return place(array, jax.sharding.SingleDeviceSharding(device))
        return _put(array, device)

    def from_dlpack(self, source: Any, index: int) -> Array:
        """An array with the memory of an object that has ``__dlpack__``; BufferError where JAX
        cannot share it, TypeError for a dtype that is off."""
        device = all_devices()[index]
        if isinstance(source, jax.Array):
            return _put(source, device)
        try:
            found = _from_dlpack(source, device)
        except Exception as error:  # JAX refuses in many ways
            raise BufferError(f"jax: {type(error).__name__}: {error}") from error
        if found.dtype.name in WIDE_DTYPES and not is_wide():
            raise missing_dtype(found.dtype.name)
        return found

    def dlpack_type(self) -> int:
        return _DLPACK_TYPES.get(all_devices()[0].platform, -1)

    def make_generator(self, index: int) -> JaxGenerator:
        return JaxGenerator(index)

    def make_queue(self, index: int) -> JaxQueue:
        return JaxQueue(index)

    def synchronize(self, index: int) -> None:
        wait_for(index)

    def compile_on_host(self, step: Any) -> Callable[..., list[Array]]:
        """One program of XLA on NumPy's arrays: see `plugrad_jax.host_steps`."""
        from plugrad_jax.host_steps import HostProgram

        return HostProgram(step)

    def jit(self, function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        """`plugrad_jax.jit`."""
        from plugrad_jax.capture import jit

        captured: Callable[..., Any] = jit(function, **options)
        return captured


@in_64_bits
def _put(array: Any, device: Any) -> Array:
    return jax.device_put(array, device)


@in_64_bits
def _from_dlpack(source: Any, device: Any) -> Array:
    return jax.dlpack.from_dlpack(source, device=device)
