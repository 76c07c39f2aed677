"""`FloatTensor`, `LongTensor` and the like: tensors by dtype, as in early PyTorch.

They are no longer classes: calling such a name makes an ordinary tensor of that dtype.
"""

from __future__ import annotations

# Interpreted: its classes have a metaclass.
from typing import Any

from plugrad._generated import functions as F
from plugrad._printed_name import printed_name
from plugrad.dtype import (
    DType,
    bfloat16,
    bool_,
    dtype_by_name,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.arguments import is_length
from plugrad.tensor.creation.from_data import tensor
from plugrad.tensor.creation.nested import is_sequence
from plugrad.tensor.size import Size


class _TensorType(type):
    """A dtype that is called like a class of tensors."""

    dtype: DType
    is_cuda = False

    def __call__(cls, *args: Any) -> Any:
        return typed_tensor(cls.__name__, cls.dtype, args)

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, TensorBase)
            and instance.dtype is cls.dtype
            and instance.device.type == "cpu"
        )


def typed_tensor(name: str, dtype: DType, args: tuple[Any, ...]) -> Any:
    """A tensor of given sizes, uninitialised, or with given elements.

    Raises:
        TypeError: neither integers nor one sequence; or a tensor of another dtype.
    """
    if not args:
        return F.empty((0,), dtype=dtype)
    data = args[0]
    if len(args) == 1 and isinstance(data, TensorBase):
        if data.dtype is not dtype:
            raise TypeError(
                f"expected {TYPE_NAMES[dtype.name]} (got {TYPE_NAMES[data.dtype.name]})"
            )
        public: Any = data
        return public.detach()
    if len(args) == 1 and isinstance(data, Size):
        return F.empty(tuple(data), dtype=dtype)
    if len(args) == 1 and not is_length(data):
        is_text = isinstance(data, (str, bytes))
        if not is_text and not is_sequence(data) and not hasattr(data, "__array__"):
            raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
        return tensor(data, dtype=dtype)
    if not all(is_length(size) for size in args):
        raise TypeError(f"{name} takes sizes, which are integers, or one sequence of elements")
    return F.empty(tuple(map(int, args)), dtype=dtype)


def _declare(name: str, dtype: DType) -> Any:
    doc = (
        f"Makes tensors of dtype {dtype.name}; prefer `plugrad.tensor` with `dtype=`.\n\n"
        f">>> import plugrad\n>>> plugrad.{name}([1, 0]).dtype\nplugrad.{dtype.name}\n"
        f">>> isinstance(plugrad.tensor([1, 0], dtype=plugrad.{dtype.name}), plugrad.{name})\nTrue"
    )
    return _TensorType(name, (), {"dtype": dtype, "__doc__": doc, "__module__": "plugrad"})


FloatTensor = _declare("FloatTensor", float32)
DoubleTensor = _declare("DoubleTensor", float64)
HalfTensor = _declare("HalfTensor", float16)
BFloat16Tensor = _declare("BFloat16Tensor", bfloat16)
ByteTensor = _declare("ByteTensor", uint8)
CharTensor = _declare("CharTensor", int8)
ShortTensor = _declare("ShortTensor", int16)
IntTensor = _declare("IntTensor", int32)
LongTensor = _declare("LongTensor", int64)
BoolTensor = _declare("BoolTensor", bool_)

CLASSES = {
    cls.dtype.name: cls
    for cls in (
        FloatTensor,
        DoubleTensor,
        HalfTensor,
        BFloat16Tensor,
        ByteTensor,
        CharTensor,
        ShortTensor,
        IntTensor,
        LongTensor,
        BoolTensor,
    )
}
TYPE_NAMES = {
    **{name: cls.__name__ for name, cls in CLASSES.items()},
    "complex64": "ComplexFloatTensor",
    "complex128": "ComplexDoubleTensor",
    **{
        dtype.name: f"{dtype.scalar_name}Tensor"
        for dtype in (uint16, uint32, uint64, float8_e4m3fn, float8_e5m2)
    },
}


def type_of(tensor: Any) -> str:
    """The result of `tensor.type()`: ``plugrad.FloatTensor``, with the device if it is not the
    host."""
    device = tensor.device.type
    place = "" if device == "cpu" else f"{device}."
    return f"{printed_name()}.{place}{TYPE_NAMES[tensor.dtype.name]}"


def dtype_of(type_: Any) -> DType:
    """The dtype that `tensor.type(...)` was given: a dtype, a typed tensor class or its name.

    Raises:
        TypeError: none of them.
        ValueError: an unknown name.
    """
    if isinstance(type_, DType):
        return type_
    if isinstance(type_, _TensorType):
        return type_.dtype
    if type_ is type(F.empty((0,))):  # Tensor itself means the default
        return get_default_dtype()
    if isinstance(type_, str):
        wanted = type_.rpartition(".")[2]
        for cls in CLASSES.values():
            if cls.__name__ == wanted:
                dtype: DType = cls.dtype
                return dtype
        for name, shown in TYPE_NAMES.items():
            if shown == wanted:
                return dtype_by_name(name)
        raise ValueError(f"invalid type: '{type_}'")
    raise TypeError("dtype must be a type, str, or dtype object")
