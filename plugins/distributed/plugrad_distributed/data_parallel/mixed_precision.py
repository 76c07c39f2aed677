"""Computation in another dtype than the parameters'."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad._C import _current_autograd_node
from plugrad_distributed.data_parallel.module_states import find_tensors
from plugrad_distributed.data_parallel.reducer import after_pass
from plugrad_distributed.data_parallel.sink import mapped

__all__ = ["LowPrecision", "_MixedPrecision", "cast_buffers"]


@dataclass
class _MixedPrecision:
    """The dtypes of a `DistributedDataParallel` module; only floating point tensors are cast.

    Attributes:
        param_dtype: the dtype of parameters and inputs in forward and backward; by default their
            own. Parameters and their gradients keep their dtype, so the optimizer works in it.
        reduce_dtype: the dtype in which gradients are averaged; by default `param_dtype`.
        buffer_dtype: the dtype of buffers, which are cast when the module is wrapped; by default
            their own.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.nn.parallel.distributed import DistributedDataParallel, _MixedPrecision
    >>> def program():
    ...     net = DistributedDataParallel(
    ...         plugrad.nn.Linear(2, 1), mixed_precision=_MixedPrecision(plugrad.bfloat16)
    ...     )
    ...     y = net(plugrad.ones(1, 2))
    ...     y.sum().backward()
    ...     return y.dtype, net.module.weight.dtype, net.module.weight.grad.dtype
    >>> dist.run_ranks(program, 2)[0]
    (plugrad.bfloat16, plugrad.float32, plugrad.float32)
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None

    @property
    def averages_dtype(self) -> Any:
        """The dtype of buckets; None for their parameters' dtype."""
        return self.param_dtype if self.reduce_dtype is None else self.reduce_dtype


# A table of parameters of a module, a name in it, the parameter and its copy.
_Place = tuple[dict[str, Any], str, Any, Any]


class LowPrecision:
    """Calls a module with casts of its parameters in their places.

    The casts are in the graph, so gradients arrive at the parameters in the parameters' dtype. In
    backward they take the places again, because checkpoints call parts of the module then. At all
    other times the module has its parameters.

        forward: casts in ─ module ─ casts out      backward: casts in ─ nodes … ─ casts out

    Args:
        dtype: the dtype of the casts.
        ignored: the names of parameters that are not cast.
    """

    def __init__(self, module: Any, dtype: Any, ignored: Collection[str]) -> None:
        self.module = module
        self.dtype = dtype
        self.ignored = ignored
        self._inside = 0
        # Visits of an earlier round do not count.
        self._round = 0
        self._places: list[_Place] = []
        self._lock = threading.RLock()

    def __call__(self, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The module's output, for floating point inputs that are cast."""
        if self._inside and _current_autograd_node() is None:
            # A backward pass has failed, and something still holds its error.
            self._forget_visits()
        # Within backward, the module has casts already.
        places = self._places if self._inside else self._cast_parameters()
        inputs, kwargs = mapped((inputs, kwargs), self._cast)
        visit = _Visit(self, places)
        try:
            output = self.module(*inputs, **kwargs)
        finally:
            visit.end()
        if plugrad.is_grad_enabled():
            self._watch(output, places)
        return output

    def _cast(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.dtype) if tensor.is_floating_point() else tensor

    def _cast_parameters(self) -> list[_Place]:
        """All places of parameters, and one cast for each parameter."""
        casts: dict[int, Tensor] = {}
        found: list[_Place] = []
        for prefix, part in self.module.named_modules():
            for name, parameter in part._parameters.items():
                full = f"{prefix}.{name}" if prefix else name
                if parameter is None or full in self.ignored:
                    continue
                if id(parameter) not in casts:
                    casts[id(parameter)] = self._cast(parameter)
                found.append((part._parameters, name, parameter, casts[id(parameter)]))
        return found

    def _watch(self, output: Any, places: list[_Place]) -> None:
        """Notice the beginning and the end of backward passes from an output."""
        nodes = {id(t.grad_fn): t.grad_fn for t in find_tensors(output) if t.grad_fn is not None}

        def begins(_: Any) -> None:
            after_pass(_Visit(self, places).end)

        for node in nodes.values():
            node.register_prehook(begins)

    def enter(self, places: list[_Place]) -> int:
        """Put the casts in their places, for a first visit. Returns a number for `leave`."""
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._places = places
                for table, name, _, cast in places:
                    table[name] = cast
            return self._round

    def leave(self, number: int) -> None:
        """Put the parameters back, at the end of the last visit."""
        with self._lock:
            if number != self._round:
                return
            self._inside -= 1
            if self._inside == 0:
                self._restore()

    def _forget_visits(self) -> None:
        with self._lock:
            self._inside = 0
            self._round += 1
            self._restore()

    def _restore(self) -> None:
        for table, name, parameter, _ in self._places:
            table[name] = parameter
        self._places = []


class _Visit:
    """The time in which casts are in their places: from its creation to `end`, or until it is
    deleted, because a backward pass that fails calls nothing at its end."""

    def __init__(self, owner: LowPrecision, places: list[_Place]) -> None:
        self._owner: LowPrecision | None = owner
        self._round = owner.enter(places)

    def end(self) -> None:
        owner, self._owner = self._owner, None
        if owner is not None:
            owner.leave(self._round)

    def __del__(self) -> None:
        self.end()


def cast_buffers(module: Any, dtype: Any, ignored: Collection[str]) -> None:
    """Replace the floating point buffers of a module by casts."""
    for prefix, part in module.named_modules():
        for name, buffer in part._buffers.items():
            full = f"{prefix}.{name}" if prefix else name
            if buffer is not None and full not in ignored and buffer.is_floating_point():
                part._buffers[name] = buffer.to(dtype)
