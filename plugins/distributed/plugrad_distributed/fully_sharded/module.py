"""FSDPModule: the additional base class of a sharded module."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from plugrad import Tensor
from plugrad.nn import Module
from plugrad_distributed.fully_sharded.group import ParameterGroup
from plugrad_distributed.fully_sharded.handles import UnshardHandle
from plugrad_distributed.fully_sharded.policies import AllGather, ReduceScatter
from plugrad_distributed.fully_sharded.unit import Unit, unit_of
from plugrad_distributed.tensor.array import ShardedArray
from plugrad_distributed.tensor.backend import as_tensor
from plugrad_distributed.tensor.dtensor import array_of

__all__ = ["FSDPModule", "become_sharded", "register_fsdp_forward_method"]

_classes: dict[type, type] = {}


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

        >>> import plugrad, plugrad.distributed as dist
        >>> from plugrad.distributed.fsdp import fully_shard
        >>> def row_norms():
        ...     layer = fully_shard(plugrad.nn.Linear(3, 4))
        ...     layer.unshard()
        ...     # The weight is a whole tensor now, not a DTensor.
        ...     norms = layer.weight.detach().norm(dim=1)
        ...     layer.reshard()
        ...     return norms.shape
        >>> dist.run_ranks(row_norms, 2)[0]
        plugrad.Size([4])
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
        """Free the gathered parameters of this module's group.

        >>> import plugrad, plugrad.distributed as dist
        >>> from plugrad.distributed.fsdp import fully_shard
        >>> def part():
        ...     layer = fully_shard(plugrad.nn.Linear(3, 4), reshard_after_forward=False)
        ...     layer(plugrad.ones(1, 3))
        ...     layer.reshard()
        ...     return layer.weight.to_local().shape
        >>> dist.run_ranks(part, 2)[0]
        plugrad.Size([2, 3])
        """
        group = _unit(self).group
        if group is not None:
            group.reshard()

    def reset_iter_state(self) -> None:
        """Reset after an error in forward or backward. Unfinished gradients are lost. All ranks
        call it, on the root.

        Raises:
            RuntimeError: it is not the root.

        >>> import plugrad, plugrad.distributed as dist
        >>> from plugrad.distributed.fsdp import fully_shard
        >>> def recovered():
        ...     model = fully_shard(plugrad.nn.Linear(3, 4))
        ...     try:
        ...         model(plugrad.ones(1, 5))  # 5 features do not fit
        ...     except RuntimeError:
        ...         model.reset_iter_state()
        ...     return model(plugrad.ones(1, 3)).shape
        >>> dist.run_ranks(recovered, 2)[0]
        plugrad.Size([1, 4])
        """
        unit = _unit(self)
        if unit.context is not None:
            if not unit.is_root:
                raise RuntimeError("reset_iter_state must be called on the root FSDP module")
            unit.context.reset()

    # Settings

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Set whether the next backward pass waits for its gradients at the end; parameters get
        them only then. With False, the last of several passes waits for all.

        >>> import plugrad, plugrad.distributed as dist
        >>> from plugrad.distributed.fsdp import fully_shard
        >>> def accumulated():
        ...     model = fully_shard(plugrad.nn.Linear(1, 1, bias=False))
        ...     for microbatch in range(3):
        ...         model.set_is_last_backward(microbatch == 2)
        ...         model(plugrad.ones(1, 1)).sum().backward()
        ...     return model.weight.grad.full_tensor()
        >>> dist.run_ranks(accumulated, 2)[0]
        tensor([[3.]])
        """
        _unit(self).ready().is_last_backward = is_last_backward

    def set_requires_gradient_sync(
        self, requires_gradient_sync: bool, *, recurse: bool = True
    ) -> None:
        """Set whether gradients are reduced. With False they are kept unsharded, and added to the
        gradients of the next pass with reduction.

        Args:
            recurse: also for submodules.

        >>> import plugrad, plugrad.distributed as dist
        >>> from plugrad.distributed.fsdp import fully_shard
        >>> def accumulated():
        ...     model = fully_shard(plugrad.nn.Linear(1, 1, bias=False))
        ...     for microbatch in range(3):
        ...         # Reduce once, after the last microbatch.
        ...         model.set_requires_gradient_sync(microbatch == 2)
        ...         model(plugrad.ones(1, 1)).sum().backward()
        ...     return model.weight.grad.full_tensor()
        >>> dist.run_ranks(accumulated, 2)[0]
        tensor([[3.]])
        """
        for group in _groups(self, recurse):
            group.reducer.enabled = requires_gradient_sync
            group.reducer.all_reduces = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Set whether gradients are summed over the replicas of a 2-D mesh. With False each rank
        keeps its part of the sum over the other dimension, and adds it to the next pass's.

        >>> import plugrad, plugrad.distributed as dist
        >>> from plugrad.distributed.device_mesh import init_device_mesh
        >>> from plugrad.distributed.fsdp import fully_shard
        >>> def accumulated():
        ...     mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
        ...     model = fully_shard(plugrad.nn.Linear(1, 1, bias=False), mesh=mesh)
        ...     for microbatch in range(3):
        ...         model.set_requires_all_reduce(microbatch == 2)
        ...         model(plugrad.ones(1, 1)).sum().backward()
        ...     return model.weight.grad.full_tensor()
        >>> dist.run_ranks(accumulated, 4)[0]
        tensor([[3.]])
        """
        for group in _groups(self, recurse):
            group.reducer.all_reduces = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Set whether gathered parameters are freed after forward, and gathered again in backward.
        It replaces a number given to `fully_shard`.

        Raises:
            ValueError: it is not a bool.

        >>> import plugrad, plugrad.distributed as dist
        >>> from plugrad.distributed.fsdp import fully_shard
        >>> def shape_after_forward():
        ...     model = fully_shard(plugrad.nn.Linear(3, 4))
        ...     model.set_reshard_after_forward(True)
        ...     model(plugrad.ones(1, 3))
        ...     return model.weight.to_local().shape
        >>> dist.run_ranks(shape_after_forward, 2)[0]
        plugrad.Size([2, 3])
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
        gathers only if the parameters were written to.

        >>> import plugrad, plugrad.distributed as dist
        >>> from plugrad.distributed.fsdp import fully_shard
        >>> class Counting:
        ...     calls = 0
        ...     def allocate(self, size, *, dtype, device):
        ...         return plugrad.empty(size, dtype=dtype, device=device)
        ...     def __call__(self, output_tensor, input_tensor, group, async_op=False):
        ...         self.calls += 1
        ...         return dist.all_gather_into_tensor(output_tensor, input_tensor, group, async_op)
        >>> def gathers_of_two_passes(free):
        ...     model, gather = fully_shard(plugrad.nn.Linear(3, 4)), Counting()
        ...     model.set_custom_all_gather(gather)
        ...     model.set_reshard_after_backward(free)
        ...     for _ in range(2):
        ...         model(plugrad.ones(1, 3)).sum().backward()
        ...     return gather.calls
        >>> [dist.run_ranks(gathers_of_two_passes, 2, free)[0] for free in (True, False)]
        [2, 1]
        """
        for group in _groups(self, recurse):
            group.reshard_after_backward = reshard_after_backward

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Set whether parameters are gathered when backward begins, instead of when one is
        needed.

        >>> import plugrad, plugrad.distributed as dist
        >>> from plugrad.distributed.fsdp import fully_shard
        >>> def gradient():
        ...     model = fully_shard(plugrad.nn.Linear(1, 1, bias=False))
        ...     model.set_unshard_in_backward(False)
        ...     model(plugrad.ones(1, 1)).sum().backward()
        ...     return model.weight.grad.full_tensor()
        >>> dist.run_ranks(gradient, 2)[0]
        tensor([[1.]])
        """
        for group in _groups(self, False):
            group.unshard_in_backward = unshard_in_backward

    def set_modules_to_forward_prefetch(self, modules: Sequence[FSDPModule]) -> None:
        """Set the modules to prefetch while the forward of this one runs. By default it is the
        module that came next in the previous forward.

        >>> import plugrad, plugrad.distributed as dist
        >>> from plugrad.distributed.fsdp import fully_shard
        >>> def run():
        ...     model = plugrad.nn.Sequential(*[plugrad.nn.Linear(2, 2) for _ in range(3)])
        ...     for layer in model:
        ...         fully_shard(layer)
        ...     fully_shard(model)
        ...     # Two layers ahead instead of one.
        ...     model[0].set_modules_to_forward_prefetch([model[1], model[2]])
        ...     return model(plugrad.ones(1, 2)).shape
        >>> dist.run_ranks(run, 2)[0]
        plugrad.Size([1, 2])
        """
        _unit(self).forward_prefetch = _checked(modules)

    def set_modules_to_backward_prefetch(self, modules: Sequence[FSDPModule]) -> None:
        """Set the modules to prefetch while the backward of this one runs. By default it is the
        module with the forward that ended before this one's.

        >>> import plugrad, plugrad.distributed as dist
        >>> from plugrad.distributed.fsdp import fully_shard
        >>> def run():
        ...     model = plugrad.nn.Sequential(*[plugrad.nn.Linear(2, 2) for _ in range(3)])
        ...     for layer in model:
        ...         fully_shard(layer)
        ...     fully_shard(model)
        ...     model[2].set_modules_to_backward_prefetch([model[1], model[0]])
        ...     model(plugrad.ones(1, 2)).sum().backward()
        ...     return model[0].weight.grad.shape
        >>> dist.run_ranks(run, 2)[0]
        plugrad.Size([2, 2])
        """
        _unit(self).backward_prefetch = _checked(modules)

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Set the divisor of summed gradients, in place of the number of ranks.

        >>> import plugrad, plugrad.distributed as dist
        >>> from plugrad.distributed.fsdp import fully_shard
        >>> def gradient():
        ...     model = fully_shard(plugrad.nn.Linear(1, 1, bias=False))
        ...     model.set_gradient_divide_factor(1.0)  # sums, not means
        ...     model(plugrad.ones(1, 1)).sum().backward()
        ...     return model.weight.grad.full_tensor()
        >>> dist.run_ranks(gradient, 2)[0]
        tensor([[2.]])
        """
        for group in _groups(self, False):
            group.reducer.divisor = factor

    def set_reduce_scatter_unused_params(
        self, reduce_scatter_unused_params: bool, *, recurse: bool = True
    ) -> None:
        """Set whether the reduction includes parameters without a gradient, as zeros. Needed
        if ranks use different parameters of a group.

        >>> import plugrad, plugrad.distributed as dist
        >>> from plugrad.distributed.fsdp import fully_shard
        >>> class Either(plugrad.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.parts = plugrad.nn.ModuleList(plugrad.nn.Linear(1, 1) for _ in range(2))
        ...     def forward(self, x):
        ...         return self.parts[dist.get_rank()](x)
        >>> def gradients():
        ...     model = fully_shard(Either())
        ...     model.set_reduce_scatter_unused_params(True)
        ...     model(plugrad.ones(1, 1)).sum().backward()
        ...     return [part.bias.grad.full_tensor().item() for part in model.parts]
        >>> dist.run_ranks(gradients, 2)[0]
        [0.5, 0.5]
        """
        for group in _groups(self, recurse):
            group.reducer.with_unused = reduce_scatter_unused_params

    def set_custom_all_gather(self, comm: AllGather) -> None:
        """Set the object that gathers the parameters of this module's group: its
        `allocate(size, dtype=, device=)` returns memory, and it is called with output, input, group
        and `async_op`.

        >>> import plugrad, plugrad.distributed as dist
        >>> from plugrad.distributed.fsdp import fully_shard
        >>> class Counting:
        ...     calls = 0
        ...     def allocate(self, size, *, dtype, device):
        ...         return plugrad.empty(size, dtype=dtype, device=device)
        ...     def __call__(self, output_tensor, input_tensor, group, async_op=False):
        ...         self.calls += 1
        ...         return dist.all_gather_into_tensor(output_tensor, input_tensor, group, async_op)
        >>> def calls():
        ...     model, gather = fully_shard(plugrad.nn.Linear(3, 4)), Counting()
        ...     model.set_custom_all_gather(gather)
        ...     model(plugrad.ones(1, 3))
        ...     return gather.calls
        >>> dist.run_ranks(calls, 2)
        [1, 1]
        """
        for group in _groups(self, False):
            group.collective = comm

    def set_custom_reduce_scatter(self, comm: ReduceScatter) -> None:
        """Like `set_custom_all_gather`, for the gradients; the call also gets the operation.

        >>> import plugrad, plugrad.distributed as dist
        >>> from plugrad.distributed.fsdp import fully_shard
        >>> class Counting:
        ...     calls = 0
        ...     def allocate(self, size, *, dtype, device):
        ...         return plugrad.empty(size, dtype=dtype, device=device)
        ...     def __call__(self, output_tensor, input_tensor, group, op, async_op=False):
        ...         self.calls += 1
        ...         tensors = output_tensor, input_tensor
        ...         return dist.reduce_scatter_tensor(*tensors, op, group, async_op)
        >>> def calls():
        ...     model, reduce = fully_shard(plugrad.nn.Linear(3, 4)), Counting()
        ...     model.set_custom_reduce_scatter(reduce)
        ...     model(plugrad.ones(1, 3)).sum().backward()
        ...     return reduce.calls
        >>> dist.run_ranks(calls, 2)
        [1, 1]
        """
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
