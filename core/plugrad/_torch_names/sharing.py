"""Tensors in shared memory, which `plugrad.multiprocessing` provides if it is installed."""

from __future__ import annotations

import importlib
from typing import Any, Final

# Interpreted: it imports a package that may not be installed.
_NAMESPACE: Final = "plugrad.multiprocessing"


def is_shared(tensor: Any) -> bool:
    """Whether other processes see a tensor's memory; without plugrad-nn none can."""
    try:
        sharing: Any = importlib.import_module(_NAMESPACE)
    except ModuleNotFoundError:
        return False
    return bool(sharing.is_shared(tensor))


def share_memory(tensor: Any) -> None:
    """Move a tensor's memory to where other processes see it.

    Raises NotImplementedError if that cannot be done.
    """
    try:
        sharing: Any = importlib.import_module(_NAMESPACE)
    except ModuleNotFoundError as error:
        raise NotImplementedError(
            "share_memory_(): memory that other processes see is a matter of "
            "plugrad.multiprocessing; pip install plugrad-nn"
        ) from error
    sharing.share_memory(tensor)
