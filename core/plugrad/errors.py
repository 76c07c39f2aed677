"""Error types that plugrad adds to Python's own; each is a subclass of what PyTorch raises."""

from __future__ import annotations

__all__ = [
    "BackendNotFoundError",
    "DuplicateDefinitionError",
    "HostFallbackWarning",
    "LinAlgError",
    "OperatorNotFoundError",
    "PluginConflictError",
    "PluginDeprecationWarning",
    "PluginError",
    "PluginWarning",
]

# Interpreted: mypyc subclasses no built-in exception.


class LinAlgError(RuntimeError):
    """A matrix cannot be inverted or decomposed; also `plugrad.linalg.LinAlgError`."""


class BackendNotFoundError(RuntimeError):
    """A device names a backend that is not installed; the message says what to pip install."""


class PluginError(RuntimeError):
    """A plugin is installed but unusable: it failed to import or speaks another API version."""


class PluginConflictError(PluginError):
    """Two plugins claim the same thing; the message names both, and how to settle it."""


class DuplicateDefinitionError(RuntimeError):
    """An operator, namespace or kernel of that name exists already.

    Attributes:
        what: "operator", "namespace" or "kernel".
        name: its name; for a kernel, the names of operator and dispatch key, separated by a space.
    """

    def __init__(self, message: str, what: str, name: str) -> None:
        super().__init__(message)
        self.what = what
        self.name = name


class PluginWarning(UserWarning):
    """A part of a plugin cannot be used, and it has not been needed yet."""


class PluginDeprecationWarning(DeprecationWarning):
    """A plugin uses a part of the plugin contract that its next minor version will not have."""


class OperatorNotFoundError(NotImplementedError):
    """No kernel serves an operator for the dispatch keys of its arguments.

    Attributes:
        operator: what was called, such as ``plugrad::gelu``.
        backend: the backend that cannot compute it; empty if the cause is not a missing kernel.
        primitive: the operator it needs that has neither kernel nor decomposition, possibly itself.
    """

    def __init__(
        self, message: str, *, operator: str = "", backend: str = "", primitive: str = ""
    ) -> None:
        super().__init__(message)
        self.operator = operator
        self.backend = backend
        self.primitive = primitive


class HostFallbackWarning(UserWarning):
    """A backend lacks an operator, which runs on the host instead, as the configuration allows."""
