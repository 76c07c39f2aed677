"""Names of autograd's internals that PyTorch keeps in `torch._C`, where programs use them.

They are here so that such programs run. Prefer the public name where there is one.
"""

from __future__ import annotations

# Interpreted: it only renames.
import weakref
from typing import Any

from plugrad._C import _autograd, _functions, _functorch
from plugrad.autograd.engine.callbacks import current_autograd_node as _current_autograd_node
from plugrad.autograd.engine.callbacks import current_graph_task_id as _current_graph_task_id
from plugrad.autograd.engine.callbacks import execution_order as _current_graph_task_execution_order
from plugrad.autograd.engine.callbacks import will_engine_execute_node as _will_engine_execute_node
from plugrad.autograd.grad_mode import is_grad_enabled, set_grad_enabled
from plugrad.dispatch import dispatch_keys as _dispatch_keys
from plugrad.errors import LinAlgError as _LinAlgError
from plugrad.tensor.levels import in_transform as _are_functorch_transforms_active

__all__ = [
    "_LinAlgError",
    "_WeakTensorRef",
    "_are_functorch_transforms_active",
    "_autograd",
    "_current_autograd_node",
    "_current_graph_task_execution_order",
    "_current_graph_task_id",
    "_dispatch_keys",
    "_functions",
    "_functorch",
    "_set_grad_enabled",
    "_will_engine_execute_node",
    "is_grad_enabled",
]


def _set_grad_enabled(enabled: bool) -> None:
    set_grad_enabled(enabled)


class _WeakTensorRef:
    """A weak reference to a tensor.

    >>> import plugrad
    >>> x = plugrad.ones(2)
    >>> ref = plugrad._C._WeakTensorRef(x)
    >>> ref.expired()
    False
    >>> del x
    >>> ref.expired()
    True
    """

    def __init__(self, tensor: Any) -> None:
        self._ref = weakref.ref(tensor)

    def expired(self) -> bool:
        """Whether the tensor has been freed."""
        return self._ref() is None
