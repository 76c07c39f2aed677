"""`FloatStorage`, `LongStorage` and the like: storages by dtype, as in early PyTorch."""

from __future__ import annotations

# Interpreted: its classes have a metaclass.
from typing import Any

from plugrad._torch_names.storage import TypedStorage, UntypedStorage
from plugrad.dtype import (
    DType,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)


class _StorageType(type):
    """A dtype that is called like a class of storages: it makes a TypedStorage, and recognises the
    storages of its dtype."""

    dtype: DType

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return TypedStorage(*args, dtype=cls.dtype, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, TypedStorage)
            and instance.dtype is cls.dtype
            and instance.device.type == "cpu"
        )


def _declare(name: str, dtype: DType) -> Any:
    doc = (
        f"Makes a `TypedStorage` of dtype {dtype.name}; prefer `plugrad.UntypedStorage`.\n\n"
        f">>> import plugrad\n>>> plugrad.{name}([1, 0]).dtype\nplugrad.{dtype.name}\n"
        f">>> isinstance(plugrad.ones(2, dtype=plugrad.{dtype.name}).storage(), plugrad.{name})\n"
        "True"
    )
    return _StorageType(name, (), {"dtype": dtype, "__doc__": doc, "__module__": "plugrad"})


FloatStorage = _declare("FloatStorage", float32)
DoubleStorage = _declare("DoubleStorage", float64)
HalfStorage = _declare("HalfStorage", float16)
BFloat16Storage = _declare("BFloat16Storage", bfloat16)
ByteStorage = _declare("ByteStorage", uint8)
CharStorage = _declare("CharStorage", int8)
ShortStorage = _declare("ShortStorage", int16)
IntStorage = _declare("IntStorage", int32)
LongStorage = _declare("LongStorage", int64)
BoolStorage = _declare("BoolStorage", bool_)
ComplexFloatStorage = _declare("ComplexFloatStorage", complex64)
ComplexDoubleStorage = _declare("ComplexDoubleStorage", complex128)


def is_storage(obj: Any, /) -> bool:
    """Whether an object is a storage.

    >>> import plugrad
    >>> plugrad.is_storage(plugrad.ones(2).untyped_storage()), plugrad.is_storage(plugrad.ones(2))
    (True, False)
    """
    return isinstance(obj, (TypedStorage, UntypedStorage))
