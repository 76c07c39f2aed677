"""The maxima of windows over signals, without their positions.

A signal is split into phases: elements that are a stride apart become adjacent in memory. All
windows read one tap from neighbours in one phase, which LLVM vectorizes.

All loops are in this module, because numba recompiles a loop only when its own module has changed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrad_cpu.compiled.jit import compiled

Array = Any


@compiled
def _split(line: Array, phases: Array) -> None:
    """phases: (stride, at least elements / stride)."""
    stride = phases.shape[0]
    whole = line.size // stride
    # LLVM vectorizes code that reads every element with a known stride.
    if stride == 2:
        first, second = phases[0], phases[1]
        for i in range(whole):
            first[i] = line[2 * i]
            second[i] = line[2 * i + 1]
    elif stride == 3:
        first, second, third = phases[0], phases[1], phases[2]
        for i in range(whole):
            first[i] = line[3 * i]
            second[i] = line[3 * i + 1]
            third[i] = line[3 * i + 2]
    elif stride == 4:
        first, second, third, fourth = phases[0], phases[1], phases[2], phases[3]
        for i in range(whole):
            first[i] = line[4 * i]
            second[i] = line[4 * i + 1]
            third[i] = line[4 * i + 2]
            fourth[i] = line[4 * i + 3]
    else:
        for phase in range(stride):
            for i in range(whole):
                phases[phase, i] = line[i * stride + phase]
    for i in range(whole * stride, line.size):
        phases[i - whole * stride, whole] = line[i]


@compiled
def _combine(line: Array, found: Array) -> None:
    """The maxima of elements and of what was found; nan is larger than any number."""
    for i in range(found.size):
        x = line[i]
        most = x if x > found[i] else found[i]
        found[i] = x if x != x else most


@compiled
def maxima(
    lines: Array, made: Array, kernel: int, stride: int, padding: int, dilation: int
) -> None:
    """lines: (lines, elements). made: (lines, windows)."""
    size, count = lines.shape[1], made.shape[1]
    phases = np.empty((stride, size // stride + 1), lines.dtype)
    for number in range(lines.shape[0]):
        found = made[number]
        found[:] = -np.inf
        _split(lines[number], phases)
        for tap in range(kernel):
            # The windows in which this tap is an element rather than padding.
            place = tap * dilation - padding
            first = max(-(place // stride), 0)
            behind = min((size - 1 - place) // stride + 1, count)
            if first < behind:
                start = place // stride + first
                _combine(phases[place % stride, start:], found[first:behind])
