"""`torch.nn.common_types`: annotations of sizes, one number or one for each dimension."""

from __future__ import annotations

from typing import Any, Optional, TypeAlias, TypeVar, Union

import plugrad
from plugrad import Tensor

__all__ = [
    "_maybe_indices_t",
    "_ratio_2_t",
    "_ratio_3_t",
    "_ratio_any_t",
    "_scalar_or_tuple_1_t",
    "_scalar_or_tuple_2_t",
    "_scalar_or_tuple_3_t",
    "_scalar_or_tuple_4_t",
    "_scalar_or_tuple_5_t",
    "_scalar_or_tuple_6_t",
    "_scalar_or_tuple_any_t",
    "_shape_t",
    "_size_1_t",
    "_size_2_opt_t",
    "_size_2_t",
    "_size_3_opt_t",
    "_size_3_t",
    "_size_4_t",
    "_size_5_t",
    "_size_6_t",
    "_size_any_opt_t",
    "_size_any_t",
    "_tensor_list_t",
]

# Programs subscribe to the ones with a letter in them, which Union allows and `|` does not.
T = TypeVar("T")
_scalar_or_tuple_any_t: TypeAlias = Union[T, tuple[T, ...]]  # noqa: UP007
_scalar_or_tuple_1_t: TypeAlias = Union[T, tuple[T]]  # noqa: UP007
_scalar_or_tuple_2_t: TypeAlias = Union[T, tuple[T, T]]  # noqa: UP007
_scalar_or_tuple_3_t: TypeAlias = Union[T, tuple[T, T, T]]  # noqa: UP007
_scalar_or_tuple_4_t: TypeAlias = Union[T, tuple[T, T, T, T]]  # noqa: UP007
_scalar_or_tuple_5_t: TypeAlias = Union[T, tuple[T, T, T, T, T]]  # noqa: UP007
_scalar_or_tuple_6_t: TypeAlias = Union[T, tuple[T, T, T, T, T, T]]  # noqa: UP007

_size_any_t: TypeAlias = _scalar_or_tuple_any_t[int]
_size_1_t: TypeAlias = _scalar_or_tuple_1_t[int]
_size_2_t: TypeAlias = _scalar_or_tuple_2_t[int]
_size_3_t: TypeAlias = _scalar_or_tuple_3_t[int]
_size_4_t: TypeAlias = _scalar_or_tuple_4_t[int]
_size_5_t: TypeAlias = _scalar_or_tuple_5_t[int]
_size_6_t: TypeAlias = _scalar_or_tuple_6_t[int]
_size_any_opt_t: TypeAlias = _scalar_or_tuple_any_t[Optional[int]]  # noqa: UP045
_size_2_opt_t: TypeAlias = _scalar_or_tuple_2_t[Optional[int]]  # noqa: UP045
_size_3_opt_t: TypeAlias = _scalar_or_tuple_3_t[Optional[int]]  # noqa: UP045
_ratio_2_t: TypeAlias = _scalar_or_tuple_2_t[float]
_ratio_3_t: TypeAlias = _scalar_or_tuple_3_t[float]
_ratio_any_t: TypeAlias = _scalar_or_tuple_any_t[float]
_tensor_list_t: TypeAlias = _scalar_or_tuple_any_t[Tensor]
_maybe_indices_t: TypeAlias = _scalar_or_tuple_2_t[Tensor]
_shape_t: Any = Union[int, list[int], plugrad.Size]  # noqa: UP007
