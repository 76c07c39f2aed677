"""Turns a graph with operators that write to memory into one with immutable values.

A name of the captured graph refers to a `Place`. A view stores the place that it views and
the call that made it. Each write makes a new value of the tensor that owns the memory; its views
are recomputed when they are needed.

    x ---- transpose ----> v        v.add_(1) makes another v, which is put into x at the
    |                               positions that the transposed positions of x say
    +----- select -------> w        w is made again of that x when it is read
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import plugrad
from plugrad_onnx.onnx.alignment import Call
from plugrad_onnx.onnx.builder import Builder, Value
from plugrad_onnx.onnx.errors import OnnxExporterError
from plugrad_onnx.onnx.sizes import product

# Lowers a view's call for a new value of the tensor that it views.
Lower = Callable[[Call, Value], list[Value]]


@dataclass(eq=False)
class Place:
    """A tensor of the model.

    Attributes:
        value: the current value; for a view, that at `version` of its memory.
        base: the place that it views, as the result `number` of `call`.
        fixed: why it cannot be written to; "" if it can.
    """

    value: Value
    base: Place | None = None
    call: Call | None = None
    number: int = 0
    version: int = 0
    fixed: str = ""
    writes: int = field(default=0)

    @property
    def root(self) -> Place:
        """The place that owns the memory."""
        return self if self.base is None else self.base.root


class Memory:
    """The places of all names."""

    def __init__(self, builder: Builder, lower: Lower) -> None:
        self.builder = builder
        self.lower = lower
        self.places: dict[str, Place] = {}

    def read(self, name: str) -> Value:
        """The current value of a name."""
        if name not in self.places:
            raise OnnxExporterError(
                f"export(): {name} is used, which the lowering of its operator does not give"
            )
        return self._read(self.places[name])

    def _read(self, place: Place) -> Value:
        root = place.root
        if place.base is not None and place.version != root.writes:
            assert place.call is not None
            place.value = self.lower(place.call, self._read(place.base))[place.number]
            place.version = root.writes
        return place.value

    def add(self, name: str, value: Value, fixed: str = "") -> None:
        """A tensor with memory of its own."""
        self.places[name] = Place(value, fixed=fixed)

    def add_view(self, name: str, value: Value, base: str, call: Call, number: int) -> None:
        """A view, the result `number` of a call."""
        of = self.places[base]
        self.places[name] = Place(value, of, call, number, of.root.writes)

    def write(self, name: str, value: Value) -> None:
        """Store new elements in the tensor and in everything that shares its memory."""
        place = self.places[name]
        root = place.root
        if root.fixed:
            raise OnnxExporterError(root.fixed)
        if place is not root:
            self._read(place)
            root.value = self._put(place, value)
        root.writes += 1
        place.value = value
        place.version = root.writes

    def _put(self, place: Place, value: Value) -> Value:
        """The memory's owner, with new elements at the view's positions."""
        b, whole = self.builder, place.root.value
        count = product(whole.sizes)
        numbers = b.op(
            "Range", b.number(0, plugrad.int64), b.number(count, plugrad.int64),
            b.number(1, plugrad.int64), shape=(count,),
        )  # fmt: skip
        positions = b.reshape(self._positions(place, b.reshape(numbers, whole.sizes)), [-1])
        flat = b.op("ScatterElements", b.reshape(whole, [-1]), positions, b.reshape(value, [-1]))
        return b.reshape(flat, whole.sizes)

    def _positions(self, place: Place, numbers: Value) -> Value:
        """The positions of a view's elements in its memory."""
        if place.base is None:
            return numbers
        assert place.call is not None
        return self.lower(place.call, self._positions(place.base, numbers))[place.number]
