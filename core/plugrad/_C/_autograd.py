"""Names that PyTorch keeps in `torch._C._autograd`: hooks on saved tensors, version counters."""

from __future__ import annotations

# Interpreted: it only renames.
from typing import Any

from plugrad.autograd.engine.callbacks import keeps_graph as _get_current_graph_task_keep_graph
from plugrad.autograd.variable.version_counter import (
    set_version_counters as _unsafe_set_version_counter,
)
from plugrad.graph.node import InputMetadata as _InputMetadata
from plugrad.graph.saved_tensor import SavedTensor, make_saved_tensor
from plugrad.graph.saved_variable import (
    disable_saved_tensor_hooks,
    why_saved_tensor_hooks_are_disabled,
)
from plugrad.graph.saved_variable import (
    pop_saved_tensor_hooks as _pop_saved_tensors_default_hooks,
)
from plugrad.graph.saved_variable import (
    push_saved_tensor_hooks as _push_saved_tensors_default_hooks,
)

__all__ = [
    "SavedTensor",
    "_InputMetadata",
    "_get_current_graph_task_keep_graph",
    "_make_saved_tensor",
    "_pop_saved_tensors_default_hooks",
    "_push_saved_tensors_default_hooks",
    "_saved_tensors_hooks_disable",
    "_saved_tensors_hooks_enable",
    "_saved_tensors_hooks_get_disabled_error_message",
    "_saved_tensors_hooks_is_enabled",
    "_unsafe_set_version_counter",
]

_saved_tensors_hooks_get_disabled_error_message = why_saved_tensor_hooks_are_disabled


def _make_saved_tensor(tensor: Any, is_output: bool = False) -> SavedTensor:
    # Detached, because the node of an output is not known here.
    return make_saved_tensor(tensor.detach() if is_output else tensor)


def _saved_tensors_hooks_is_enabled() -> bool:
    return why_saved_tensor_hooks_are_disabled() is None


def _saved_tensors_hooks_disable(error_message: str) -> None:
    disable_saved_tensor_hooks(error_message)


def _saved_tensors_hooks_enable() -> None:
    disable_saved_tensor_hooks(None)
