"""How times, shares and sizes are printed."""

from __future__ import annotations

# Interpreted: it runs when a profile is over.
from typing import Final

TIME_UNITS: Final = {"s": 1e6, "ms": 1e3, "us": 1.0}
SIZE_UNITS: Final = (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10))


def format_time(time_us: float, unit: str | None = None) -> str:
    """Microseconds in the largest unit that leaves at least one, or in `unit`: s, ms or us.

    >>> from plugrad.autograd.profiler.formatting import format_time
    >>> format_time(1500.0), format_time(12.0), format_time(12.0, "ms")
    ('1.500ms', '12.000us', '0.012ms')
    """
    if unit not in TIME_UNITS:
        unit = next((name for name, size in TIME_UNITS.items() if time_us >= size), "us")
    return f"{time_us / TIME_UNITS[unit]:.3f}{unit}"


def format_time_share(time_us: float, total_time_us: float) -> str:
    """A part of a total in percent; "NaN" if the total is 0.

    >>> from plugrad.autograd.profiler.formatting import format_time_share
    >>> format_time_share(1.0, 3.0)
    '33.33%'
    """
    if total_time_us == 0:
        if time_us != 0:
            raise AssertionError(f"Expected time_us == 0 but got {time_us}")
        return "NaN"
    return f"{time_us * 100.0 / total_time_us:.2f}%"


def format_memory(nbytes: int) -> str:
    """Bytes in the largest unit that leaves at least one; what was freed is negative.

    >>> from plugrad.autograd.profiler.formatting import format_memory
    >>> format_memory(2048), format_memory(-12)
    ('2.00 KB', '-12 B')
    """
    for name, size in SIZE_UNITS:
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {name}"
    return f"{nbytes} B"
