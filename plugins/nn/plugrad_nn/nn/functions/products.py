"""Products of matrices in groups, as experts of a mixture take them."""

from __future__ import annotations

from collections.abc import Iterator

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.overridable import overridable

_DTYPES = (plugrad.float32, plugrad.bfloat16, plugrad.float16)


@overridable
def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: plugrad.dtype | None = None,
) -> Tensor:
    """Products of G pairs of matrices; a 2-dimensional operand is split into its parts. Rows of the
    result after the last part are 0.

    Args:
        mat_a: (G, M, K), or (T, K) or (M, T), where the dimension T is split.
        mat_b: (G, K, N), or (T, N) or (K, T) likewise.
        offs: (G), int32, where each part ends, unless both operands are 3-dimensional.
        bias: PyTorch does not support it yet.
        out_dtype: the dtype of `mat_a`.

    Raises:
        RuntimeError: dimensions, dtypes or offsets do not fit.

    >>> import plugrad
    >>> tokens, experts = plugrad.ones(3, 2), plugrad.tensor([[[1.0], [1.0]], [[2.0], [2.0]]])
    >>> offs = plugrad.tensor([1, 3], dtype=plugrad.int32)
    >>> plugrad.nn.functional.grouped_mm(tokens, experts, offs=offs).tolist()
    [[2.0], [4.0], [4.0]]
    """
    _check(mat_a, mat_b, offs, bias, out_dtype)
    if offs is None:
        return plugrad.bmm(mat_a, mat_b)
    if mat_a.ndim == 2 and mat_b.ndim == 2:
        return plugrad.stack([mat_a[:, a:b] @ mat_b[a:b] for a, b in _parts(offs)])
    split, dim = (mat_a, 0) if mat_a.ndim == 2 else (mat_b, 1)
    found = []
    end = 0
    for group, (start, end) in enumerate(_parts(offs)):
        part = split.narrow(dim, start, end - start)
        found.append(part @ mat_b[group] if dim == 0 else mat_a[group] @ part)
    rest = split.shape[dim] - end
    if rest > 0:
        found.append(
            found[-1].new_zeros((rest, mat_b.shape[2]) if dim == 0 else (mat_a.shape[1], rest))
        )
    return plugrad.cat(found, dim)


def _parts(offs: Tensor) -> Iterator[tuple[int, int]]:
    start = 0
    for end in offs.tolist():
        yield start, end
        start = end


def _check(
    a: Tensor, b: Tensor, offs: Tensor | None, bias: Tensor | None, out_dtype: plugrad.dtype | None
) -> None:
    for position, (name, matrix) in enumerate((("mat_a", a), ("mat_b", b)), 1):
        if not isinstance(matrix, Tensor):
            raise TypeError(
                f"grouped_mm(): argument '{name}' (position {position}) must be Tensor, not "
                f"{type(matrix).__name__}"
            )
        if matrix.dtype not in _DTYPES:
            raise RuntimeError(
                f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got {matrix.dtype}"
            )
    for name, matrix in (("mat_a", a), ("mat_b", b)):
        if matrix.ndim not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d")
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    if a.dtype != b.dtype:
        raise RuntimeError(f"mat_a and mat_b must have one dtype, but got {a.dtype} and {b.dtype}")
    if (offs is None) != (a.ndim == 3 and b.ndim == 3):
        raise RuntimeError(
            "Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d"
        )
    if offs is not None:
        if offs.ndim != 1:
            raise RuntimeError("offs has to be 1D")
        if offs.dtype != plugrad.int32:
            raise RuntimeError("Offsets have to be int32")
        for matrix in (a, b):
            if matrix.ndim == 3 and matrix.shape[0] != offs.shape[0]:
                raise RuntimeError("matrix batch sizes have to match")
    elif a.shape[0] != b.shape[0]:
        raise RuntimeError("batched dimension has to match")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype is not None and out_dtype != a.dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
