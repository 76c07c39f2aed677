"""Loops over the elements of one step of a recurrent layer, of float32 numbers.

All loops are in this module, because numba recompiles a loop only when its own module has changed.
A loop that reads and writes few arrays becomes one of vectors.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from plugrad_cpu.compiled.jit import compiled_with

Array = Any

_float = np.float32
_int = np.int32

# exp(x) = 2**n * exp(rest), and tanh of small numbers: polynomials with the coefficients of the
# Cephes library.
_LOG2_E: Final = _float(1.4426950408889634)
_LOG_2_HIGH: Final = _float(0.693359375)
_LOG_2_LOW: Final = _float(-2.12194440e-4)
_E5: Final = _float(1.9875691500e-4)
_E4: Final = _float(1.3981999507e-3)
_E3: Final = _float(8.3334519073e-3)
_E2: Final = _float(4.1665795894e-2)
_E1: Final = _float(1.6666665459e-1)
_E0: Final = _float(5.0000001201e-1)
_T4: Final = _float(-5.70498872745e-3)
_T3: Final = _float(2.06390887954e-2)
_T2: Final = _float(-5.37397155531e-2)
_T1: Final = _float(1.33314422036e-1)
_T0: Final = _float(-3.33332819422e-1)
_SMALL: Final = _float(0.625)
_ONE: Final = _float(1)
_TWO: Final = _float(2)
# Added to a small number, this leaves the nearest integer in the last bits.
_TO_INTEGER: Final = _float(12582912)
# Where exp(x) and its reciprocal are normal numbers.
_MOST: Final = _float(87)
_EXPONENT: Final = _int(23)


@compiled_with("contract")
def exp(x: Any) -> Any:
    """To about 1 in the last place, for x between -87 and 87, which others count as."""
    inside = _MOST if x > _MOST else x
    inside = -_MOST if inside < -_MOST else inside
    shifted = inside * _LOG2_E + _TO_INTEGER
    count = shifted - _TO_INTEGER
    rest = inside - count * _LOG_2_HIGH
    rest = rest - count * _LOG_2_LOW
    series = _E5
    series = series * rest + _E4
    series = series * rest + _E3
    series = series * rest + _E2
    series = series * rest + _E1
    series = series * rest + _E0
    series = series * (rest * rest) + rest
    series = series + _ONE
    # Adds n to the exponent.
    bits = _int(_float(series).view(_int)) + (_int(_float(shifted).view(_int)) << _EXPONENT)
    return _int(bits).view(_float)


@compiled_with("contract")
def sigmoid(x: Any) -> Any:
    return _ONE / (_ONE + exp(-x))


@compiled_with("contract")
def tanh(x: Any) -> Any:
    square = x * x
    series = _T4
    series = series * square + _T3
    series = series * square + _T2
    series = series * square + _T1
    series = series * square + _T0
    near = series * square * x + x
    far = _ONE - _TWO / (exp(_TWO * x) + _ONE)
    return near if abs(x) < _SMALL else far


@compiled_with("contract")
def lstm_forward(product: Array, gates: Array, cell: Array, planes: Array, out: Array) -> None:
    """See `kernels/recurrent/lstm.py`: its functions do the same."""
    count, width = out.shape
    for i in range(count):
        for kind in range(4):
            first = kind * width
            given = gates[i, first : first + width]
            summand = product[i, first : first + width]
            found = planes[kind, i]
            if kind == 2:
                for j in range(width):
                    found[j] = tanh(given[j] + summand[j])
            else:
                for j in range(width):
                    found[j] = sigmoid(given[j] + summand[j])
        enter, forget, new = planes[0, i], planes[1, i], planes[2, i]
        leave, bent, made, row = planes[3, i], planes[4, i], planes[5, i], out[i]
        before = cell[i]
        for j in range(width):
            made[j] = forget[j] * before[j] + enter[j] * new[j]
        for j in range(width):
            value = tanh(made[j])
            bent[j] = value
            row[j] = leave[j] * value


@compiled_with("contract")
def lstm_backward(
    planes: Array, before: Array, to_hidden: Array, to_cell: Array, to_gates: Array, free: Array
) -> None:
    count, width = before.shape
    for i in range(count):
        enter, forget, new = planes[0, i], planes[1, i], planes[2, i]
        leave, bent, old = planes[3, i], planes[4, i], before[i]
        hidden, cell = to_hidden[i], to_cell[i]
        to_enter, to_forget = to_gates[i, :width], to_gates[i, width : 2 * width]
        to_new, to_leave = to_gates[i, 2 * width : 3 * width], to_gates[i, 3 * width :]
        for j in range(width):
            cell[j] += hidden[j] * leave[j] * (_ONE - bent[j] * bent[j])
            to_leave[j] = hidden[j] * bent[j] * (leave[j] * (_ONE - leave[j]))
        for j in range(width):
            to_enter[j] = cell[j] * new[j] * (enter[j] * (_ONE - enter[j]))
            to_new[j] = cell[j] * enter[j] * (_ONE - new[j] * new[j])
        for j in range(width):
            to_forget[j] = cell[j] * old[j] * (forget[j] * (_ONE - forget[j]))
            cell[j] *= forget[j]


@compiled_with("contract")
def gru_forward(product: Array, gates: Array, hidden: Array, planes: Array, out: Array) -> None:
    """See `kernels/recurrent/gru.py`: its functions do the same."""
    count, width = out.shape
    for i in range(count):
        for kind in range(2):
            first = kind * width
            given = gates[i, first : first + width]
            summand = product[i, first : first + width]
            found = planes[kind, i]
            for j in range(width):
                found[j] = sigmoid(given[j] + summand[j])
        reset, update, new, inner = planes[0, i], planes[1, i], planes[2, i], planes[3, i]
        given, summand = gates[i, 2 * width :], product[i, 2 * width :]
        for j in range(width):
            inner[j] = summand[j]
            new[j] = tanh(given[j] + reset[j] * summand[j])
        row, before = out[i], hidden[i]
        for j in range(width):
            row[j] = (before[j] - new[j]) * update[j] + new[j]


@compiled_with("contract")
def gru_backward(
    planes: Array,
    before: Array,
    to_hidden: Array,
    to_gates: Array,
    to_product: Array,
    free: Array,
) -> None:
    count, width = before.shape
    for i in range(count):
        reset, update, new, inner = planes[0, i], planes[1, i], planes[2, i], planes[3, i]
        hidden, old = to_hidden[i], before[i]
        to_reset, to_update = to_gates[i, :width], to_gates[i, width : 2 * width]
        to_new, to_inner = to_gates[i, 2 * width :], to_product[i, 2 * width :]
        for j in range(width):
            to_update[j] = hidden[j] * (old[j] - new[j]) * (update[j] * (_ONE - update[j]))
            to_new[j] = hidden[j] * (_ONE - update[j]) * (_ONE - new[j] * new[j])
        for j in range(width):
            to_inner[j] = to_new[j] * reset[j]
            to_reset[j] = to_new[j] * inner[j] * (reset[j] * (_ONE - reset[j]))
        for j in range(width):
            hidden[j] *= update[j]
        to_product[i, : 2 * width] = to_gates[i, : 2 * width]
