"""The operator samples' arguments and results in PyTorch, which plugrad is compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

import plugrad
from plugrad.testing.cases import Arguments, lay_out

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]  # the oracle is optional


class TorchArguments(Arguments):
    """Makes for PyTorch what `Arguments` makes for plugrad."""

    def dtype_named(self, name: str) -> Any:
        return getattr(torch, name)

    def tensor_of(self, values: np.ndarray[Any, Any], layout: str) -> Any:
        array = lay_out(values, layout)
        if array.dtype.name == "bfloat16":
            return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(array)


def is_tensor(value: Any) -> bool:
    """Whether `value` is a tensor of either library."""
    return isinstance(value, plugrad.Tensor) or (
        torch is not None and isinstance(value, torch.Tensor)
    )


def dtype_name(tensor: Any) -> str:
    """ "float32" for plugrad.float32 and torch.float32."""
    return str(tensor.dtype).rpartition(".")[2]


def to_numpy(tensor: Any) -> np.ndarray[Any, Any]:
    """The values, widened to float64 or complex128 where they are floating."""
    tensor = tensor.detach()
    tensor = tensor.resolve_conj().resolve_neg()
    if torch is not None and tensor.dtype == torch.bfloat16:
        tensor = tensor.float()
    array = np.asarray(tensor.numpy())
    name = dtype_name(tensor)
    if name.startswith("complex"):
        return array.astype(np.complex128)
    return array.astype(np.float64) if "float" in name else array
