"""DistributedDataParallel: a module with gradients that are averaged over the ranks."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.data_parallel.arguments import (
    bucket_limits,
    check_comm_hook,
    check_mixed_precision,
    check_parameters,
    checked_delays,
    group_of,
)
from plugrad_distributed.data_parallel.delayed import DelayedReduction
from plugrad_distributed.data_parallel.joining import DDPJoinHook, common_rank, sum_over
from plugrad_distributed.data_parallel.mixed_precision import (
    LowPrecision,
    _MixedPrecision,
    cast_buffers,
)
from plugrad_distributed.data_parallel.module_states import (
    broadcast_coalesced,
    check_same_parameters,
    find_tensors,
)
from plugrad_distributed.data_parallel.reducer import CommHook, Reducer
from plugrad_distributed.data_parallel.sink import through_sink
from plugrad_distributed.distributed.algorithms.join import Join, Joinable, JoinHook
from plugrad_distributed.distributed.queries import get_default_group
from plugrad_distributed.groups.process_group import ProcessGroup
from plugrad_nn.nn import parallel
from plugrad_nn.nn.module import Module

__all__ = ["DistributedDataParallel", "_MixedPrecision"]


class DistributedDataParallel(Module, Joinable):
    """A copy of a module on every rank, each with its part of the batch. Gradients are averaged
    over all ranks, so the ranks' parameters stay the same.

    Parameters and buffers start with the first rank's values. Gradients are collected in buckets,
    which are reduced while backward still computes others. Names in the state dict begin with
    "module.". In a group of one process, this only calls the module.

    Args:
        module: the model. Parameters that require grad must be the same on all ranks.
        device_ids: the device of the model, or None; inputs are moved to it. It must be None for
            modules on the CPU.
        output_device: as `device_ids`.
        dim: not used.
        broadcast_buffers: copy the first rank's buffers to the others before each forward, and at
            the start. PyTorch prefers `forward_sync_buffers`.
        init_sync: compare parameters at the start, and copy those of the first rank.
        process_group: the ranks; all by default.
        bucket_cap_mb: the size of buckets in MiB; by default 25, and 1 for the first bucket.
        find_unused_parameters: allow that some parameters get no gradient in an iteration. Each
            iteration then walks the graph.
        check_reduction: deprecated and ignored.
        gradient_as_bucket_view: gradients are views of the buckets, which saves a copy of them.
        static_graph: declare that the same parameters get gradients, equally often, in every
            iteration. It allows reentrant checkpoints and unused parameters, at no cost after the
            first iteration.
        device_mesh: a mesh of one dimension, instead of `process_group`.
        bucket_cap_mb_list: the sizes of the first buckets; `bucket_cap_mb` is the size of all
            others.
        forward_sync_buffers: as `broadcast_buffers`, but only before forward.
        delay_all_reduce_named_params: parameters and their names in the module, whose gradients are
            averaged together, once that of `param_to_hook_all_reduce` arrives. Its gradient must be
            later than theirs. Communication hooks, `static_graph`, `find_unused_parameters` and
            joins are not for them.
        param_to_hook_all_reduce: see `delay_all_reduce_named_params`.
        mixed_precision: the dtypes of forward and backward, of averages, and of buffers: see
            `_MixedPrecision`.
        skip_all_reduce_unused_params, batched_grad_copy: accepted and ignored.

    Raises:
        RuntimeError: no parameter requires grad, one has no data yet (lazy modules), or parameters
            differ between ranks.
        ValueError: parameters are on several types of devices, or `device_ids` do not fit.

    >>> import plugrad, plugrad.distributed as dist
    >>> def program():
    ...     model = plugrad.nn.parallel.DistributedDataParallel(plugrad.nn.Linear(1, 1, bias=False))
    ...     model(plugrad.tensor([[dist.get_rank() + 1.0]])).sum().backward()
    ...     return model.module.weight.grad
    >>> dist.run_ranks(program, 2)
    [tensor([[1.5000]]), tensor([[1.5000]])]
    """

    module: Any

    def __init__(
        self,
        module: Any,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: ProcessGroup | None = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Sequence[tuple[str, Tensor]] | None = None,
        param_to_hook_all_reduce: Tensor | None = None,
        mixed_precision: _MixedPrecision | None = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: Sequence[float] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        Module.__init__(self)
        Joinable.__init__(self)
        delayed = checked_delays(delay_all_reduce_named_params, param_to_hook_all_reduce)
        check_mixed_precision(mixed_precision)
        self.process_group = group_of(process_group, device_mesh)
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self.parameters_to_ignore.update(name for name, _ in delayed)
        self.module = module
        own = [p for _, p in self._named(module.named_parameters())]
        own += [p for _, p in delayed]
        check_parameters(own)
        self._place(own, device_ids, output_device)
        self.dim = dim
        if check_reduction:
            warnings.warn(
                "The `check_reduction` argument in `DistributedDataParallel` module is "
                "deprecated. Please avoid using it.",
                FutureWarning,
                stacklevel=2,
            )
        at_init = True
        if forward_sync_buffers is None:
            at_init = forward_sync_buffers = broadcast_buffers in (None, True)
        self.forward_sync_buffers = bool(forward_sync_buffers)
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self._divide_by_initial_world_size = True
        self._limits = bucket_limits(bucket_cap_mb, bucket_cap_mb_list)
        self._comm_hooks: list[tuple[CommHook, Any]] = []
        self.mixed_precision = mixed_precision
        self._low_precision: LowPrecision | None = None
        self.reducer: Reducer | None = None
        self._delayed: DelayedReduction | None = None
        # Hooks and buckets are needed only with several ranks.
        if self.process_group.size() > 1:
            if init_sync:
                check_same_parameters(self._reduced_parameters(), self.process_group)
                self._send_states(0, buffers=at_init)
            self._make_reducer()
            if delayed and param_to_hook_all_reduce is not None:
                self._delay(delayed, param_to_hook_all_reduce, init_sync)
        if mixed_precision is not None:
            self._prepare_precision(mixed_precision)

    def _delay(self, named: list[tuple[str, Tensor]], trigger: Tensor, init_sync: bool) -> None:
        if init_sync:
            check_same_parameters(named, self.process_group)
            broadcast_coalesced([p.detach() for _, p in named], self.process_group, 0)
        self._delayed = DelayedReduction(named, trigger, self.process_group)

    def _prepare_precision(self, dtypes: _MixedPrecision) -> None:
        if dtypes.param_dtype is not None:
            self._low_precision = LowPrecision(
                self.module, dtypes.param_dtype, self.parameters_to_ignore
            )
        if dtypes.buffer_dtype is not None:
            cast_buffers(self.module, dtypes.buffer_dtype, self.parameters_to_ignore)

    @property
    def broadcast_buffers(self) -> bool:
        """`forward_sync_buffers`."""
        return self.forward_sync_buffers

    @broadcast_buffers.setter
    def broadcast_buffers(self, value: bool) -> None:
        self.forward_sync_buffers = value

    def _place(self, own: Sequence[Tensor], device_ids: Any, output_device: Any) -> None:
        """Check the devices of the parameters, and store the device to which inputs are moved."""
        devices = {p.device for p in own}
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        types = {device.type for device in devices}
        if len(types) != 1:
            raise ValueError(
                "DistributedDataParallel's input module must be on the same type of devices, but "
                f"input module parameters locate in {types}."
            )
        self.device = own[0].device
        self.device_type = self.device.type
        self.is_multi_device_module = len(devices) > 1
        self.device_ids: list[Any] | None = None
        self.output_device: Any = None
        if not device_ids or self.device_type == "cpu" or self.is_multi_device_module:
            if device_ids or output_device is not None:
                raise ValueError(
                    "DistributedDataParallel device_ids and output_device arguments only work "
                    "with single-device/multiple-device GPU modules or CPU modules, but got "
                    f"device_ids {device_ids}, output_device {output_device}, and module "
                    f"parameters {devices}."
                )
            return
        self.device_ids = parallel.devices_of(device_ids, self.device_type)
        (self.output_device,) = parallel.devices_of(
            [device_ids[0] if output_device is None else output_device], self.device_type
        )

    def _named(self, pairs: Any) -> list[tuple[str, Any]]:
        """Parameters or buffers and their names, without the ignored ones."""
        return [(name, each) for name, each in pairs if name not in self.parameters_to_ignore]

    def _reduced_parameters(self) -> list[tuple[str, Tensor]]:
        """Parameters that require grad, each once."""
        return [
            (name, p) for name, p in self._named(self.module.named_parameters()) if p.requires_grad
        ]

    def _buffers_to_sync(self) -> list[Tensor]:
        """Collected each time, because modules may have other buffers by then."""
        return [buffer for _, buffer in self._named(self.module.named_buffers())]

    def _send_states(self, root: int, *, buffers: bool) -> None:
        """Copy parameters and buffers of one rank of the group to the others."""
        tensors = [p.detach() for _, p in self._named(self.module.named_parameters())]
        broadcast_coalesced(
            tensors + (self._buffers_to_sync() if buffers else []), self.process_group, root
        )

    def _make_reducer(self) -> None:
        self.reducer = Reducer(
            self._reduced_parameters(),
            self.process_group,
            self._limits,
            as_view=self.gradient_as_bucket_view,
            find_unused=self.find_unused_parameters,
            static_graph=self.static_graph,
            dtype=self.mixed_precision and self.mixed_precision.averages_dtype,
        )
        if self._comm_hooks:
            hook, state = self._comm_hooks[0]
            self.reducer.comm_hook = state, hook

    # Calls

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if self.device_ids:
            moved = parallel.scatter([list(inputs), kwargs], self.device_ids)
            inputs, kwargs = tuple(moved[0][0]), moved[0][1]
        reducer = self.reducer
        if reducer is None:
            return self._call(inputs, kwargs)
        with plugrad.autograd.profiler.record_function("DistributedDataParallel.forward"):
            self._before(reducer)
            return self._after(reducer, self._call(inputs, kwargs))

    def _call(self, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._low_precision is not None:
            return self._low_precision(inputs, kwargs)
        return self.module(*inputs, **kwargs)

    def _before(self, reducer: Reducer) -> None:
        reducer.divisor = self.process_group.size()
        work = Join.notify_join_context(self)
        if work is not None:
            active = int(work.result()[0].item())
            if not self._divide_by_initial_world_size:
                reducer.divisor = active
        if plugrad.is_grad_enabled():
            reducer.rebuild()
        joining = self._join_config.enable
        if self._syncs_buffers():
            # The first rank may have run out of inputs, so its buffers may be old.
            root = common_rank(self, True) if joining else 0
            self._sync_buffers(root)
        if joining:
            sum_over(self, int(self.require_backward_grad_sync))

    def _after(self, reducer: Reducer, output: Any) -> Any:
        if self._delayed is not None:
            self._delayed.expecting = self.require_backward_grad_sync
        if not (plugrad.is_grad_enabled() and self.require_backward_grad_sync):
            self.require_forward_param_sync = False
            unfinished_static = False
        else:
            self.require_forward_param_sync = True
            reducer.prepare(find_tensors(output) if reducer.find_unused else ())
            unfinished_static = self.static_graph and not reducer.is_learnt
        if plugrad.is_grad_enabled() and (reducer.find_unused or unfinished_static):
            return through_sink(output, reducer.begun)
        return output

    def _syncs_buffers(self) -> bool:
        return (
            self.require_forward_param_sync
            and self.forward_sync_buffers
            and bool(self._buffers_to_sync())
        )

    def will_sync_module_buffers(self) -> bool:
        """Whether the next forward copies a rank's buffers to the others."""
        return self.reducer is not None and self._syncs_buffers()

    def _sync_buffers(self, root: int) -> None:
        buffers = self._buffers_to_sync()
        # An earlier forward's graph may have saved a buffer and still run backward.
        kept: Any = tuple(buffers)
        with plugrad.autograd._unsafe_preserve_version_counter(kept):
            broadcast_coalesced(buffers, self.process_group, root)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """A block in which gradients are accumulated and not reduced. The first forward and
        backward after it reduce the accumulated gradients.

        >>> import plugrad, plugrad.distributed as dist
        >>> def program():
        ...     layer = plugrad.nn.Linear(1, 1, bias=False)
        ...     net = plugrad.nn.parallel.DistributedDataParallel(layer)
        ...     x = plugrad.tensor([[dist.get_rank() + 1.0]])
        ...     with net.no_sync():
        ...         net(x).sum().backward()
        ...     net(x).sum().backward()
        ...     return net.module.weight.grad.item()
        >>> dist.run_ranks(program, 2)
        [3.0, 3.0]
        """
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def expect_backward(self, outputs: Sequence[Tensor]) -> None:
        """Reduce in the coming backward pass although its forward ran within `no_sync()`. Pipeline
        stages use it, because their forward passes run ahead.

        Args:
            outputs: the outputs of that forward.

        Raises:
            NotImplementedError: the module was made with `static_graph=True`.
        """
        if self.static_graph:
            raise NotImplementedError(
                "DistributedDataParallel: static_graph=True is not supported in a pipeline, "
                "because forward passes run ahead of backward"
            )
        self.require_forward_param_sync = True
        if self._delayed is not None:
            self._delayed.expecting = True
        if self.reducer is not None:
            self.reducer.prepare(find_tensors(outputs) if self.reducer.find_unused else ())

    # Uneven inputs

    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Join:
        """Context manager around a training loop in which ranks have different numbers of inputs:
        see `plugrad.distributed.algorithms.Join`. At its end all ranks get the parameters of a rank
        that finished last.

        Args:
            divide_by_initial_world_size: divide sums of gradients by the number of all ranks;
                otherwise by the number of ranks that still have inputs.
            enable, throw_on_early_termination: see `Join`.
        """
        return Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook for `Join`; it takes the keyword `divide_by_initial_world_size`."""
        if self._delayed is not None:
            raise ValueError(
                "DistributedDataParallel: a module with delay_all_reduce_named_params cannot join: "
                "ranks without inputs could not take part in their reduction"
            )
        self._divide_by_initial_world_size = kwargs.get("divide_by_initial_world_size", True)
        return DDPJoinHook(self)

    @property
    def join_device(self) -> plugrad.device:
        """The device of the parameters."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The group."""
        return self.process_group

    # Communication hooks

    def register_comm_hook(self, state: Any, hook: CommHook) -> None:
        """Register a hook that communicates the gradients in place of the default average.

        Args:
            state: the first argument of the hook.
            hook: `hook(state, bucket)` gets a `GradBucket` and returns a `plugrad.futures.Future`
                of the averages, a tensor with the same number of elements. Register it once, before
                the first backward. See `plugrad.distributed.algorithms.ddp_comm_hooks`.

        Raises:
            TypeError: the hook is not callable.
            ValueError: its annotations name other types.
            RuntimeError: a hook is already registered.

        >>> import plugrad, plugrad.distributed as dist
        >>> from plugrad.distributed.algorithms.ddp_comm_hooks import default_hooks as default
        >>> def program():
        ...     net = plugrad.nn.parallel.DistributedDataParallel(plugrad.nn.Linear(1, 1))
        ...     net.register_comm_hook(None, default.fp16_compress_hook)
        ...     net(plugrad.ones(1, 1)).sum().backward()
        ...     return net.module.weight.grad
        >>> dist.run_ranks(program, 2)[0]
        tensor([[1.]])
        """
        check_comm_hook(hook)
        if self._comm_hooks:
            raise RuntimeError(
                "register_comm_hook or register_builtin_comm_hook can only be called once."
            )
        self._comm_hooks.append((hook, state))
        if self.reducer is None:
            # Even on one rank, a hook may change gradients.
            self._make_reducer()
        else:
            self.reducer.comm_hook = state, hook

    def _set_static_graph(self) -> None:
        """Set `static_graph=True` on an existing module, before the first iteration."""
        self.static_graph = True
        if self.reducer is not None:
            self._make_reducer()

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(
        module: Any, params_and_buffers_to_ignore: Sequence[str]
    ) -> None:
        """Exclude parameters and buffers, by their names in the module, before wrapping it."""
        module._ddp_params_and_buffers_to_ignore = list(params_and_buffers_to_ignore)

    # Copies

    def __getstate__(self) -> dict[str, Any]:
        world = sys.modules["plugrad_distributed.groups.world"].current_world()
        if self.process_group is not world.default:
            raise RuntimeError(
                "DDP Pickling/Unpickling are only supported when using DDP with the default "
                "process group. That is, when you have called init_process_group and have not "
                "passed process_group argument to DDP constructor"
            )
        state = self.__dict__.copy()
        if self._delayed is not None:
            raise RuntimeError(
                "DistributedDataParallel: a module with delay_all_reduce_named_params cannot be "
                "pickled"
            )
        del state["process_group"], state["reducer"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.process_group = get_default_group()
        self.reducer = None
        if self.process_group.size() > 1 or self._comm_hooks:
            self._make_reducer()
