"""InputBuffer: collects the gradients that flow into a node and sums them for each input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from mypy_extensions import i64

from plugrad._generated.calls import call_add_Tensor
from plugrad._generated.pointwise_binary import OP_add__Tensor
from plugrad.autograd.engine.ownership import is_unshared
from plugrad.autograd.engine.streams import Arrival, lend, note_mismatch, stream_on
from plugrad.device import CPU, Device
from plugrad.dispatch import keys
from plugrad.dispatch.backends.active import queue_of, streams_of
from plugrad.dispatch.backends.backend import DeviceQueue
from plugrad.graph.node import Node
from plugrad.tensor.aliasing.alias_kernels import InplaceKernel
from plugrad.tensor.base import TensorBase, sizes_of

if TYPE_CHECKING:
    from plugrad.autograd.engine.device_thread import DeviceThread
    from plugrad.dispatch.listener import Trace


@final
class InputBuffer:
    """One slot per input of a node; an implicit addition for gradients that meet in one."""

    def __init__(self, size: i64) -> None:
        self.values: list[TensorBase | None] = [None] * size if size != 1 else [None]
        # The slot with a sum that this buffer computed, so nothing else refers to it.
        self.own_sum: i64 = -1
        # The threads of devices that produced gradients, if any did.
        self.producers: list[DeviceThread] | None = None
        # How the gradients on devices with streams were produced, by slot, if there are any.
        self.arrivals: dict[int, Arrival] | None = None

    def add(
        self, position: i64, grad: TensorBase | None, recorded: bool, trace: Trace | None
    ) -> None:
        """Add a gradient to a slot: in place if the slot's is ours alone and nothing records."""
        if grad is None:
            return
        # Before a local variable refers to the gradient as well.
        own = not recorded and (self.own_sum == position or is_unshared(self.values, position))
        previous = self.values[position]
        if previous is None:
            self.values[position] = grad
            return
        if not (own and _fits(previous, grad) and _add_unseen(previous, grad, trace)):
            self.values[position] = call_add_Tensor(previous, grad)
        self.own_sum = position

    def add_in_order(
        self,
        position: i64,
        grad: TensorBase | None,
        recorded: bool,
        trace: Trace | None,
        producer: DeviceThread | None,
    ) -> None:
        """`add`, on the thread of `producer` (None: the host's), after unfinished work on them.

        Calls return before devices finish their work. So before a thread adds two gradients, the
        devices must finish the first one. If the gradients are on another device than the
        thread's own, `join` and `fork` order the sum within that device's queue.
        """
        if grad is None:
            return
        device = grad.device
        foreign: DeviceQueue | None = None
        if not device.is_host and (producer is None or producer.device is not device):
            foreign = queue_of(device)
        producers = self.producers
        if self.values[position] is not None:
            if foreign is not None:
                foreign.join()
            if producers is not None:
                for other in producers:
                    if producer is None:
                        other.queue.join()
                    elif other is not producer:
                        producer.queue.wait_event(other.queue.record_event())
        self.add(position, grad, recorded, trace)
        if foreign is not None:
            foreign.fork()
        if producer is None:
            return
        if producers is None:
            self.producers = [producer]
        elif producer not in producers:
            producers.append(producer)

    def add_on_streams(
        self,
        position: i64,
        grad: TensorBase | None,
        recorded: bool,
        trace: Trace | None,
        producer: DeviceThread | None,
        consumer: Node,
    ) -> None:
        """`add_in_order`, where some device has streams.

        The gradient comes from the calling thread's current stream of its device. Two of them are
        added on the stream that the consumer works on, or, if that is another device's, on the one
        that the first came from. No mark is made where one stream does it all.
        """
        if grad is None:
            return
        streams = streams_of(grad.device)
        if streams is None:
            if producer is not None and producer.streams:
                producer = None  # its work is not in the order of its queue
            self.add_in_order(position, grad, recorded, trace, producer)
            return
        here = streams.current()
        goal = stream_on(consumer, grad.device)
        if goal is not None and goal != here:
            note_mismatch(consumer)
        arrivals = self.arrivals
        if arrivals is None:
            arrivals = {}
            self.arrivals = arrivals
        known = arrivals.get(position)
        if known is None or self.values[position] is None:
            self.values[position] = grad
            arrivals[position] = Arrival(here, None if here == goal else here.record_event())
            return
        place = known.stream if goal is None else goal
        if place != here:
            place.wait_event(here.record_event())
            lend(grad, place)
        self._order(position, known, place)
        if place == here:
            self.add(position, grad, recorded, trace)
        else:
            streams.use(place)
            try:
                self.add(position, grad, recorded, trace)
            finally:
                streams.use(here)
        arrivals[position] = Arrival(place, None if place == goal else place.record_event())

    def _order(self, position: i64, known: Arrival, stream: Any) -> None:
        value = self.values[position]
        if value is not None:
            known.order(value, stream)

    def order_streams(self) -> None:
        """Let the calling thread's current streams wait for the gradients."""
        arrivals = self.arrivals
        if arrivals is None:
            return
        for position, known in arrivals.items():
            value = self.values[position]
            if value is not None:
                streams = streams_of(value.device)
                if streams is not None:
                    known.order(value, streams.current())

    def join_devices(self, worker: DeviceThread | None) -> None:
        """Order the calling thread's work on other devices after the gradients that these still
        compute."""
        for value in self.values:
            if value is not None:
                device = value.device
                if not device.is_host and (worker is None or worker.device is not device):
                    queue_of(device).join()

    def order_before(self, consumer: DeviceThread) -> None:
        """Let a device's work from now on wait for the gradients that other devices work on."""
        if self.producers is not None:
            for producer in self.producers:
                if producer is not consumer:
                    consumer.queue.wait_event(producer.queue.record_event())

    def device(self) -> Device:
        """The device that runs the node: the first one that is not the host."""
        for value in self.values:
            if value is not None and not value.device.is_host:
                return value.device
        return CPU


def _fits(tensor: TensorBase, other: TensorBase) -> bool:
    return (
        tensor.dtype is other.dtype
        and tensor.device is other.device
        and sizes_of(tensor) == sizes_of(other)
    )


def _add_unseen(target: TensorBase, other: TensorBase, trace: Trace | None) -> bool:
    """`target += other` where no tensor shows it: no write is counted, nothing is recorded.

    Only if the backend itself writes in place, since otherwise it costs as much as a new tensor.
    Not for dual tensors, whose tangents must be added too, nor for lazily conjugated ones.
    """
    if (target._keyset | other._keyset) & (keys.FORWARD_AD_BIT | keys.MATH_BITS):
        return False
    below = target._keyset & keys.AFTER_AD_INPLACE_OR_VIEW
    kernel = OP_add__Tensor.lookup_dense(below)
    if not isinstance(kernel, InplaceKernel) or kernel.raw is None:
        return False
    if trace is None:
        kernel.compute(target, (other, 1))
    else:
        trace.dispatch("call", OP_add__Tensor, below, (target, other, 1))
    return True
