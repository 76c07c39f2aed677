"""`Tensor(...)`: PyTorch's older constructor, which subclasses inherit."""

from __future__ import annotations

from typing import Any

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad.dispatch.local_state import current_state
from plugrad.dtype import get_default_dtype
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.arguments import is_length, type_name
from plugrad.tensor.calls.overridable import ALL_OFF
from plugrad.tensor.creation.from_data import tensor
from plugrad.tensor.creation.nested import is_sequence
from plugrad.tensor.size import Size


def constructed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> TensorBase:
    """A tensor of the default dtype from sizes or data, or a view of a tensor that is given.

    Raises:
        TypeError: neither integers, nor one sequence, array or tensor.
    """
    state = current_state()
    before = state.overrides_off
    # Overrides do not apply to the construction of an object.
    state.overrides_off = before | ALL_OFF
    try:
        return _made(args, kwargs)
    finally:
        state.overrides_off = before


def _made(args: tuple[Any, ...], kwargs: dict[str, Any]) -> TensorBase:
    unknown = [name for name in kwargs if name not in ("device", "data")]
    if "data" in kwargs:
        args = (*args, kwargs["data"])
    alone = len(args) == 1 and isinstance(args[0], (Size, TensorBase))
    sizes: Any = args[0] if alone else args
    device = kwargs.get("device")
    made: TensorBase
    if not unknown and not isinstance(sizes, TensorBase) and all(map(is_length, sizes)):
        made = F.empty(tuple([int(size) for size in sizes]) or (0,), device=device)
        return made
    if unknown or len(args) != 1:
        given = [type_name(value) for value in args]
        given.extend(f"{name}={type_name(value)}" for name, value in kwargs.items())
        raise TypeError(
            f"new() received an invalid combination of arguments - got ({', '.join(given)}), but "
            "expected one of:\n * (*, plugrad.device device = None)\n * (Tensor other)\n"
            " * (tuple of ints size, *, plugrad.device device = None)\n"
            " * (object data, *, plugrad.device device = None)"
        )
    data = args[0]
    if isinstance(data, TensorBase):
        return C.call_alias(data)
    if not is_sequence(data) and not hasattr(data, "__array__"):
        if isinstance(data, (str, bytes)):
            raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
        raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
    made = tensor(data, dtype=get_default_dtype(), device=device)
    return made
