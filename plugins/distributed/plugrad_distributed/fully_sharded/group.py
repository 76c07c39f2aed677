"""ParameterGroup: the parameters of one call of `fully_shard`, gathered and freed together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.fully_sharded.gathering import gathered
from plugrad_distributed.fully_sharded.layout import Layout
from plugrad_distributed.fully_sharded.parameters import ShardedParameter
from plugrad_distributed.fully_sharded.policies import (
    AllGather,
    DefaultAllGather,
    MixedPrecisionPolicy,
)
from plugrad_distributed.fully_sharded.reduction import GradientReducer
from plugrad_distributed.fully_sharded.saving import saving_notes
from plugrad_distributed.groups.process_group import ProcessGroup
from plugrad_distributed.groups.work import Work
from plugrad_distributed.mesh.device_mesh import DeviceMesh

if TYPE_CHECKING:
    from plugrad_distributed.fully_sharded.context import Context

__all__ = ["ParameterGroup", "Use"]

Stamp = tuple[tuple[int, ...], ...]


class Use:
    """One forward that used the gathered parameters of a group.

    Attributes:
        freed_by_inputs: the gradients of the module's inputs mark the end of its backward.
    """

    def __init__(self, group: ParameterGroup) -> None:
        self.group = group
        self.stamp = group.stamp()
        self.freed_by_inputs = False

    def look_up(self, index: int) -> Tensor:
        """A parameter, looked up in backward.

        Raises:
            RuntimeError: it was written to since forward.
        """
        group = self.group
        parameter = group.parameters[index]
        if parameter.version != self.stamp[index]:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an "
                f"inplace operation: parameter {parameter.name!r} of {group.name} was written to "
                "between forward and backward"
            )
        group.expect_end()
        return group.wholes()[index]


def _version(tensor: Tensor) -> int:
    """How often a tensor was written to; inference tensors have no count."""
    return -1 if tensor.is_inference() else tensor._version


class ParameterGroup:
    """Parameters that are gathered and freed together.

    Most of the time each rank has only a part of each. `start` begins to gather the whole
    parameters, `wholes` waits for them, `reshard` frees them.

    Attributes:
        parameters: the parameters, in the order of flat tensors.
        reducer: the reducer of their gradients.
        name: the name of the sharded module, for messages.
        context: the context of the whole model; None before its first forward.
        reshard_after_forward, reshard_after_backward: when whole parameters are freed.
        neighbours: ranks that together keep whole parameters between forward and backward, or None.
        collective: gathers the parts.
    """

    def __init__(
        self,
        parameters: Sequence[ShardedParameter],
        mesh: DeviceMesh,
        policy: MixedPrecisionPolicy,
        name: str,
    ) -> None:
        self.parameters = list(parameters)
        self.name = name
        self.dtype = policy.param_dtype
        self.shards = mesh.get_group(mesh.ndim - 1)
        replicas = mesh.get_group(0) if mesh.ndim == 2 else None
        self.reducer = GradientReducer(self.shards, replicas, policy.reduce_dtype)
        self.layout = Layout([one.slot for one in self.parameters], self.shards.size())
        self.context: Context | None = None
        self.reshard_after_forward = True
        self.reshard_after_backward = True
        self.neighbours: ProcessGroup | None = None
        self.unshard_in_backward = True
        self.collective: AllGather = DefaultAllGather()
        self._work: Work | None = None
        self._flat: Tensor | None = None
        self._wholes: list[Tensor] | None = None
        # The version of the gathered parts.
        self._gathered: Stamp = ()
        # This rank's share of the gathered parameters, for its neighbours.
        self._share: Tensor | None = None
        self._shown = False
        # How many running forwards use the whole parameters.
        self._lent = 0

    def stamp(self) -> Stamp:
        """Changes with each write to a parameter."""
        return tuple(parameter.version for parameter in self.parameters)

    @property
    def is_gathered(self) -> bool:
        """Whether whole parameters are available."""
        return self._wholes is not None

    @property
    def is_underway(self) -> bool:
        """Whether the parameters are being gathered."""
        return self._flat is not None

    # Gathering

    def start(self) -> None:
        """Begin to gather the parameters, unless they are available or being gathered."""
        if not self._shown and not self._lent:
            for parameter in self.parameters:
                parameter.adopt()
        if self._lent and self.is_gathered:
            return
        stamp = self.stamp()
        if (self.is_gathered or self.is_underway) and self._gathered == stamp:
            return
        share = self._share if self._gathered == stamp else None
        self.reshard()
        self._gathered, self._share = stamp, share
        if share is not None:
            assert self.neighbours is not None
            self._gather(share, self.neighbours)
            return
        locals_ = [parameter.local for parameter in self.parameters]
        for parameter, local in zip(self.parameters, locals_, strict=True):
            if local.is_meta:
                raise RuntimeError(
                    f"fully_shard: parameter {parameter.name!r} is on the device meta: give it "
                    "memory by to_empty() and values by load_state_dict() before forward"
                )
        dtype = self.dtype or locals_[0].dtype
        device = locals_[0].device

        def allocate(size: int) -> Tensor:
            return self.collective.allocate((size,), dtype=dtype, device=device)

        with plugrad.no_grad():
            self._gather(self.layout.join_shards(locals_, allocate), self.shards)

    def _gather(self, sent: Tensor, ranks: ProcessGroup) -> None:
        """Begin to gather a part from each of these ranks, which together have everything."""
        size = self.layout.size * self.layout.count
        collective = self.collective
        with plugrad.no_grad():
            self._flat = collective.allocate((size,), dtype=sent.dtype, device=sent.device)
            self._work = collective(self._flat, sent, ranks, async_op=True)

    def wholes(self) -> list[Tensor]:
        """Wait for the gathered parameters and return them."""
        if self._wholes is None:
            self.start()
            self._wait()
            assert self._flat is not None
            with plugrad.no_grad():
                found = self.layout.split_gathered(self._flat)
                self._wholes = [
                    parameter.in_forward(one)
                    for parameter, one in zip(self.parameters, found, strict=True)
                ]
                self._keep_share(self._flat)
            self._flat = None
        return self._wholes

    def _keep_share(self, flat: Tensor) -> None:
        """Keep the share that neighbours will gather for backward."""
        neighbours = self.neighbours
        if neighbours is None or self._share is not None:
            return
        size = flat.numel() // neighbours.size()
        self._share = flat.narrow(0, size * neighbours.rank(), size).clone()

    def _wait(self) -> None:
        work, self._work = self._work, None
        if work is not None:
            work.wait()

    def reshard(self, keep_share: bool = False) -> None:
        """Free the gathered parameters; modules then have the sharded ones.

        Args:
            keep_share: keep the share that neighbours need to gather them again.
        """
        if self._lent:
            return
        self.hide()
        self._wait()
        self._wholes = self._flat = None
        if not keep_share:
            self._share = None

    # What modules have

    def show(self) -> None:
        """Set the gathered parameters in the modules, until `hide` or `reshard`."""
        if self._lent or self._shown:
            return
        with plugrad.enable_grad():
            outputs = gathered(self, Use(self))
        self._shown = True
        self._install(outputs)

    def hide(self) -> None:
        """Set the sharded parameters in the modules."""
        if self._shown:
            self._shown = False
            self._install([parameter.sharded for parameter in self.parameters])

    def _install(self, tensors: Sequence[Tensor]) -> None:
        for parameter, tensor in zip(self.parameters, tensors, strict=True):
            parameter.install(tensor)

    @contextmanager
    def lend(self) -> Iterator[Use]:
        """Context manager: modules have the gathered parameters, and the group receives their
        gradients.

        Raises:
            RuntimeError: on leaving, a parameter was written to.
        """
        self.start()
        use = Use(self)
        outputs = gathered(self, use)
        versions = [_version(output) for output in outputs]
        before = [parameter.installed() for parameter in self.parameters]
        self._install(outputs)
        self._lent += 1
        try:
            with saving_notes(outputs, use.look_up):
                yield use
        finally:
            self._lent -= 1
            self._install(before)
        for parameter, output, version in zip(self.parameters, outputs, versions, strict=True):
            if _version(output) != version:
                raise RuntimeError(
                    f"fully_shard: forward wrote to the gathered parameter {parameter.name!r}, "
                    "which is freed afterwards. Write to the sharded parameter outside of forward"
                )

    # Backward

    def expect_end(self) -> None:
        """Register this group for the end of the running backward pass."""
        if self.context is not None:
            self.context.expect_end()

    @property
    def has_fixed(self) -> bool:
        """Whether a parameter gets no gradient."""
        return any(not parameter.sharded.requires_grad for parameter in self.parameters)

    def backward_is_over(self) -> None:
        """The backward of a forward no longer needs the parameters."""
        if self.reshard_after_backward:
            self.reshard()
        elif not self._lent:
            self.hide()

    def gradients_arrived(self, use: Use, grads: list[Tensor | None]) -> None:
        """The gradients of one forward are complete: reduce them, or keep them."""
        self.expect_end()
        dtype = self.dtype or self.parameters[0].sharded.dtype
        for index, grad in enumerate(grads):
            if grad is not None:
                grads[index] = self.parameters[index].own_gradient(grad)
                del grad
        if not (use.freed_by_inputs and self.has_fixed):
            self.backward_is_over()
        if not self.reducer.enabled:
            self.reducer.keep(grads)
            return
        self.reduce(grads, dtype)

    def reduce(self, grads: list[Tensor | None], dtype: Any = None) -> None:
        """Start to reduce gradients, after earlier reductions have progressed."""
        context = self.context
        if context is not None:
            context.make_room()
        reduction = self.reducer.start(self.parameters, grads, dtype)
        if reduction is None:
            return
        if context is None:
            reduction.finish()
        else:
            context.underway.append(reduction)
