"""Which lines are the program's, and the text around those that made calls."""

from __future__ import annotations

import linecache
from types import FrameType
from typing import Final

from plugrad_viewer.recording.format import Source

# Code of these packages works for the program's lines. The demo is a program.
LIBRARIES: Final = frozenset(
    {
        *("plugrad", "plugrad_as_torch", "plugrad_cpu", "plugrad_cuda", "plugrad_distributed"),
        *("plugrad_distributions", "plugrad_jax", "plugrad_native", "plugrad_nn", "plugrad_onednn"),
        *("plugrad_onnx", "plugrad_special", "plugrad_viewer"),
        *("contextlib", "functools", "threading", "concurrent", "runpy"),
    }
)
PROGRAMS: Final = ("plugrad_nn.demo",)
# The number of lines to show around those that ran, and the largest gap between two stretches that
# are joined.
AROUND: Final = 2
BETWEEN: Final = 4


def is_library(frame: FrameType) -> bool:
    """Whether a frame's code works for the program's lines, and is none of them."""
    name = frame.f_globals.get("__name__", "")
    if not isinstance(name, str):
        return False
    if frame.f_code.co_filename.startswith("<plugrad.codegen"):
        return True
    return name.partition(".")[0] in LIBRARIES and not name.startswith(PROGRAMS)


def stretches(lines: set[tuple[str, int]]) -> tuple[list[Source], dict[tuple[str, int], int]]:
    """Parts of files that hold the lines, and for each line the number of its part."""
    sources: list[Source] = []
    places: dict[tuple[str, int], int] = {}
    by_file: dict[str, list[int]] = {}
    for file, line in lines:
        by_file.setdefault(file, []).append(line)
    for file, numbers in sorted(by_file.items()):
        text = linecache.getlines(file)
        for first, last in _merged(sorted(numbers), len(text)):
            for line in numbers:
                if first <= line <= last:
                    places[file, line] = len(sources)
            shown = [row.rstrip("\n") for row in text[first - 1 : last]]
            sources.append({"file": file, "first": first, "lines": shown or [""]})
    return sources, places


def _merged(numbers: list[int], length: int) -> list[tuple[int, int]]:
    """Ranges of lines around sorted numbers, at most `length` unless the text is unknown."""
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if not length:  # typed in, and no longer available
            ranges.append((number, number))
            continue
        first, last = max(1, number - AROUND), max(number, min(length, number + AROUND))
        if ranges and first <= ranges[-1][1] + BETWEEN:
            ranges[-1] = ranges[-1][0], max(last, ranges[-1][1])
        else:
            ranges.append((first, last))
    return ranges
