"""The backend behind the device "meta"."""

from __future__ import annotations

# Interpreted: it subclasses Backend, and computes shapes only.
from collections.abc import Callable
from typing import Any

from plugrad.dispatch.backends.backend import Backend
from plugrad.dispatch.operator import operator_names
from plugrad.dtype import DType
from plugrad.dtype import from_numpy as dtype_from_numpy
from plugrad.tensor.meta import decompositions, shapes, views
from plugrad.tensor.meta.array import MetaArray


class MetaBackend(Backend):
    """Tensors without data: operators give results of the right shape and dtype.

    Elementwise operators follow from the core's rules for promotion and broadcasting,
    decompositions from their parts; the rest are tables.
    """

    def __init__(self) -> None:
        super().__init__("meta", array_type=MetaArray, key_name="Meta")

    def kernels(self) -> dict[str, Callable[..., Any]]:
        known = operator_names()
        table = {**shapes.structured_kernels(), **shapes.KERNELS, **views.KERNELS}
        table.update(decompositions.KERNELS)
        return {name: kernel for name, kernel in table.items() if name in known}

    def from_host(self, array: Any, index: int) -> MetaArray:
        return MetaArray(array.shape, dtype_from_numpy(array.dtype))

    def to_host(self, array: Any) -> Any:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")

    def native_dtype(self, dtype: DType) -> DType:
        return dtype

    def dtype_of(self, array: Any) -> DType:
        found: DType = array.dtype
        return found

    def strides(self, array: Any) -> tuple[int, ...]:
        found: tuple[int, ...] = array.strides
        return found

    def storage_offset(self, array: Any) -> int:
        offset: int = array.offset
        return offset

    def make_generator(self, index: int) -> _Generator:
        return _Generator()


class _Generator:
    """The generator of this device; it draws nothing."""

    def __init__(self) -> None:
        self._seed = 0

    def manual_seed(self, seed: int) -> _Generator:
        self._seed = seed
        return self

    def seed(self) -> int:
        return self._seed

    def initial_seed(self) -> int:
        return self._seed

    def get_state(self) -> int:
        return self._seed

    def set_state(self, state: int) -> None:
        self._seed = state
