"""FSDPModule: the additional base class of a sharded module."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from plugrad import Tensor
from plugrad.nn import Module
from plugrad_distributed.fully_sharded.group import ParameterGroup
from plugrad_distributed.fully_sharded.policies import AllGather, ReduceScatter
from plugrad_distributed.fully_sharded.unit import Unit, unit_of
from plugrad_distributed.tensor.array import ShardedArray
from plugrad_distributed.tensor.backend import as_tensor
from plugrad_distributed.tensor.dtensor import array_of

__all__ = ["FSDPModule", "UnshardHandle", "become_sharded", "register_fsdp_forward_method"]

_classes: dict[type, type] = {}


class UnshardHandle:
    """What `FSDPModule.unshard(async_op=True)` returns."""

    def __init__(self, group: ParameterGroup | None) -> None:
        self._group = group

    def wait(self) -> None:
        """Wait until the parameters are gathered and set in the module."""
        group, self._group = self._group, None
        if group is not None:
            group.wholes()
            group.show()


class FSDPModule:
    """A sharded module. `fully_shard` changes a module's class to one that derives from its own
    class and this one.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.fsdp import FSDPModule, fully_shard
    >>> def program():
    ...     layer = fully_shard(plugrad.nn.Linear(3, 4))
    ...     before = layer.weight.to_local().shape
    ...     layer.unshard()
    ...     during = layer.weight.shape
    ...     layer.reshard()
    ...     return type(layer).__name__, isinstance(layer, FSDPModule), before, during
    >>> dist.run_ranks(program, 2)[0]
    ('FSDPLinear', True, plugrad.Size([2, 3]), plugrad.Size([4, 3]))
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """An object of the module's own class, because containers create objects of their class."""
        own = cls.__mro__[2]
        return own(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _unit(self).call(self, super().__call__, args, kwargs)  # type: ignore[misc]  # Module's

    def __deepcopy__(self, memo: Any) -> NoReturn:
        raise AssertionError(
            "FSDP does not support deepcopy. Please use state dict for serialization."
        )

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise AssertionError(
            "FSDP does not support pickling. Please use state dict for serialization."
        )

    # Parameters

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather the parameters of this module's group, without those of submodules with their own
        groups.

        Args:
            async_op: return at once, with a handle to wait for. Forward also waits.
        """
        group = _unit(self).group
        if group is not None:
            group.start()
        handle = UnshardHandle(group)
        if async_op:
            return handle
        handle.wait()
        return None

    def reshard(self) -> None:
        """Free the gathered parameters of this module's group."""
        group = _unit(self).group
        if group is not None:
            group.reshard()

    def reset_iter_state(self) -> None:
        """Reset after an error in forward or backward. Unfinished gradients are lost. All ranks
        call it, on the root.

        Raises:
            RuntimeError: it is not the root.
        """
        unit = _unit(self)
        if unit.context is not None:
            if not unit.is_root:
                raise RuntimeError("reset_iter_state must be called on the root FSDP module")
            unit.context.reset()

    # Settings

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Set whether the next backward pass waits for its gradients at the end; parameters get
        them only then. With False, the last of several passes waits for all."""
        _unit(self).ready().is_last_backward = is_last_backward

    def set_requires_gradient_sync(
        self, requires_gradient_sync: bool, *, recurse: bool = True
    ) -> None:
        """Set whether gradients are reduced. With False they are kept unsharded, and added to those
        of the next pass with reduction.

        Args:
            recurse: also for submodules.
        """
        for group in _groups(self, recurse):
            group.reducer.enabled = requires_gradient_sync
            group.reducer.all_reduces = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Set whether gradients are summed over the replicas of a 2-D mesh. With False each rank
        keeps its part of the sum over the other dimension, and adds it to the next pass's."""
        for group in _groups(self, recurse):
            group.reducer.all_reduces = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Set whether gathered parameters are freed after forward, and gathered again in backward.
        It replaces a number given to `fully_shard`.

        Raises:
            ValueError: it is not a bool.
        """
        if not isinstance(reshard_after_forward, bool):
            raise ValueError(
                f"reshard_after_forward should be a bool, got {type(reshard_after_forward)}"
            )
        for unit in _units(self, recurse):
            unit.keeps_if_root = False
            if unit.group is not None:
                unit.group.reshard_after_forward = reshard_after_forward
                unit.group.neighbours = None

    def set_reshard_after_backward(
        self, reshard_after_backward: bool, *, recurse: bool = True
    ) -> None:
        """Set whether gathered parameters are freed after backward. With False, the next forward
        gathers only if the parameters were written to."""
        for group in _groups(self, recurse):
            group.reshard_after_backward = reshard_after_backward

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Set whether parameters are gathered when backward begins, instead of when one is
        needed."""
        for group in _groups(self, False):
            group.unshard_in_backward = unshard_in_backward

    def set_modules_to_forward_prefetch(self, modules: Sequence[FSDPModule]) -> None:
        """Set the modules to prefetch while the forward of this one runs. By default it is the
        module that came next in the previous forward."""
        _unit(self).forward_prefetch = _checked(modules)

    def set_modules_to_backward_prefetch(self, modules: Sequence[FSDPModule]) -> None:
        """Set the modules to prefetch while the backward of this one runs. By default it is the
        module with the forward that ended before this one's."""
        _unit(self).backward_prefetch = _checked(modules)

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Set the divisor of summed gradients, in place of the number of ranks."""
        for group in _groups(self, False):
            group.reducer.divisor = factor

    def set_reduce_scatter_unused_params(
        self, reduce_scatter_unused_params: bool, *, recurse: bool = True
    ) -> None:
        """Set whether the reduction includes parameters without a gradient, as zeros. Needed
        if ranks use different parameters of a group."""
        for group in _groups(self, recurse):
            group.reducer.with_unused = reduce_scatter_unused_params

    def set_custom_all_gather(self, comm: AllGather) -> None:
        """Set the object that gathers the parameters of this module's group: its
        `allocate(size, dtype=, device=)` returns memory, and it is called with output, input, group
        and `async_op`."""
        for group in _groups(self, False):
            group.collective = comm

    def set_custom_reduce_scatter(self, comm: ReduceScatter) -> None:
        """Like `set_custom_all_gather`, for the gradients; the call also gets the operation."""
        for group in _groups(self, False):
            group.reducer.collective = comm

    # Conversions

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        self.reshard()
        own: Any = super()
        return own._apply(_on_parts(fn), recurse)


def _on_parts(fn: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A function of tensors, applied to this rank's parts of DTensors."""

    def apply(tensor: Tensor) -> Tensor:
        array = array_of(tensor)
        if array is None:
            return fn(tensor)
        local = fn(array.local)
        if local is array.local:
            return tensor
        if local.device.type != array.mesh.device_type:
            raise ValueError(
                f"a sharded parameter stays on the device of its mesh, {array.mesh.device_type!r}, "
                f"got {local.device.type!r}"
            )
        return as_tensor(ShardedArray(local, array.mesh, array.placements, array.shape))

    return apply


def _unit(module: Any) -> Unit:
    found = unit_of(module)
    if found is None:
        raise AssertionError(f"No FSDP state found on {type(module).__name__}")
    return found


def _units(module: Any, recurse: bool) -> Iterator[Unit]:
    seen: list[Unit] = []
    for each in module.modules() if recurse else [module]:
        unit = unit_of(each)
        if unit is not None and unit not in seen:
            seen.append(unit)
            yield unit


def _groups(module: Any, recurse: bool) -> Iterator[ParameterGroup]:
    for unit in _units(module, recurse):
        if unit.group is not None:
            yield unit.group


def _checked(modules: Sequence[Any]) -> list[Unit]:
    for module in modules:
        if not isinstance(module, FSDPModule):
            raise ValueError(f"Expects FSDPModule but got {type(module)}: {module}")
    return [_unit(module) for module in modules]


def become_sharded(module: Module) -> None:
    """Change the class of a module to one that also derives from `FSDPModule`."""
    own = type(module)
    made = _classes.get(own)
    if made is None:
        made = _classes[own] = type(f"FSDP{own.__name__}", (FSDPModule, own), {})
    module.__class__ = made


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Make another method of a sharded module gather its parameters as forward does. Has no effect
    on other modules.

    Raises:
        ValueError: there is no such method.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.fsdp import fully_shard, register_fsdp_forward_method
    >>> class Doubling(plugrad.nn.Linear):
    ...     def twice(self, x):
    ...         return 2 * self(x) + self.bias.sum()
    >>> def program():
    ...     layer = fully_shard(Doubling(2, 2))
    ...     register_fsdp_forward_method(layer, "twice")
    ...     return layer.twice(plugrad.ones(1, 2)).shape
    >>> dist.run_ranks(program, 2)[0]
    plugrad.Size([1, 2])
    """
    if not isinstance(module, FSDPModule):
        return
    method = getattr(module, method_name, None)
    if method is None:
        raise ValueError(f"{type(module)} does not have a method {method_name}")

    @functools.wraps(method)
    def gathering(*args: Any, **kwargs: Any) -> Any:
        return _unit(module).call(module, method, args, kwargs)

    setattr(module, method_name, gathering)
