"""Loops between the two products of attention: scores become weights in one pass over each row.

Rows are in memory that may be wider than they are: (heads, rows, at least columns). All loops are
in this module, because numba recompiles a loop only when its own module has changed.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from plugrad_cpu.compiled.jit import compiled_with

Array = Any

_float = np.float32
_int = np.int32


# exp(x) = 2**n * exp(rest), where rest = x - n * log(2) and n is an integer. The polynomial for
# |rest| <= log(2) / 2 has the coefficients of the Cephes library.
_LOG2_E: Final = _float(1.4426950408889634)
_LOG_2_HIGH: Final = _float(0.693359375)
_LOG_2_LOW: Final = _float(-2.12194440e-4)
_C5: Final = _float(1.9875691500e-4)
_C4: Final = _float(1.3981999507e-3)
_C3: Final = _float(8.3334519073e-3)
_C2: Final = _float(4.1665795894e-2)
_C1: Final = _float(1.6666665459e-1)
_C0: Final = _float(5.0000001201e-1)
_ONE: Final = _float(1)
_ZERO: Final = _float(0)
_NEVER: Final = _float(-np.inf)
# Added to a small number, this leaves the nearest integer in the last bits.
_TO_INTEGER: Final = _float(12582912)
# The exponentials of smaller numbers are 0 here; they would not be normal numbers.
_LEAST: Final = _float(-87.3)
_EXPONENT: Final = _int(23)
_SIGN: Final = _int(31)
_MAGNITUDE: Final = _int(0x7FFFFFFF)
_FEWEST: Final = _int(-0x80000000)


@compiled_with("contract")
def exp(x: Any) -> Any:
    """To about 1 in the last place, for x up to 88; nan of nan."""
    inside = _LEAST if x < _LEAST else x
    shifted = inside * _LOG2_E + _TO_INTEGER
    count = shifted - _TO_INTEGER
    rest = inside - count * _LOG_2_HIGH
    rest = rest - count * _LOG_2_LOW
    series = _C5
    series = series * rest + _C4
    series = series * rest + _C3
    series = series * rest + _C2
    series = series * rest + _C1
    series = series * rest + _C0
    series = series * (rest * rest) + rest
    series = series + _ONE
    # Adds n to the exponent.
    bits = _int(_float(series).view(_int)) + (_int(_float(shifted).view(_int)) << _EXPONENT)
    return _ZERO if x < _LEAST else _int(bits).view(_float)


@compiled_with("contract")
def _most(row: Array) -> Any:
    """The largest number of a row; nan counts as larger or smaller than any.

    LLVM vectorizes the maximum of integers. Their order equals the floats' order after the bits of
    negative ones are inverted.
    """
    found = _FEWEST
    for i in range(row.size):
        bits = _int(_float(row[i]).view(_int))
        found = max(found, _int(bits ^ ((bits >> _SIGN) & _MAGNITUDE)))
    last = _int(found)
    last = _int(last ^ ((last >> _SIGN) & _MAGNITUDE))
    return _int(last).view(_float)


# The terms of a sum may be added in any order, so in several sums side by side.
@compiled_with("contract", "reassoc", "nsz")
def _exponentials(row: Array, shift: Any) -> Any:
    total = _ZERO
    for i in range(row.size):
        weight = exp(row[i] - shift)
        row[i] = weight
        total += weight
    return total


@compiled_with("contract")
def turn(rows: Array, columns: Array) -> None:
    """(heads, n, size) to (heads, size, at least n)."""
    for head in range(rows.shape[0]):
        for i in range(rows.shape[1]):
            row = rows[head, i]
            for j in range(row.size):
                columns[head, j, i] = row[j]


@compiled_with("contract")
def add_mask(scores: Array, columns: int, masks: Array, chosen: Array, first: int) -> None:
    """Adds a mask.

    masks: (masks, 1 or all rows, columns). chosen: the number of each head's mask. first: the
    row of the mask that belongs to the first row of the scores.
    """
    for head in range(scores.shape[0]):
        mask = masks[chosen[head]]
        for i in range(scores.shape[1]):
            row = scores[head, i]
            given = mask[first + i if mask.shape[0] > 1 else 0]
            for j in range(columns):
                row[j] += given[j]


@compiled_with("contract")
def hide(scores: Array, columns: int, masks: Array, chosen: Array, first: int) -> None:
    """The same with a mask of booleans; False stands for -inf."""
    for head in range(scores.shape[0]):
        mask = masks[chosen[head]]
        for i in range(scores.shape[1]):
            row = scores[head, i]
            given = mask[first + i if mask.shape[0] > 1 else 0]
            for j in range(columns):
                row[j] += _ZERO if given[j] else _NEVER


@compiled_with("contract")
def weigh(scores: Array, columns: int, last: int, masked: bool, total: Array, most: Array) -> None:
    """Scores become weights, exp(score - most), where `most` is the largest of its row.

    Row i uses columns up to `last + i`; other weights are 0. Writes the sums into `total` and the
    subtracted numbers into `most`, both (heads, rows, 1). With `masked`, a row with only -inf as
    scores gets weights of 0, a total of 1, and inf in `most`.
    """
    for head in range(scores.shape[0]):
        for i in range(scores.shape[1]):
            row = scores[head, i, :columns]
            used = row[: min(columns, last + i + 1)]
            shift = _most(used)
            if masked and shift == _NEVER:
                shift = _ZERO
            found = _exponentials(used, shift)
            if masked and found == _ZERO:
                found, shift = _ONE, -_NEVER
            total[head, i, 0] = found
            most[head, i, 0] = shift
            row[used.size :] = _ZERO


@compiled_with("contract")
def weigh_again(scores: Array, columns: int, last: int, shift: Array) -> None:
    """Scores become weights, exp(score - shift), with a shift for each row."""
    for head in range(scores.shape[0]):
        for i in range(scores.shape[1]):
            row = scores[head, i, :columns]
            used = row[: min(columns, last + i + 1)]
            _exponentials(used, shift[head, i, 0])
            row[used.size :] = _ZERO


@compiled_with("contract")
def center(gradients: Array, columns: int, weights: Array, means: Array) -> None:
    """Gradients become (gradient - mean of its row) * weight."""
    for head in range(gradients.shape[0]):
        for i in range(gradients.shape[1]):
            row, by = gradients[head, i, :columns], weights[head, i, :columns]
            mean = means[head, i, 0]
            for j in range(columns):
                row[j] = (row[j] - mean) * by[j]
