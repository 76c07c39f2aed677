"""Error types that plugrad adds to Python's own; each is a subclass of what PyTorch raises."""

from __future__ import annotations

# Interpreted: mypyc subclasses no built-in exception.


class BackendNotFoundError(RuntimeError):
    """A device names a backend that is not installed; the message says what to pip install."""


class PluginError(RuntimeError):
    """A plugin is installed but unusable: it failed to import or speaks another API version."""


class PluginDeprecationWarning(DeprecationWarning):
    """A plugin uses a part of the plugin contract that its next minor version will not have."""


class OperatorNotFoundError(NotImplementedError):
    """No kernel serves an operator for the dispatch keys of its arguments."""
