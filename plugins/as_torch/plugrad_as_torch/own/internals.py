"""`torch._C`: the metaclass of tensors, and dispatch keys and key sets. They are only names, which
packages combine when they are imported; plugrad's own keys are in `plugrad.library`."""

from __future__ import annotations

import enum

import plugrad

__all__ = ["DispatchKey", "DispatchKeySet", "_TensorMeta"]

_TensorMeta = type(plugrad.Tensor)


class DispatchKey(enum.Enum):
    """PyTorch's dispatch keys that packages name."""

    Undefined = "Undefined"
    CPU = "CPU"
    CUDA = "CUDA"
    XPU = "XPU"
    MPS = "MPS"
    Meta = "Meta"
    BackendSelect = "BackendSelect"
    Python = "Python"
    ADInplaceOrView = "ADInplaceOrView"
    AutogradCPU = "AutogradCPU"
    AutogradCUDA = "AutogradCUDA"
    AutogradXPU = "AutogradXPU"
    AutocastCPU = "AutocastCPU"
    AutocastCUDA = "AutocastCUDA"
    AutocastXPU = "AutocastXPU"
    Autograd = "Autograd"
    CompositeImplicitAutograd = "CompositeImplicitAutograd"
    CompositeExplicitAutograd = "CompositeExplicitAutograd"


class DispatchKeySet:
    """A set of keys; `|`, `&` and `-` make new sets."""

    def __init__(self, *keys: DispatchKey) -> None:
        self._keys = frozenset(keys)

    def has(self, key: DispatchKey) -> bool:
        """Whether a key is in the set."""
        return key in self._keys

    def add(self, key: DispatchKey) -> DispatchKeySet:
        """The set with one more key."""
        return DispatchKeySet(*self._keys, key)

    def remove(self, key: DispatchKey) -> DispatchKeySet:
        """The set without a key."""
        return DispatchKeySet(*self._keys - {key})

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self._keys | other._keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self._keys & other._keys)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self._keys - other._keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(sorted(key.name for key in self._keys))})"
