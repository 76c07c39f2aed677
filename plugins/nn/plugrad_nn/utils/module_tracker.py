"""`plugrad.utils.module_tracker`: which modules the program is in, in backward passes too."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import plugrad
from plugrad.autograd.graph import register_multi_grad_hook
from plugrad_nn.nn.global_hooks import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from plugrad_nn.nn.module import Module

__all__ = ["ModuleTracker"]

_OUTERMOST = "Global"


class ModuleTracker:
    """A context manager that tracks the modules that run forward or backward.

    A module's name is the class of the outermost module that ran, followed by the names of the
    attributes: ``"Sequential.0"``.

    Attributes:
        parents: the names of the modules that run now, and ``"Global"``.
        is_bw: whether a backward pass runs.

    >>> import plugrad
    >>> from plugrad.utils.module_tracker import ModuleTracker
    >>> model = plugrad.nn.Sequential(plugrad.nn.Linear(2, 1))
    >>> seen = []
    >>> with ModuleTracker() as tracker:
    ...     handle = model[0].register_forward_pre_hook(
    ...         lambda *args: seen.extend(sorted(tracker.parents))
    ...     )
    ...     y = model(plugrad.ones(1, 2))
    >>> seen
    ['Global', 'Sequential', 'Sequential.0']
    """

    def __init__(self) -> None:
        self.parents: set[str] = {_OUTERMOST}
        self._names: weakref.WeakKeyDictionary[Module, str] = weakref.WeakKeyDictionary()
        self._handles: list[Any] = []
        # Set for a backward pass that will leave its entered modules at its end.
        self._is_awaited = False

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass runs.

        >>> import plugrad
        >>> from plugrad.utils.module_tracker import ModuleTracker
        >>> model = plugrad.nn.Linear(2, 1)
        >>> with ModuleTracker() as tracker:
        ...     _ = model.bias.register_hook(lambda grad: print(tracker.is_bw))
        ...     loss = model(plugrad.ones(1, 2)).sum()
        ...     loss.backward()
        True
        >>> tracker.is_bw
        False
        """
        return plugrad._C._current_graph_task_id() != -1

    def __enter__(self) -> ModuleTracker:
        if self._handles:
            raise RuntimeError("ModuleTracker is entered already")
        self._handles = [
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after, always_call=True),
        ]
        return self

    def __exit__(self, *args: Any) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self.parents = {_OUTERMOST}

    def _name(self, module: Module) -> str:
        """The name of a module; one that no module before it has named is an outermost one."""
        if module not in self._names:
            root = type(module).__name__
            for name, each in module.named_modules():
                if each not in self._names:
                    self._names[each] = f"{root}.{name}" if name else root
        return self._names[module]

    def _before(self, module: Module, inputs: Any) -> None:
        name = self._name(module)
        self.parents.add(name)
        self._in_backward(inputs, lambda: self.parents.discard(name))

    def _after(self, module: Module, inputs: Any, output: Any) -> None:
        name = self._name(module)
        self.parents.discard(name)
        self._in_backward(output, lambda: self._enter(name))

    def _enter(self, name: str) -> None:
        if not self._handles:
            return  # the block has ended
        # A module without gradients for its inputs is left when the pass ends.
        if not self._is_awaited:
            self._is_awaited = True
            plugrad.autograd.Variable._execution_engine.queue_callback(self._at_end)
        self.parents.add(name)

    def _at_end(self) -> None:
        self._is_awaited = False
        self.parents = {_OUTERMOST}

    def _in_backward(self, values: Any, act: Callable[[], None]) -> None:
        """Run when the gradients of the tensors in `values` are computed."""
        tensors = [each for each in _leaves(values) if each.requires_grad]
        if tensors and not self.is_bw:
            register_multi_grad_hook(tensors, lambda grads: act())


def _leaves(values: Any) -> list[Any]:
    if isinstance(values, plugrad.Tensor):
        return [values]
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, (list, tuple)):
        return [leaf for value in values for leaf in _leaves(value)]
    return []
