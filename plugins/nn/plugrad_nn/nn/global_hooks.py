"""Hooks that run for every module of the process, in addition to each module's own."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

from plugrad.autograd.graph import RemovableHandle
from plugrad_nn.nn.hooks import MIXED_GLOBAL_HOOKS, Hook, add_hook

__all__ = [
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

Table = OrderedDict[int, Any]

FORWARD_PRE: Final[Table] = OrderedDict()
FORWARD: Final[Table] = OrderedDict()
# Of the hooks in FORWARD, those which get keyword arguments, and those which always run.
FORWARD_WITH_KWARGS: Final[Table] = OrderedDict()
FORWARD_ALWAYS_CALLED: Final[Table] = OrderedDict()
BACKWARD_PRE: Final[Table] = OrderedDict()
BACKWARD: Final[Table] = OrderedDict()
OLD_BACKWARD: Final[Table] = OrderedDict()
REGISTRATION: Final[dict[str, Table]] = {
    kind: OrderedDict() for kind in ("buffer", "module", "parameter")
}

# PyTorch's names of the tables, which programs read.
_global_buffer_registration_hooks = REGISTRATION["buffer"]
_global_module_registration_hooks = REGISTRATION["module"]
_global_parameter_registration_hooks = REGISTRATION["parameter"]


def registered(kind: str, module: Any, name: str, value: Any) -> Any:
    """Apply the registration hooks to a parameter, buffer or module."""
    for hook in REGISTRATION[kind].values():
        changed = hook(module, name, value)
        if changed is not None:
            value = changed
    return value


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """`hook(module, args) -> None or changed args` runs before `forward` of every module.

    It runs before the hooks of the module itself. This and the others here are for debugging and
    profiling; the handle that is returned takes the hook away again.

    >>> import plugrad
    >>> from plugrad.nn import global_hooks
    >>> show = lambda module, args: print(module)
    >>> handle = global_hooks.register_module_forward_pre_hook(show)
    >>> _ = plugrad.nn.ReLU()(plugrad.ones(1))
    ReLU()
    >>> handle.remove()
    """
    return add_hook(FORWARD_PRE, hook)


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """`hook(module, args, output) -> None or changed output` runs after `forward` of every module.

    Args:
        with_kwargs: the hook gets the keyword arguments too, between `args` and `output`.
        always_call: it runs although `forward` or another hook raises.
    """
    options = [(FORWARD_WITH_KWARGS, with_kwargs), (FORWARD_ALWAYS_CALLED, always_call)]
    return add_hook(FORWARD, hook, options=options)


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """`hook(module, grad_output) -> None or changed grad_output` runs before every backward."""
    return add_hook(BACKWARD_PRE, hook)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """`hook(module, grad_input, grad_output) -> None or changed grad_input`, after every backward.

    Raises RuntimeError while there are hooks of `register_module_backward_hook`.
    """
    if OLD_BACKWARD:
        raise RuntimeError(MIXED_GLOBAL_HOOKS)
    return add_hook(BACKWARD, hook)


def register_module_backward_hook(hook: Hook) -> RemovableHandle:
    """Prefer `register_module_full_backward_hook`: here `grad_input` belongs to the last operator
    of `forward` and not to the module.

    Raises RuntimeError while there are hooks of `register_module_full_backward_hook`.
    """
    if BACKWARD:
        raise RuntimeError(MIXED_GLOBAL_HOOKS)
    return add_hook(OLD_BACKWARD, hook)


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """`hook(module, name, buffer) -> None or another buffer` runs when one is registered."""
    return add_hook(REGISTRATION["buffer"], hook)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """`hook(module, name, submodule) -> None or another module` runs when one is registered."""
    return add_hook(REGISTRATION["module"], hook)


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """`hook(module, name, parameter) -> None or another one` runs when one is registered."""
    return add_hook(REGISTRATION["parameter"], hook)
