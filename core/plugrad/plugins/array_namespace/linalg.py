"""Kernels of matrix products, and of linear systems where there is the extension `linalg`."""

from __future__ import annotations

from plugrad.dispatch.backends.kernel_table import kernel
from plugrad.plugins.array_namespace.family import Family, Kernel, needs
from plugrad.plugins.array_namespace.namespace import Array


class Linalg(Family):
    """Products by `matmul`; `solve`, `det` and diagonals by the extension."""

    def table(self) -> dict[str, Kernel]:
        if not self.ns.has("matmul"):
            return {}
        return dict.fromkeys(("mm", "bmm", "mv", "dot"), self.product)

    def product(self, a: Array, b: Array) -> Array:
        """Bools are multiplied as numbers, since the standard has no products of them."""
        if not self.ns.is_bool(a):
            return self.xp.matmul(a, b)
        x, y = self.xp.astype(a, self.ns.int64), self.xp.astype(b, self.ns.int64)
        return self.ns.cast(self.xp.matmul(x, y), self.ns.bool_)

    @kernel("vdot")
    @needs("matmul", "conj")
    def vdot(self, a: Array, b: Array) -> Array:
        return self.product(self.xp.conj(a) if self.ns.is_complex(a) else a, b)

    @kernel("_linalg_solve")
    @needs("linalg.solve")
    def solve(self, a: Array, b: Array) -> Array:
        try:
            return self.xp.linalg.solve(a, b)
        except Exception as error:  # the standard leaves open which one
            if "singular" not in str(error).lower():
                raise
            raise RuntimeError(
                "linalg.solve: The solver failed because the input matrix is singular."
            ) from None

    @kernel("linalg_det")
    @needs("linalg.det")
    def det(self, a: Array) -> Array:
        return self.xp.linalg.det(a)

    @kernel("diagonal")
    @needs("linalg.diagonal", "permute_dims")
    def diagonal(self, a: Array, offset: int, dim1: int, dim2: int) -> Array:
        others = [dim for dim in range(a.ndim) if dim not in (dim1, dim2)]
        matrices = self.xp.permute_dims(a, (*others, dim1, dim2))
        return self.xp.linalg.diagonal(matrices, offset=offset)

    @kernel("trace")
    @needs("linalg.trace")
    def trace(self, a: Array) -> Array:
        dtype = a.dtype if self.ns.is_floating(a) else self.ns.int64
        numbers = self.xp.astype(a, dtype) if self.ns.is_bool(a) else a
        return self.xp.linalg.trace(numbers, dtype=dtype)
