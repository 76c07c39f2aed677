"""NumPy as the namespace of plugrad-cuda's kernels, held to what CuPy has.

`HostNamespace.xp` is NumPy behind a guard: a function that CuPy lacks, an argument that CuPy's
function does not take, and a dtype for which CuPy's elementwise function has no loop are errors.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import cupy
import ml_dtypes
import numpy as np
from cupy._core import fusion
from cupyx.scipy import special as cupy_special
from scipy import linalg, special

from plugrad.ops.on_demand.factorizations.lu import permutation
from plugrad.ops.on_demand.factorizations.triangular import solve_triangular
from plugrad.plugins import Backend
from plugrad.plugins.generators import SeededGenerator
from plugrad_cpu.memory import element_offset, element_strides, flat_memory, strided
from plugrad_cuda.kernels import array_kernels
from plugrad_cuda.kernels.family import is_narrow, widen
from plugrad_cuda.kernels.namespace import ATOMIC, Namespace

Array = Any


_WORD = 1 << 64
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


class HostGenerator(SeededGenerator):
    """NumPy's generator in the place of the GPU's: kernels draw from `rng`."""

    STATE_WORDS = 6
    rng: np.random.Generator

    def restart(self, seed: int) -> None:
        self.rng = np.random.Generator(np.random.PCG64(seed))

    def state_words(self) -> Sequence[int]:
        whole: Any = self.rng.bit_generator.state
        words = [whole["state"][name] for name in ("state", "inc")]
        halves = [half for word in words for half in divmod(word, _WORD)]
        return [*halves, whole["has_uint32"], whole["uinteger"]]

    def set_state_words(self, seed: int, words: Sequence[int]) -> None:
        bits = np.random.PCG64()
        bits.state = {
            "bit_generator": "PCG64",
            "state": {"state": words[0] * _WORD + words[1], "inc": words[2] * _WORD + words[3]},
            "has_uint32": words[4],
            "uinteger": words[5],
        }
        self.rng = np.random.Generator(bits)


class MissingLoop(AssertionError):
    """CuPy would refuse what NumPy computes."""


class GuardedNumPy:
    """NumPy's functions, as far as CuPy has them."""

    def __init__(self, numpy: ModuleType, theirs: ModuleType) -> None:
        self._numpy = numpy
        self._theirs = theirs

    def where(self, condition: Any, *choices: Any) -> Any:
        """CuPy makes float32 of bfloat16."""
        return _wide(self._numpy.where(condition, *choices))

    def tril(self, array: Any, k: int = 0) -> Any:
        """As `where`."""
        return _wide(self._numpy.tril(array, k))

    def triu(self, array: Any, k: int = 0) -> Any:
        """As `where`."""
        return _wide(self._numpy.triu(array, k))

    def __getattr__(self, name: str) -> Any:
        ours, theirs = getattr(self._numpy, name), getattr(self._theirs, name)
        if isinstance(ours, ModuleType):
            found: Any = GuardedNumPy(ours, theirs)
        elif isinstance(ours, type) or not callable(ours):
            found = ours
        elif isinstance(ours, np.ufunc) and hasattr(theirs, "types"):
            found = guarded_ufunc(ours, theirs)
        else:
            found = guarded(ours, theirs)
        setattr(self, name, found)
        return found


def _wide(found: Any) -> Any:
    return found.astype(np.float32) if getattr(found, "dtype", None) == BFLOAT16 else found


def guarded(ours: Callable[..., Any], theirs: Callable[..., Any]) -> Callable[..., Any]:
    try:
        signature = inspect.signature(theirs)
    except (TypeError, ValueError):
        return ours

    def function(*args: Any, **kwargs: Any) -> Any:
        signature.bind(*args, **kwargs)
        return ours(*args, **kwargs)

    return function


def guarded_ufunc(ours: Any, theirs: Any) -> Callable[..., Any]:
    """Looks whether CuPy has a loop for the dtypes, or one that they are cast to safely."""
    loops = [tuple(loop.partition("->")[0]) for loop in theirs.types]

    def function(*args: Any, **kwargs: Any) -> Any:
        given = [arg.dtype for arg in args[: ours.nin] if hasattr(arg, "dtype")]
        for loop in loops:
            if all(
                any(_fits(dtype, kind) for kind in loop[position : position + 1])
                for position, dtype in enumerate(given)
            ):
                return ours(*args, **kwargs)
        raise MissingLoop(f"cupy.{ours.__name__} has no loop for {given}")

    return function


def _fits(dtype: np.dtype[Any], kind: str) -> bool:
    if dtype.kind == "V" or kind == "E":
        return dtype.kind == "V" and kind == "E"
    return kind not in "V" and np.can_cast(dtype, np.dtype(kind))


