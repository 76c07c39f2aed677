"""plugrad.quasirandom: Sobol's sequence of points that fill the unit cube evenly."""

from __future__ import annotations

import functools
from importlib.resources import files
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

import plugrad
from plugrad import Tensor
from plugrad.dtype import DType

__all__ = ["SobolEngine"]

_BITS: Final = 30
_DTYPES: Final = (plugrad.float32, plugrad.float64)


@functools.cache
def _tables() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The polynomials of Joe and Kuo, by dimension, and the first direction numbers of each."""
    source = files("scipy.stats") / "_sobol_direction_numbers.npz"
    with source.open("rb") as file, np.load(file) as found:
        return found["poly"].astype(np.int64), found["vinit"].astype(np.int64)


def _directions(dimension: int) -> NDArray[np.int64]:
    """The direction numbers, (dimension, 30), by the recurrence of Bratley and Fox (ACM TOMS 14,
    1988), as fractions of 2 ** 30."""
    polynomials, first = (table[:dimension] for table in _tables())
    degrees = np.frompyfunc(int.bit_length, 1, 1)(polynomials.astype(object)).astype(int) - 1
    numbers = np.ones((dimension, _BITS), np.int64)
    for degree in np.unique(degrees[1:]):
        rows = np.flatnonzero(degrees == degree)
        rows = rows[rows > 0]  # the first dimension is van der Corput's sequence: all numbers are 1
        some = np.empty((len(rows), _BITS), np.int64)
        some[:, :degree] = first[rows, :degree]
        for column in range(degree, _BITS):
            some[:, column] = some[:, column - degree]
            for back in range(1, degree + 1):
                bit = polynomials[rows] >> (degree - back) & 1
                some[:, column] ^= bit * some[:, column - back] << back
        numbers[rows] = some
    shifted: NDArray[np.int64] = numbers << np.arange(_BITS - 1, -1, -1)
    return shifted


def _scrambled(numbers: NDArray[np.int64], matrices: NDArray[np.int64]) -> NDArray[np.int64]:
    """Direction numbers after their bits, highest first, are multiplied by lower triangular
    matrices with ones on the diagonal (Matousek, J. Complexity 14, 1998)."""
    places = np.arange(_BITS - 1, -1, -1)
    bits = numbers[:, None, :] >> places[:, None] & 1
    diagonal = np.arange(_BITS)
    matrices[:, diagonal, diagonal] = 1
    mixed: NDArray[np.int64] = ((matrices @ bits % 2) << places[:, None]).sum(1)
    return mixed


class SobolEngine:
    """Draws the points of Sobol's sequence in Gray code order, as PyTorch does.

    The direction numbers are from Joe and Kuo (SIAM J. Sci. Comput. 30, 2008); the scrambling is a
    random linear one with a shift.

    Args:
        dimension: the dimension of the points, from 1 to 21201.
        scramble: whether to scramble the points; otherwise the first point is zero.
        seed: the seed of the scrambling; by default, plugrad's generator draws the random numbers.

    Raises:
        ValueError: `dimension` is less than 1 or more than 21201.

    >>> from plugrad.quasirandom import SobolEngine
    >>> SobolEngine(2).draw(4)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500],
            [0.2500, 0.7500]])
    """

    MAXBIT = _BITS
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]"
            )
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        self.num_generated = 0
        numbers, shift = _directions(dimension), np.zeros(dimension, np.int64)
        if scramble:
            numbers, shift = self._scramble(numbers)
        self.sobolstate = plugrad.tensor(numbers, device="cpu")
        self.shift = plugrad.tensor(shift, device="cpu")
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**_BITS).reshape(1, -1)

    def _scramble(self, numbers: NDArray[np.int64]) -> Any:
        generator = None
        if self.seed is not None:
            generator = plugrad.Generator().manual_seed(self.seed)

        def bits(*size: int) -> NDArray[np.int64]:
            drawn = plugrad.randint(2, size, generator=generator, device="cpu")
            array: NDArray[np.int64] = drawn.numpy()
            return array

        shift = bits(self.dimension, _BITS) @ (1 << np.arange(_BITS))
        return _scrambled(numbers, np.tril(bits(self.dimension, _BITS, _BITS))), shift

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """The next points, (n, dimension), on the CPU.

        Args:
            n: how many.
            out: a tensor for the result; it is resized.
            dtype: float32 or float64; by default the default dtype.

        Raises:
            RuntimeError: `n` is negative, or zero before the first point.
            NotImplementedError: any other `dtype`.

        >>> from plugrad.quasirandom import SobolEngine
        >>> SobolEngine(3, scramble=True, seed=1).draw(2).shape
        Size([2, 3])
        """
        dtype = plugrad.get_default_dtype() if dtype is None else dtype
        if dtype not in _DTYPES:
            raise NotImplementedError(
                f"SobolEngine.draw: expected float32 or float64 as dtype, but got {dtype}"
            )
        steps = n - (self.num_generated == 0)
        if steps < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {steps}: "
                f"[{steps}, {self.dimension}]"
            )
        found = self._advanced(steps)
        points = plugrad.tensor(found, dtype=dtype, device="cpu") / 2**_BITS
        if self.num_generated == 0:
            # As in PyTorch, with the precision of the default dtype.
            points = plugrad.cat([self._first_point.to(dtype), points])
        self.num_generated += n
        return points if out is None else out.resize_as_(points).copy_(points)

    def _advanced(self, steps: int) -> NDArray[np.int64]:
        """The next points as integers; the last one is kept. Each differs from the previous one by
        the direction number of the lowest zero bit in the count of points so far."""
        start = max(self.num_generated - 1, 0)
        counts = np.arange(start, start + steps)
        lowest = np.bitwise_count(counts ^ (counts + 1)).astype(int) - 1
        chain = np.concatenate([self.quasi.numpy()[None], self.sobolstate.numpy().T[lowest]])
        points: NDArray[np.int64] = np.bitwise_xor.accumulate(chain)[1:]
        if steps:
            self.quasi.copy_(plugrad.tensor(points[-1], device="cpu"))
        return points

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """The next 2 ** m points; the total number drawn is then a power of two.

        Args:
            m: the exponent.
            out: as for `draw`.
            dtype: as for `draw`.

        Raises:
            ValueError: the total would not be a power of two.

        >>> from plugrad.quasirandom import SobolEngine
        >>> SobolEngine(1).draw_base2(2).flatten()
        tensor([0.0000, 0.5000, 0.7500, 0.2500])
        """
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead."
            )
        return self.draw(n, out=out, dtype=dtype)

    def reset(self) -> Self:
        """Restart at the first point. Returns the engine itself.

        >>> import plugrad
        >>> engine = plugrad.quasirandom.SobolEngine(2)
        >>> first = engine.draw(3)
        >>> plugrad.equal(engine.reset().draw(3), first)
        True
        """
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> Self:
        """Skip the next `n` points. Returns the engine itself.

        Args:
            n: how many.

        Raises:
            ValueError: `n` is less than one.

        >>> from plugrad.quasirandom import SobolEngine
        >>> SobolEngine(1).fast_forward(2).draw(1)
        tensor([[0.7500]])
        """
        if n < 1:
            raise ValueError(f"SobolEngine.fast_forward: expected n of at least 1, but got {n}")
        # The point after k steps is the XOR of the direction numbers for the bits of the Gray code
        # of k.
        last = self.num_generated + n - 1
        chosen = (last ^ (last >> 1)) >> np.arange(_BITS) & 1 == 1
        numbers = self.sobolstate.numpy()[:, chosen]
        point = np.bitwise_xor.reduce(numbers, axis=1) ^ self.shift.numpy()
        self.quasi.copy_(plugrad.tensor(point, device="cpu"))
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        words = [f"dimension={self.dimension}"]
        words += ["scramble=True"] if self.scramble else []
        words += [f"seed={self.seed}"] if self.seed is not None else []
        return f"{type(self).__name__}({', '.join(words)})"
