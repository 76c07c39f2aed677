"""Arguments of recurrent layers over whole sequences."""

from __future__ import annotations

# Interpreted: loaded on demand.
from itertools import pairwise

from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import FLOATING
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.operands import device_mismatch

Sizes = tuple[int, ...]


def lstm_layer(
    gates: TensorBase,
    hx: TensorBase,
    cx: TensorBase,
    w_hh: TensorBase,
    batch_sizes: Sizes,
    reverse: bool,
) -> tuple[object, ...]:
    _check("_lstm_layer", 4, gates, {"hx": hx, "cx": cx}, w_hh, batch_sizes)
    return (gates, hx, cx, w_hh, batch_sizes, reverse)


def gru_layer(
    gates: TensorBase,
    hx: TensorBase,
    w_hh: TensorBase,
    b_hh: TensorBase | None,
    batch_sizes: Sizes,
    reverse: bool,
) -> tuple[object, ...]:
    _check("_gru_layer", 3, gates, {"hx": hx}, w_hh, batch_sizes, b_hh)
    return (gates, hx, w_hh, b_hh, batch_sizes, reverse)


def _check(
    name: str,
    kinds: int,
    gates: TensorBase,
    states: dict[str, TensorBase],
    w_hh: TensorBase,
    batch_sizes: Sizes,
    b_hh: TensorBase | None = None,
) -> None:
    """`kinds`: how many gates there are of each width."""
    if gates.dtype.category != FLOATING:
        raise not_implemented(name, gates.dtype)
    hx = states["hx"]
    if hx.ndim != 2:
        raise RuntimeError(f"{name}(): expected hx to have 2 dimensions, got {hx.ndim}")
    batch, width = sizes_of(hx)
    expected: dict[str, tuple[TensorBase, Sizes]] = {
        "gates": (gates, (sum(batch_sizes), kinds * width)),
        "w_hh": (w_hh, (kinds * width, width)),
        **{which: (state, (batch, width)) for which, state in states.items()},
    }
    if b_hh is not None:
        expected["b_hh"] = (b_hh, (kinds * width,))
    for which, (tensor, sizes) in expected.items():
        if tensor.device is not gates.device:
            raise device_mismatch(gates.device, tensor.device)
        if tensor.dtype is not gates.dtype:
            raise RuntimeError(
                f"{name}(): expected {which} to have the dtype of gates, {gates.dtype}, got "
                f"{tensor.dtype}"
            )
        if sizes_of(tensor) != sizes:
            raise RuntimeError(
                f"{name}(): expected {which} of size {list(sizes)}, got {list(sizes_of(tensor))}"
            )
    falls = all(a >= b for a, b in pairwise(batch_sizes))
    if not batch_sizes or batch_sizes[0] != batch or batch_sizes[-1] < 0 or not falls:
        raise RuntimeError(
            f"{name}(): expected batch_sizes that start with {batch}, the first size of hx, and "
            f"do not grow, got {list(batch_sizes)}"
        )
