"""PyTorch's name for the module that defines a profile's events."""

from __future__ import annotations

# Interpreted: it only re-exports.
from plugrad.autograd.profiler.event_list import EventList
from plugrad.autograd.profiler.events import FunctionEvent, FunctionEventAvg, Interval
from plugrad.autograd.profiler.formatting import format_memory as _format_memory
from plugrad.autograd.profiler.formatting import format_time as _format_time
from plugrad.autograd.profiler.formatting import format_time_share as _format_time_share

__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "_format_memory",
    "_format_time",
    "_format_time_share",
]
