"""Names that PyTorch keeps in `torch._C._functorch`: how `vmap` and `grad` have wrapped a
tensor."""

from __future__ import annotations

# Interpreted: it only reads.
from typing import Any

from plugrad.dispatch.local_state import current_state
from plugrad.tensor.base import TensorBase
from plugrad.tensor.levels import GRAD, VMAP, Wrapped, wrapped_of

__all__ = [
    "get_unwrapped",
    "is_batchedtensor",
    "is_functorch_wrapped_tensor",
    "is_gradtrackingtensor",
    "is_legacy_batchedtensor",
    "maybe_current_level",
    "maybe_get_bdim",
    "maybe_get_level",
]


def _wrapped(tensor: TensorBase) -> Wrapped | None:
    if not isinstance(tensor, TensorBase):
        raise TypeError(f"tensor: expected a Tensor, got {type(tensor).__name__}")
    return wrapped_of(tensor)


def is_functorch_wrapped_tensor(tensor: Any) -> bool:
    """Whether a tensor belongs to a transform that runs."""
    return _wrapped(tensor) is not None


def is_batchedtensor(tensor: Any) -> bool:
    """Whether a `vmap` hides a dimension of a tensor.

    >>> import plugrad
    >>> seen = []
    >>> def f(x):
    ...     seen.append(plugrad._C._functorch.is_batchedtensor(x))
    ...     return x
    >>> _ = plugrad.vmap(f)(plugrad.ones(2, 3))
    >>> seen, plugrad._C._functorch.is_batchedtensor(plugrad.ones(2))
    ([True], False)
    """
    found = _wrapped(tensor)
    return found is not None and found.level.kind == VMAP and found.batch_dim >= 0


def is_gradtrackingtensor(tensor: Any) -> bool:
    """Whether a tensor belongs to a `grad` or `vjp` that runs."""
    found = _wrapped(tensor)
    return found is not None and found.level.kind == GRAD


def is_legacy_batchedtensor(tensor: Any) -> bool:
    """False: there is one `vmap`."""
    _wrapped(tensor)
    return False


def maybe_get_level(tensor: Any) -> int:
    """The number of the transform that a tensor belongs to, 1 for the outermost; -1 for none."""
    found = _wrapped(tensor)
    return -1 if found is None else found.level.number


def maybe_get_bdim(tensor: Any) -> int:
    """The dimension that a `vmap` hides of a tensor; -1 for none."""
    found = _wrapped(tensor)
    return -1 if found is None else found.batch_dim


def maybe_current_level() -> int | None:
    """The number of the innermost transform that runs; None for none."""
    level = current_state().level
    return None if level is None else int(level.number)


def get_unwrapped(tensor: Any) -> Any:
    """The tensor one transform further out.

    Raises:
        RuntimeError: it belongs to none.
    """
    found = _wrapped(tensor)
    if found is None:
        raise RuntimeError("No wrappers present!")
    return found.value