def either(ours: Callable[..., Any], theirs: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is CuPy's while CuPy traces."""

    def function(x: Any) -> Any:
        return ours(x) if isinstance(x, (np.ndarray, np.generic)) else theirs(x)

    return function


def _kind(arg: Any) -> Any:
    return (arg.dtype, np.ndim(arg)) if hasattr(arg, "dtype") else type(arg)


def array_without_device(dtype: Any, shape: tuple[int, ...]) -> Any:
    """A CuPy array in host memory: its shape can be read and it can be viewed, but not computed
    with."""
    memory = np.empty(shape, dtype)
    owned = cupy.cuda.UnownedMemory(memory.ctypes.data, max(memory.nbytes, 1), memory, 0)
    return cupy.ndarray(shape, memory.dtype, cupy.cuda.MemoryPointer(owned, 0))


def fused_dtypes(function: Callable[..., Any], args: tuple[Any, ...]) -> list[np.dtype[Any]]:
    """The dtypes that CuPy's fusion gives for arguments of the dtypes of these.

    The same as `cupy.fuse` on the first call, except for the launch. If this cannot fuse a function
    into one kernel, `cupy.fuse` tries its newer method, which may take several kernels.
    """
    like = [
        array_without_device(arg.dtype, np.shape(arg)) if hasattr(arg, "dtype") else arg
        for arg in args
    ]
    history = fusion._FusionHistory()
    local = fusion._thread_local
    local.history, local.is_old_fusing = history, True
    try:
        kernel, _ = history.get_fusion(function, tuple(like), "traced")
    finally:
        local.history, local.is_old_fusing = None, False
    halves = any(getattr(arg, "dtype", None) == np.float16 for arg in args)
    assert halves or "float16" not in getattr(kernel, "operation", ""), (
        "numbers are computed with in float16"
    )
    return [parameter.dtype for parameter in kernel.out_params]


def quiet(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """CuPy divides by zero in silence."""

    def silent(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return kernel(*args)

    return silent


class HostNamespace(Namespace):
    """The twin of `CupyNamespace`. What is fused is also traced by CuPy, for each combination of
    dtypes that occurs, and must come out in one kernel and in NumPy's dtypes."""

    def __init__(self) -> None:
        self.xp = GuardedNumPy(np, cupy)
        self.erf = either(special.erf, cupy_special.erf)
        self.erfc = either(special.erfc, cupy_special.erfc)

    def fuse(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        seen: set[tuple[Any, ...]] = set()

        def fused(*args: Any) -> Any:
            result = function(self.xp, *args)
            key = tuple([_kind(arg) for arg in args])
            if key not in seen:
                seen.add(key)
                outputs = result if isinstance(result, tuple) else (result,)
                traced = fused_dtypes(functools.partial(function, cupy), args)
                assert traced == [np.asarray(part).dtype for part in outputs], f"{name}{key}"
            return result

        return fused

    def special(self, name: str) -> Callable[..., Any]:
        assert hasattr(cupy_special, name)
        return quiet(getattr(special, name))

    def scatter_add(self, target: Array, where: Any, values: Array) -> None:
        assert target.dtype.name in ATOMIC
        assert values.dtype == target.dtype
        np.add.at(target, where, values)

    def on(self, device: int) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext()

    def may_wait(self) -> bool:
        return self.check

    def view_as(self, array: Array, size: tuple[int, ...]) -> Array:
        return array.reshape(size, copy=False)

    def memory_of(
        self, array: Array, size: tuple[int, ...], stride: tuple[int, ...], offset: int
    ) -> Array:
        return strided(flat_memory(array), size, stride, offset)

    def matmul(self, a: Array, b: Array) -> Array:
        """NumPy multiplies 16-bit floats with sums in 16 bits, and makes float32 of bfloat16."""
        if not is_narrow(a):
            return self.xp.matmul(a, b)
        return np.asarray(self.xp.matmul(widen(a), widen(b))).astype(a.dtype)

    def checked(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)

    def lu_factor(self, a: Array) -> tuple[Array, Array]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            factors, pivots = linalg.lu_factor(a, check_finite=False)
        return factors, pivots

    def row_order(self, pivots: Array, rows: int) -> Array:
        return permutation(pivots, rows)

    def solve_triangular(self, a: Array, b: Array, trans: str, lower: bool, unit: bool) -> Array:
        """CuPy broadcasts nothing, and takes one dimension of batches or none."""
        assert a.shape[:-2] == b.shape[:-2]
        assert a.ndim in (2, 3)
        if trans == "C":
            a, lower = a.conj().swapaxes(-1, -2), not lower
        return np.asarray(solve_triangular(a, b, not lower, True, unit))

    def has_eig(self) -> bool:
        return True


class CudaKernelsBackend(Backend):
    """Host memory, computed on by plugrad-cuda's kernels."""

    def __init__(self, name: str = "cudakernels") -> None:
        super().__init__(name, array_type=np.ndarray)
        self.ns = HostNamespace()

    def kernels(self) -> Mapping[str, Callable[..., Any]]:
        return {name: quiet(kernel) for name, kernel in array_kernels(self.ns).items()}

    def as_array(self, value: Any) -> Array:
        return np.asarray(value)

    def from_host(self, array: Array, index: int) -> Array:
        return array.copy()

    def to_host(self, array: Array) -> Array:
        return array.copy()

    def strides(self, array: Array) -> tuple[int, ...]:
        return element_strides(array)

    def storage_offset(self, array: Array) -> int:
        return element_offset(array)

    def make_generator(self, index: int) -> HostGenerator:
        return HostGenerator()
