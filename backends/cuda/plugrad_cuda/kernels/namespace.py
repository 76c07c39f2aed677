"""The array library as kernels see it: CuPy, and the few functions that differ in NumPy.

Kernels are written against `Namespace`, so they also run without a GPU: the tests use one based on
NumPy.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import warnings
from collections.abc import Callable
from typing import Any, Final

from plugrad.plugins.strides import check_reach
from plugrad_cuda import cublas
from plugrad_cuda.fused import lu
from plugrad_cuda.fused.runtime import CuPyRuntime

Array = Any
Kernel = Callable[..., Any]
Shape = tuple[int, ...]

# Dtypes that CUDA's atomicAdd supports, as `cupy.add.at` requires them.
ATOMIC: Final = frozenset(
    ["int32", "uint32", "uint64", "float16", "float32", "float64", "complex64", "complex128"]
)


class Namespace:
    """An array library, as kernels see it.

    Attributes:
        xp: the module with the functions that NumPy and CuPy share.
        erf, erfc: of real arrays, element by element; may be fused.
        check: whether kernels check indices, probabilities and divisors on the device, which waits
            for it.
    """

    xp: Any
    erf: Kernel
    erfc: Kernel
    check: bool = True

    def fuse(self, function: Kernel, name: str) -> Kernel:
        """`function(xp, ...)` of elementwise functions, and at most one sum, as a single kernel."""
        raise NotImplementedError

    def special(self, name: str) -> Kernel:
        """A function of `cupyx.scipy.special` on real arrays, element by element."""
        raise NotImplementedError

    def scatter_add(self, target: Array, where: Any, values: Array) -> None:
        """Adds to `target[where]` as often as a position occurs; dtypes are in `ATOMIC`."""
        raise NotImplementedError

    def on(self, device: int) -> contextlib.AbstractContextManager[Any]:
        """Arrays made within are on this device."""
        raise NotImplementedError

    def may_wait(self) -> bool:
        """Whether a kernel may look at values, on which the host has to wait."""
        raise NotImplementedError

    def view_as(self, array: Array, size: Shape) -> Array:
        """The array's memory in another shape; ValueError if that takes a copy."""
        raise NotImplementedError

    def memory_of(self, array: Array, size: Shape, stride: Shape, offset: int) -> Array:
        """A view by strides and offset, in elements, of the memory behind an array.

        Raises RuntimeError if it would reach outside.
        """
        raise NotImplementedError

    def matmul(self, a: Array, b: Array) -> Array:
        """The matrix product, of 16-bit floats with sums in float32; of vectors and stacks too."""
        raise NotImplementedError

    def checked(self, function: Kernel, *args: Any) -> Any:
        """A function of `xp.linalg`; LinAlgError if it fails and the host may wait for that."""
        raise NotImplementedError

    def lu_factor(self, a: Array) -> tuple[Array, Array]:
        """Both factors of one matrix in one array, and row exchanges counted from 0."""
        raise NotImplementedError

    def row_order(self, pivots: Array, rows: int) -> Array:
        """What row of the factorized matrix each row of L @ U is; exchanges count from 1."""
        raise NotImplementedError

    def solve_triangular(self, a: Array, b: Array, trans: str, lower: bool, unit: bool) -> Array:
        """X with A @ X = B, for `trans` "C" A.mH @ X = B. Only a triangle of A is read.

        Two matrices, or two batches (count, n, n) and (count, n, k).
        """
        raise NotImplementedError

    def has_eig(self) -> bool:
        """Whether `xp.linalg` has eigenvalues of matrices that are not Hermitian."""
        raise NotImplementedError


class CupyNamespace(Namespace):
    """CuPy. Importing it needs no driver; the first array does."""

    def __init__(self, *, check: bool = True) -> None:
        self.check = check
        cupyx = importlib.import_module("cupyx")
        special: Any = importlib.import_module("cupyx.scipy.special")
        self._special = special
        self.xp = importlib.import_module("cupy")
        self._errstate: Kernel = cupyx.errstate
        self._runtime = CuPyRuntime(check)
        self.erf = special.erf
        self.erfc = special.erfc

    def fuse(self, function: Kernel, name: str) -> Kernel:
        bound = functools.partial(function, self.xp)
        # Of a name of its own: CUDA has functions `rsqrt` and `fmod`.
        fused: Kernel = self.xp.fuse(kernel_name=f"plugrad_{name}")(bound)
        return fused

    def special(self, name: str) -> Kernel:
        function: Kernel = getattr(self._special, name)
        return function

    def scatter_add(self, target: Array, where: Any, values: Array) -> None:
        if target.dtype.kind == "c":  # CuPy adds real numbers only
            self.xp.add.at(target.real, where, values.real)
            self.xp.add.at(target.imag, where, values.imag)
        else:
            self.xp.add.at(target, where, values)

    def on(self, device: int) -> contextlib.AbstractContextManager[Any]:
        context: contextlib.AbstractContextManager[Any] = self.xp.cuda.Device(device)
        return context

    def may_wait(self) -> bool:
        """Not while a graph is captured: that would end the capture with an error."""
        return self.check and not self.xp.cuda.get_current_stream().is_capturing()

    def view_as(self, array: Array, size: Shape) -> Array:
        result = array.view()
        try:
            result.shape = size
        except AttributeError as error:
            raise ValueError(str(error)) from None
        return result

    def memory_of(self, array: Array, size: Shape, stride: Shape, offset: int) -> Array:
        """The memory is the allocation: CuPy's pool rounds it up to 512 bytes, so a view may reach
        that far. The base of an array is not always known: `base` is None for results of CuPy's
        as_strided."""
        if 0 in size:
            return self.xp.empty(size, array.dtype)
        memory, itemsize = array.data.mem, array.itemsize
        check_reach(size, stride, offset, itemsize, memory.size)
        pointer = self.xp.cuda.MemoryPointer(memory, offset * itemsize)
        strides = tuple([step * itemsize for step in stride])
        return self.xp.ndarray(size, array.dtype, pointer, strides)

    def matmul(self, a: Array, b: Array) -> Array:
        if a.dtype.kind == "V":  # CuPy has no products of stacks of bfloat16
            return cublas.product(self.xp, a, b)
        try:
            found: Array = self.xp.matmul(a, b)
        except NotImplementedError:  # CuPy's message while a graph is captured
            found = cublas.product(self.xp, a, b)
        return found

    def checked(self, function: Kernel, *args: Any) -> Any:
        with self._errstate(linalg="raise" if self.may_wait() else "ignore"):
            return function(*args)

    def lu_factor(self, a: Array) -> tuple[Array, Array]:
        with warnings.catch_warnings():
            # `info` reports that a matrix is singular.
            warnings.simplefilter("ignore", RuntimeWarning)
            factors, pivots = self._linalg().lu_factor(a, check_finite=False)
        return factors, pivots

    def row_order(self, pivots: Array, rows: int) -> Array:
        return lu.row_order(self._runtime, pivots, rows)

    def solve_triangular(self, a: Array, b: Array, trans: str, lower: bool, unit: bool) -> Array:
        found: Array = self._linalg().solve_triangular(a, b, trans, lower, unit)
        return found

    def has_eig(self) -> bool:
        cusolver: Any = importlib.import_module("cupyx.cusolver")
        try:
            return bool(cusolver.check_availability("geev"))
        except ValueError:  # CuPy's message for functions that it lacks
            return False

    def _linalg(self) -> Any:
        """It loads cuBLAS, so not before it is needed."""
        return importlib.import_module("cupyx.scipy.linalg")
