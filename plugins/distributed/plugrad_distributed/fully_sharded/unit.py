"""Unit: the modules of one call of `fully_shard`, and the hooks around their forward and
backward."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad.autograd.graph import register_multi_grad_hook
from plugrad_distributed.data_parallel.sink import mapped
from plugrad_distributed.fully_sharded.context import Context, in_backward
from plugrad_distributed.fully_sharded.group import ParameterGroup, Use
from plugrad_distributed.fully_sharded.policies import MixedPrecisionPolicy

__all__ = ["Unit", "unit_of"]

ATTRIBUTE = "_fully_shard_unit"


def unit_of(module: Any) -> Unit | None:
    """The unit of a module that was itself passed to `fully_shard`."""
    found: Unit | None = vars(module).get(ATTRIBUTE)
    return found


def _cast(value: Any, dtype: Any) -> Any:
    """Nested values, with floating point tensors cast to a dtype."""

    def one(tensor: Tensor) -> Tensor:
        return tensor.to(dtype) if tensor.is_floating_point() else tensor

    return mapped(value, one)


def _tensors_in(value: Any) -> list[Tensor]:
    """The tensors in nested lists, tuples and dicts."""
    found: list[Tensor] = []

    def note(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    mapped(value, note)
    return found


class Unit:
    """The modules of one call of `fully_shard`.

    Attributes:
        modules: usually one.
        group: their parameters, except other units' parameters; None if there are none left.
        keeps_if_root: whether `reshard_after_forward` was left out, so that it depends on whether
            the unit is the root.
        forward_prefetch, backward_prefetch: units to prefetch, in place of the next.
    """

    def __init__(
        self, modules: Sequence[Any], policy: MixedPrecisionPolicy, keeps_if_root: bool
    ) -> None:
        self.modules = list(modules)
        self.policy = policy
        self.keeps_if_root = keeps_if_root
        self.group: ParameterGroup | None = None
        self.context: Context | None = None
        self.is_root = False
        self.forward_prefetch: list[Unit] = []
        self.backward_prefetch: list[Unit] = []
        # Modules that have not run yet in this forward.
        self._left: list[Any] = []
        for module in self.modules:
            object.__setattr__(module, ATTRIBUTE, self)

    # The model

    def ready(self) -> Context:
        """The context; at the first forward this unit becomes the root of a new one.

        Raises:
            RuntimeError: the unit has several modules, or a unit below has a context already.
        """
        if self.context is not None:
            return self.context
        if len(self.modules) > 1:
            raise RuntimeError(
                "fully_shard: forward must begin at one module, got a call of one of the "
                f"{len(self.modules)} modules that were given together. Apply fully_shard to the "
                "module around them"
            )
        units: list[Unit] = []
        for name, module in self.modules[0].named_modules():
            unit = unit_of(module)
            if unit is None or unit in units:
                continue
            if unit.context is not None:
                raise RuntimeError(
                    f"fully_shard: forward of {name!r} ran before forward of the module around it. "
                    "Run forward of the root module first"
                )
            units.append(unit)
        self.is_root = True
        self.context = Context(units)
        for unit in units:
            unit.context = self.context
            if unit.group is not None:
                unit.group.context = self.context
        if self.keeps_if_root and self.group is not None:
            self.group.reshard_after_forward = False
        return self.context

    # Forward

    def call(
        self,
        module: Any,
        forward: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Run `forward` of a module with gathered parameters."""
        context = self.ready()
        recomputes = in_backward()
        outermost = not recomputes and context.enter(self)
        try:
            if self.policy.cast_forward_inputs and self.policy.param_dtype is not None:
                args = _cast(args, self.policy.param_dtype)
                kwargs = _cast(kwargs, self.policy.param_dtype)
            if recomputes:
                output = self._recompute(forward, args, kwargs)
            else:
                output = self._run(context, module, forward, args, kwargs)
        finally:
            if outermost:
                context.leave()
        if self.policy.output_dtype is not None:
            output = _cast(output, self.policy.output_dtype)
        return output

    def _recompute(
        self, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Forward within backward: the gathered parameters are also needed afterwards."""
        if self.group is None:
            return forward(*args, **kwargs)
        self.group.expect_end()
        with self.group.lend():
            return forward(*args, **kwargs)

    def _run(
        self,
        context: Context,
        module: Any,
        forward: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        first = not self._left
        if first:
            self._left = list(self.modules)
        group = self.group
        if group is None:
            output = forward(*args, **kwargs)
        else:
            with group.lend() as use:
                if first:
                    self._gather_ahead(context, group)
                _watch_inputs(use, (args, kwargs))
                output = forward(*args, **kwargs)
        self._left = [one for one in self._left if one is not module]
        if not self._left:
            self._after_forward()
        self._watch_outputs(output)
        return output

    def _gather_ahead(self, context: Context, group: ParameterGroup) -> None:
        following = context.next_in_forward(group)
        if self.forward_prefetch:
            _start(self.forward_prefetch)
        elif following is not None:
            following.start()

    def _after_forward(self) -> None:
        group = self.group
        if group is None:
            return
        if plugrad.is_grad_enabled():
            assert self.context is not None
            self.context.forward_ended(group)
        # Tensors from inference mode cannot be saved for backward.
        if group.reshard_after_forward or plugrad.is_inference_mode_enabled():
            group.reshard(keep_share=plugrad.is_grad_enabled())

    def end_partial(self) -> None:
        """The forward of the model has ended, whether or not all modules of the unit ran."""
        if self._left:
            self._left = []
            self._after_forward()

    def forget_partial(self) -> None:
        """Clear the record of which modules ran."""
        self._left = []

    # Backward

    def _watch_outputs(self, output: Any) -> None:
        if not plugrad.is_grad_enabled():
            return
        call = _Backward(self)
        for tensor in _tensors_in(output):
            if tensor.requires_grad:
                tensor.register_hook(call)

    def before_backward(self, first: bool) -> None:
        """The gradient of an output has arrived."""
        context = self.context
        assert context is not None
        context.expect_end()
        group = self.group
        if group is None or not group.unshard_in_backward:
            return
        group.start()
        group.wholes()
        group.show()
        if not first:
            return
        following = context.next_in_backward(group)
        if self.backward_prefetch:
            _start(self.backward_prefetch)
        elif following is not None and following.unshard_in_backward:
            following.start()


class _Backward:
    """The hook on the outputs of one forward."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.begun = False

    def __call__(self, grad: Tensor) -> None:
        first, self.begun = not self.begun, True
        self.unit.before_backward(first)


def _start(units: Sequence[Unit]) -> None:
    for group in _groups(units):
        group.start()


def _groups(units: Sequence[Unit]) -> Iterator[ParameterGroup]:
    for unit in units:
        if unit.group is not None:
            yield unit.group


def _watch_inputs(use: Use, inputs: Any) -> None:
    """Free the parameters of a group when the gradients of its module's inputs are computed. Hooks
    on leaves would stay, so those wait for the end of the backward pass."""
    if not plugrad.is_grad_enabled():
        return
    tensors = [tensor for tensor in _tensors_in(inputs) if tensor.grad_fn is not None]
    if tensors:
        use.freed_by_inputs = True
        group = use.group
        register_multi_grad_hook(tensors, lambda grads: group.backward_is_over())
