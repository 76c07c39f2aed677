"""Internal functions of PyTorch's layers that other packages' attention layers and losses call."""

from __future__ import annotations

import copy
import importlib
import warnings
from collections.abc import Callable
from typing import Any

import plugrad
from plugrad import Tensor

__all__ = [
    "_canonical_mask",
    "_detect_is_causal_mask",
    "_generate_square_subsequent_mask",
    "_get_activation_fn",
    "_get_clones",
    "_get_softmax_dim",
    "_in_projection",
    "_in_projection_packed",
    "_none_or_dtype",
    "get_enum",
]


def _get_clones(module: Any, N: int) -> Any:
    """N copies of a module."""
    return plugrad.nn.ModuleList([copy.deepcopy(module) for _ in range(N)])


def _get_activation_fn(activation: str) -> Callable[[Tensor], Tensor]:
    """The function of a name: "relu" or "gelu"."""
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    found: Callable[[Tensor], Tensor] = getattr(plugrad.nn.functional, activation)
    return found


def _generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
    """A mask (sz, sz): minus infinity above the diagonal."""
    return plugrad.triu(
        plugrad.full((sz, sz), float("-inf"), dtype=dtype, device=device), diagonal=1
    )


def _detect_is_causal_mask(
    mask: Tensor | None, is_causal: bool | None = None, size: int | None = None
) -> bool:
    """`is_causal`; if that is None, whether the mask is causal."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    side = mask.size(-2) if size is None else size
    causal = _generate_square_subsequent_mask(side, device=mask.device, dtype=mask.dtype)
    return mask.size() == causal.size() and bool((mask == causal).all())


def _none_or_dtype(input: Tensor | None) -> Any:
    """The dtype of a tensor; None of None."""
    if input is None or isinstance(input, Tensor):
        return None if input is None else input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: Any,
    other_name: str,
    target_type: Any,
    check_other: bool = True,
) -> Tensor | None:
    """A mask to be added: minus infinity where a boolean one is True."""
    if mask is None:
        return None
    is_float = plugrad.is_floating_point(mask)
    if mask.dtype != plugrad.bool and not is_float:
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for "
            "both instead.",
            stacklevel=3,
        )
    if is_float:
        return mask
    return plugrad.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def _in_projection_packed(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None
) -> list[Tensor]:
    """Queries, keys and values from one weight (3E, E), a third for each."""
    linear = plugrad.nn.functional.linear
    biases = (None, None, None) if b is None else b.chunk(3)
    parts = zip((q, k, v), w.chunk(3), biases, strict=True)
    return [linear(x, weight, bias) for x, weight, bias in parts]


def _in_projection(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    b_q: Tensor | None = None,
    b_k: Tensor | None = None,
    b_v: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values, each from a weight of its own."""
    linear = plugrad.nn.functional.linear
    return linear(q, w_q, b_q), linear(k, w_k, b_k), linear(v, w_v, b_v)


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    """The default dimension of a softmax."""
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def get_enum(reduction: str) -> int:
    """The number of a reduction in PyTorch's kernels: "none" 0, "mean" 1, "sum" 2."""
    numbers = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}
    if reduction not in numbers:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return numbers[reduction]


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """The device, the dtype, `non_blocking` and the memory format that `Module.to` reads from its
    arguments."""
    parse = importlib.import_module("plugrad.nn.conversion")._parse_to
    device, dtype, non_blocking = parse(args, kwargs)
    place = None if device is None else plugrad.device(device)
    return place, dtype, non_blocking, kwargs.get("memory_format")
