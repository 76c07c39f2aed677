"""`torch.cuda.FloatTensor` and the like: tensors on a GPU, distinguished by dtype."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad import Tensor

__all__ = [
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
]


class _CudaTensorType(type):
    """A dtype with the name of a tensor class, for tensors on a GPU."""

    is_cuda = True

    def __call__(cls, *args: Any) -> Any:
        if not plugrad.cuda.is_available():
            raise TypeError(
                f"type torch.cuda.{cls.__name__} not available. Torch not compiled with CUDA "
                "enabled."
            )
        return getattr(plugrad, cls.__name__)(*args).to("cuda")

    def __instancecheck__(cls, instance: Any) -> bool:
        dtype = getattr(plugrad, cls.__name__).dtype
        return isinstance(instance, Tensor) and instance.is_cuda and instance.dtype is dtype


def _declare(name: str) -> Any:
    doc = f"`plugrad.{name}`, on a GPU. TypeError if there is none."
    return _CudaTensorType(name, (), {"__doc__": doc, "__module__": "torch.cuda"})


BFloat16Tensor = _declare("BFloat16Tensor")
BoolTensor = _declare("BoolTensor")
ByteTensor = _declare("ByteTensor")
CharTensor = _declare("CharTensor")
DoubleTensor = _declare("DoubleTensor")
FloatTensor = _declare("FloatTensor")
HalfTensor = _declare("HalfTensor")
IntTensor = _declare("IntTensor")
LongTensor = _declare("LongTensor")
ShortTensor = _declare("ShortTensor")
