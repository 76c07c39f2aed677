"""A tensor of a module is exchanged, whatever it is: PyTorch's `_named_member_accessor`."""

from __future__ import annotations

from typing import Any, Final

from plugrad import Tensor
from plugrad_nn.nn.module import Module

__all__ = ["set_tensor", "swap_tensor"]

# The result of `swap_tensor` for a new name; passing it back deletes the name again.
_MISSING: Final = object()


def set_tensor(module: Any, name: str, tensor: Any) -> None:
    """Put a tensor under a name of a module, as `swap_tensor` does, and add the name if need be."""
    swap_tensor(module, name, tensor, allow_missing=True)


def swap_tensor(module: Any, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Replace a module's parameter, buffer or other tensor; returns the previous one.

    A plain tensor in a parameter's place counts as a parameter.

    Raises:
        TypeError: `module` is not a module, or `tensor` or the member to replace is not a tensor.
        KeyError: the name has a dot, or is empty.
        AttributeError: there is no such name, and that is not allowed.
    """
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if tensor is not _MISSING and not isinstance(tensor, Tensor) and tensor is not None:
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')
    tables: tuple[dict[str, Any], ...] = (module._parameters, module._buffers)
    for table in tables:
        if name in table:
            before = table.pop(name) if tensor is _MISSING else table[name]
            if tensor is not _MISSING:
                table[name] = tensor
            return before
    return _swap_attribute(module, name, tensor, allow_missing)


def _swap_attribute(module: Module, name: str, tensor: Any, allow_missing: bool) -> Any:
    before = getattr(module, name, _MISSING)
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
    if before is not _MISSING and before is not None and not isinstance(before, Tensor):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if tensor is _MISSING:
        delattr(module, name)
    else:
        setattr(module, name, tensor)
    return before
