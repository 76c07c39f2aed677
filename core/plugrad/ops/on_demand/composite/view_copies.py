"""Operators that return a copy of the result of the view operator of the same name."""

from __future__ import annotations

# Interpreted: loaded on demand.
from collections.abc import Callable
from typing import Any

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad.memory_format import contiguous_format


def _copied(view: Callable[..., Any]) -> Callable[..., Any]:
    """A view operator that copies its results into new row-major memory."""

    def copied(*args: Any) -> Any:
        found = view(*args)
        if isinstance(found, (list, tuple)):
            return [C.call_clone(part, contiguous_format) for part in found]
        return C.call_clone(found, contiguous_format)

    return copied


def _squeeze_dims(self: Any, dim: Any) -> Any:
    return self.squeeze(tuple(dim))


def _narrow(self: Any, dim: int, start: int, length: int) -> Any:
    if dim >= self.ndim:
        raise RuntimeError(
            f"narrow_copy(): dim must be below {self.ndim}, the number of dimensions, but is {dim}"
        )
    return F.narrow(self, dim, start, length)


alias_copy = _copied(C.call_alias)
as_strided_copy = _copied(F.as_strided)
detach_copy = _copied(C.call_detach)
diagonal_copy = _copied(F.diagonal)
expand_copy = _copied(lambda self, size, implicit: self.expand(size))
narrow_copy = _copied(_narrow)
permute_copy = _copied(F.permute)
select_copy = _copied(F.select)
slice_copy = _copied(C.call_slice_Tensor)
split_copy = _copied(F.split)
split_with_sizes_copy = _copied(F.split_with_sizes)
squeeze_copy = _copied(F.squeeze)
squeeze_dim_copy = _copied(F.squeeze)
squeeze_dims_copy = _copied(_squeeze_dims)
t_copy = _copied(F.t)
transpose_copy = _copied(F.transpose)
unbind_copy = _copied(F.unbind)
unfold_copy = _copied(lambda self, dimension, size, step: self.unfold(dimension, size, step))
unsqueeze_copy = _copied(F.unsqueeze)
view_as_complex_copy = _copied(F.view_as_complex)
# A lazy conjugate can be copied, though not viewed.
view_as_real_copy = _copied(lambda self: F.view_as_real(F.resolve_conj(self)))
# A view does not have to be possible.
view_copy = _copied(lambda self, size: self.reshape(size))
view_copy_dtype = _copied(C.call__view_dtype)
