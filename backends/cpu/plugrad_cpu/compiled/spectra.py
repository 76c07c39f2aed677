"""Converts between the transform of pairs of real numbers and the transform of the numbers.

Indices are unsigned: numba checks whether signed ones are negative, and LLVM does not vectorize
such loops.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from plugrad_cpu.compiled.jit import compiled_with

Array = Any

_index = np.uint64
_ONE: Final = _index(1)
_TWO: Final = _index(2)


@compiled_with("contract")
def turn(
    spectra: Array, made: Array, real: Array, imaginary: Array, share: Array, forward: bool
) -> None:
    """made[k] = share * (read[k] + conj(read[j])) + root[k] * (read[k] - conj(read[j])), where j is
    count - k, for k from 1 to count - 1, of each row that is read.

    Forward, rows of `count` become the half of a spectrum, `count + 1`; else the other way round.
    Complex numbers are two elements.
    """
    count, part = _index(real.size), share[0]
    last = _TWO * count
    for number in range(spectra.shape[0]):
        read, found = spectra[number], made[number]
        for place in range(_ONE, count):
            k = _index(place)
            j = count - k
            a, b = read[_TWO * k] - read[_TWO * j], read[_TWO * k + _ONE] + read[_TWO * j + _ONE]
            c, d = read[_TWO * k] + read[_TWO * j], read[_TWO * k + _ONE] - read[_TWO * j + _ONE]
            found[_TWO * k] = part * c + (real[k] * a - imaginary[k] * b)
            found[_TWO * k + _ONE] = part * d + (real[k] * b + imaginary[k] * a)
        if forward:
            found[0], found[1] = read[0] + read[1], 0
            found[last], found[last + _ONE] = read[0] - read[1], 0
        else:
            found[0], found[1] = read[0] + read[last], read[0] - read[last]
