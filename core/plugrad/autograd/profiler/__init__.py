"""The profiler: the time that operators and backward nodes take, and the memory of their
results."""

from __future__ import annotations

# Interpreted: it only re-exports.
from plugrad.autograd.profiler.event_list import EventList
from plugrad.autograd.profiler.events import (
    DeviceType,
    FunctionEvent,
    FunctionEventAvg,
    Interval,
)
from plugrad.autograd.profiler.profile import profile
from plugrad.autograd.profiler.record_function import record_function
from plugrad.autograd.profiler.recorder import is_recording

__all__ = [
    "DeviceType",
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "is_recording",
    "profile",
    "record_function",
]
