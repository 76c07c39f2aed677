"""Calling a module: `forward` between the module's own hooks and the global ones."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from plugrad import Tensor
from plugrad.autograd.graph import RemovableHandle
from plugrad_nn.nn.global_hooks import (
    BACKWARD,
    BACKWARD_PRE,
    FORWARD,
    FORWARD_ALWAYS_CALLED,
    FORWARD_PRE,
    FORWARD_WITH_KWARGS,
    OLD_BACKWARD,
)
from plugrad_nn.nn.hooks import MIXED_HOOKS, BackwardHooks, Hook, add_hook


class ModuleCalls:
    """`module(...)` and its hooks. Fields are set up by `Module.__init__`."""

    _forward_pre_hooks: OrderedDict[int, Any]
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks: OrderedDict[int, Any]
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _backward_pre_hooks: OrderedDict[int, Any]
    _backward_hooks: OrderedDict[int, Any]
    # None until there is a hook of either kind.
    _is_full_backward_hook: bool | None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the module's result; every subclass defines it."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or FORWARD
            or FORWARD_PRE
            or BACKWARD
            or BACKWARD_PRE
            or OLD_BACKWARD
        ):
            return self.forward(*args, **kwargs)
        return self._call_with_hooks(args, kwargs)

    # PyTorch's name, which packages call and override.
    _call_impl = __call__

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        hooks = self._get_forward_hooks()
        always = [entry for entry in hooks if entry[2]]
        try:
            for key, hook in [*FORWARD_PRE.items(), *self._forward_pre_hooks.items()]:
                with_kwargs = key in self._forward_pre_hooks_with_kwargs
                args, kwargs = _run_forward_pre_hook(self, hook, with_kwargs, args, kwargs)
            boundary = None
            full, old = self._get_backward_hooks()
            pre = self._get_backward_pre_hooks()
            if full or pre:
                boundary = BackwardHooks(self, full, pre)
                args = boundary.enter(args)
            result = self.forward(*args, **kwargs)
            for entry in hooks:
                hook, with_kwargs, _ = entry
                if entry in always:
                    always.remove(entry)
                extra = (kwargs,) if with_kwargs else ()
                replaced = hook(self, args, *extra, result)
                result = result if replaced is None else replaced
            if boundary is not None:
                result = boundary.leave(result)
            if old:
                _watch_last_operator(self, old, result)
            return result
        except Exception:
            for hook, with_kwargs, _ in always:
                extra = (kwargs,) if with_kwargs else ()
                hook(self, args, *extra, None)
            raise

    def _get_forward_hooks(self) -> list[tuple[Hook, bool, bool]]:
        """Hooks of all modules and of this one; whether they get keywords, and always run."""
        tables = (
            (FORWARD, FORWARD_WITH_KWARGS, FORWARD_ALWAYS_CALLED),
            (
                self._forward_hooks,
                self._forward_hooks_with_kwargs,
                self._forward_hooks_always_called,
            ),
        )
        return [
            (hook, key in with_kwargs, key in always)
            for table, with_kwargs, always in tables
            for key, hook in table.items()
        ]

    def _get_backward_hooks(self) -> tuple[list[Hook], list[Hook]]:
        """Hooks of the whole backward, and hooks of its last operator."""
        own = list(self._backward_hooks.values())
        full, old = list(BACKWARD.values()), list(OLD_BACKWARD.values())
        return (full, old + own) if self._is_full_backward_hook is False else (full + own, old)

    def _get_backward_pre_hooks(self) -> list[Hook]:
        return [*BACKWARD_PRE.values(), *self._backward_pre_hooks.values()]

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """`hook(module, args) -> None or changed args` runs before `forward`.

        >>> import plugrad
        >>> layer = plugrad.nn.ReLU()
        >>> handle = layer.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
        >>> layer(plugrad.tensor([-0.5, 2.0]))
        tensor([0.5000, 3.0000])
        >>> handle.remove()
        >>> layer(plugrad.tensor([-0.5, 2.0]))
        tensor([0., 2.])
        """
        options = [(self._forward_pre_hooks_with_kwargs, with_kwargs)]
        return add_hook(self._forward_pre_hooks, hook, prepend, options)

    def register_forward_hook(
        self,
        hook: Hook,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """`hook(module, args, output) -> None or changed output` runs after `forward`.

        >>> import plugrad
        >>> model = plugrad.nn.Sequential(plugrad.nn.Linear(2, 3), plugrad.nn.ReLU())
        >>> def show(module, args, output):
        ...     print(output.shape)
        >>> handle = model[0].register_forward_hook(show)
        >>> _ = model(plugrad.ones(4, 2))
        plugrad.Size([4, 3])
        """
        options = [
            (self._forward_hooks_with_kwargs, with_kwargs),
            (self._forward_hooks_always_called, always_call),
        ]
        return add_hook(self._forward_hooks, hook, prepend, options)

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """`hook(module, grad_output) -> None or changed grad_output` runs before its backward.

        >>> import plugrad
        >>> layer = plugrad.nn.Identity()
        >>> handle = layer.register_full_backward_pre_hook(lambda module, grads: (grads[0] * 10,))
        >>> x = plugrad.ones(2, requires_grad=True)
        >>> layer(x * 1).sum().backward()
        >>> x.grad
        tensor([10., 10.])
        """
        return add_hook(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """`hook(module, grad_input, grad_output) -> None or changed grad_input` runs after it.

        >>> import plugrad
        >>> layer = plugrad.nn.Linear(2, 1)
        >>> _ = plugrad.nn.init.ones_(layer.weight)
        >>> def show(module, grad_input, grad_output):
        ...     print(grad_input[0], grad_output[0])
        >>> handle = layer.register_full_backward_hook(show)
        >>> layer(plugrad.ones(1, 2, requires_grad=True)).sum().backward()
        tensor([[1., 1.]]) tensor([[1.]])
        """
        return self._add_backward_hook(hook, True, prepend)

    def register_backward_hook(self, hook: Hook) -> RemovableHandle:
        """Prefer `register_full_backward_hook`: here `grad_input` belongs to the last operator of
        `forward` and not to the module."""
        return self._add_backward_hook(hook, False, False)

    def _add_backward_hook(self, hook: Hook, full: bool, prepend: bool) -> RemovableHandle:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(MIXED_HOOKS)
        self._is_full_backward_hook = full
        return add_hook(self._backward_hooks, hook, prepend)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Does nothing, whatever the options: a module is compiled as part of a step, by
        `plugrad.compile` of the function that makes the step.

        >>> import plugrad
        >>> model = plugrad.nn.Linear(2, 1)
        >>> model.compile()
        >>> step = plugrad.compile(lambda x: model(x).sum())
        >>> step(plugrad.ones(3, 2)).shape
        plugrad.Size([])
        """


def _watch_last_operator(module: object, hooks: list[Hook], result: Any) -> None:
    """Run hooks with the gradients of the operator that made the first tensor of a result."""
    first = result
    while not isinstance(first, Tensor):
        if isinstance(first, Mapping):
            first = next((item for item in first.values() if isinstance(item, Tensor)), None)
        elif isinstance(first, tuple | list) and first:
            first = first[0]
        else:
            return
    if first.grad_fn is not None:
        for hook in hooks:
            first.grad_fn.register_hook(
                lambda grad_inputs, grad_outputs, hook=hook: hook(module, grad_inputs, grad_outputs)
            )


def _run_forward_pre_hook(
    module: ModuleCalls,
    hook: Hook,
    with_kwargs: bool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if not with_kwargs:
        changed = hook(module, args)
        if changed is None:
            return args, kwargs
        return (changed if isinstance(changed, tuple) else (changed,)), kwargs
    changed = hook(module, args, kwargs)
    if changed is None:
        return args, kwargs
    if not (isinstance(changed, tuple) and len(changed) == 2):
        raise RuntimeError(
            f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
            f"but got {changed}."
        )
    return changed[0], changed[1]
