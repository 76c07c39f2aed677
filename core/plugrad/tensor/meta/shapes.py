"""Shapes and dtypes of results, by family of operators. Arguments were checked by the core."""

from __future__ import annotations

# Interpreted: it computes shapes only.
from collections.abc import Callable, Iterable
from typing import Any, Final, NoReturn

from plugrad.dispatch.families import elementwise_on_demand
from plugrad.dispatch.operator import Operator, declared_operators, find_operator
from plugrad.dtype import DType, bool_, int32, int64
from plugrad.memory_format import contiguous_format
from plugrad.tensor.aliasing.memory_layout import (
    broadcast_strides,
    common_order,
    has_format,
    is_dense,
    memory_order,
    strides_in_order,
)
from plugrad.tensor.calls.broadcasting import broadcast_shapes
from plugrad.tensor.meta.array import MetaArray, Shape, shape_of

Kernel = Callable[..., Any]


def _result_dtype(result: str, dtype: DType) -> DType:
    if result == "bool":
        return bool_
    if result == "complex":
        return dtype.to_complex()
    return dtype.to_real() if result == "real" else dtype


def joint_strides(shape: Shape, operands: Iterable[Any]) -> Shape | None:
    """The strides of an elementwise result; None if they are those in row-major order."""
    strided = [a for a in operands if isinstance(a, MetaArray)]
    if all(a.shape == shape and has_format(shape, a.strides, contiguous_format) for a in strided):
        return None
    first = strided[0]
    alike = all((a.shape, a.strides) == (shape, first.strides) for a in strided)
    if alike and is_dense(shape, first.strides):
        return first.strides
    steps = [broadcast_strides(a.shape, a.strides, shape) for a in strided]
    return strides_in_order(shape, common_order(shape, steps))


def structured(op: Operator) -> Kernel:
    """The kernel of an elementwise operator; its operands are already promoted."""
    result = op.result
    count = len(op.schema.returns)

    def kernel(*operands: Any) -> MetaArray | tuple[MetaArray, ...]:
        shape: Shape = ()
        dtype = bool_
        for operand in operands:
            if isinstance(operand, MetaArray):
                shape = broadcast_shapes(shape, operand.shape)
                dtype = operand.dtype
        strides = joint_strides(shape, operands)
        results = [MetaArray(shape, _result_dtype(result, dtype), strides) for _ in range(count)]
        return results[0] if count == 1 else tuple(results)

    return kernel


def structured_kernels() -> dict[str, Kernel]:
    """Kernels of all operators of the core that are declared elementwise."""
    found = {
        op.full_name: structured(op)
        for op in declared_operators()
        if op.namespace == "plugrad" and op.structure in ("unary", "binary", "binary_alpha")
        if not op.schema.is_inplace
    }
    for name in elementwise_on_demand():
        found.setdefault(name.partition("::")[2], _structured_later(name))
    return found


def _structured_later(name: str) -> Kernel:
    """The kernel of an operator in a family that may not be loaded yet."""

    def kernel(*operands: Any) -> Any:
        op = find_operator(name)
        assert op is not None
        return structured(op)(*operands)

    return kernel


def reduced(shape: Shape, dims: Iterable[int], keepdim: bool) -> Shape:
    """A shape with some dimensions reduced."""
    gone = {dim % len(shape) for dim in dims} if shape else set()
    if keepdim:
        return tuple(1 if dim in gone else size for dim, size in enumerate(shape))
    return tuple(size for dim, size in enumerate(shape) if dim not in gone)


def _all_dims(a: MetaArray, dims: Any) -> Iterable[int]:
    if dims is None:
        return range(a.ndim)
    return (dims,) if isinstance(dims, int) else dims


def accumulated(a: MetaArray, dims: Any, keepdim: bool, dtype: DType) -> MetaArray:
    return a.new(reduced(a.shape, _all_dims(a, dims), keepdim), dtype)


def _reduction(dtype: DType | None = None) -> Kernel:
    def kernel(a: MetaArray, dims: Any = None, keepdim: bool = False) -> MetaArray:
        return a.new(reduced(a.shape, _all_dims(a, dims), keepdim), dtype)

    return kernel


_same = _reduction()


def variance(a: MetaArray, dims: Any, correction: Any, keepdim: bool) -> MetaArray:
    return a.new(reduced(a.shape, _all_dims(a, dims), keepdim), a.dtype.to_real())


def variance_and_mean(
    a: MetaArray, dims: Any, correction: Any, keepdim: bool
) -> tuple[MetaArray, MetaArray]:
    return variance(a, dims, correction, keepdim), _same(a, dims, keepdim)


def pair(a: MetaArray, dims: Any, keepdim: bool) -> tuple[MetaArray, MetaArray]:
    return _same(a, dims, keepdim), _same(a, dims, keepdim)


def with_indices(a: MetaArray, dim: int, keepdim: bool) -> tuple[MetaArray, MetaArray]:
    values = _same(a, dim, keepdim)
    return values, a.new(values.shape, int64)


def vector_norm(a: MetaArray, order: Any, dims: Any, keepdim: bool) -> MetaArray:
    return variance(a, dims, order, keepdim)


def cumulated(a: MetaArray, dim: int, dtype: DType) -> MetaArray:
    return a.new(a.shape, dtype)


def like(a: MetaArray, *rest: Any) -> MetaArray:
    """A result like the first argument."""
    return a.new(a.shape)


def mantissa_and_exponent(a: MetaArray) -> tuple[MetaArray, MetaArray]:
    return a.new(a.shape), a.new(a.shape, int32)


def elementwise(*operands: Any) -> MetaArray:
    """The result for operands of one dtype, or for numbers."""
    shape: Shape = ()
    found: MetaArray | None = None
    for operand in operands:
        if isinstance(operand, MetaArray):
            shape = broadcast_shapes(shape, operand.shape)
            found = operand
    assert found is not None
    return MetaArray(shape, found.dtype, joint_strides(shape, operands))


def where(condition: MetaArray, a: Any, b: Any) -> MetaArray:
    shape = broadcast_shapes(condition.shape, broadcast_shapes(shape_of(a), shape_of(b)))
    array = a if isinstance(a, MetaArray) else b
    return MetaArray(shape, array.dtype, joint_strides(shape, (condition, a, b)))


def real_like(a: MetaArray) -> MetaArray:
    return a.new(a.shape, a.dtype.to_real())


def complex_of_parts(a: MetaArray, b: MetaArray) -> MetaArray:
    return a.new(broadcast_shapes(a.shape, b.shape), a.dtype.to_complex())


def mm(a: MetaArray, b: MetaArray) -> MetaArray:
    """Matrices, vectors or batches of matrices with inner dimensions that agree."""
    inner = b.ndim - 2 if b.ndim > 1 else 0
    if a.ndim and a.shape[-1] != b.shape[inner]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({_times(a.shape)} and {_times(b.shape)})"
        )
    columns = b.shape[-1:] if b.ndim > 1 else ()
    return a.new((*broadcast_shapes(a.shape[:-2], b.shape[:-2]), *a.shape[-2:-1], *columns))


def _times(shape: Shape) -> str:
    return "x".join(str(size) for size in shape)


def cat(arrays: list[MetaArray], dim: int) -> MetaArray:
    first = arrays[0]
    total = sum(array.shape[dim] for array in arrays)
    for array in arrays[1:]:
        for place, (size, other) in enumerate(zip(first.shape, array.shape, strict=True)):
            if size != other and place != dim % first.ndim:
                raise RuntimeError(
                    "Sizes of tensors must match except in dimension "
                    f"{dim}. Expected {list(first.shape)}, got {list(array.shape)}"
                )
    shape = list(first.shape)
    shape[dim] = total
    return first.new(shape)


def stack(arrays: list[MetaArray], dim: int) -> MetaArray:
    shape = list(arrays[0].shape)
    shape.insert(dim, len(arrays))
    return arrays[0].new(shape)


def repeat(a: MetaArray, repeats: Shape) -> MetaArray:
    shape = (1,) * (len(repeats) - a.ndim) + a.shape
    return a.new([size * count for size, count in zip(shape, repeats, strict=True)])


def sort(a: MetaArray, *rest: Any) -> tuple[MetaArray, MetaArray]:
    return a.new(a.shape), a.new(a.shape, int64)


def topk(a: MetaArray, k: int, dim: int, *rest: Any) -> tuple[MetaArray, MetaArray]:
    shape = list(a.shape)
    if shape:
        shape[dim] = k
    return a.new(shape), a.new(shape, int64)


def clone(a: MetaArray, keep_strides: bool) -> MetaArray:
    return laid_out_like(a, a.dtype) if keep_strides else a.new(a.shape)


def cast(a: MetaArray, dtype: DType) -> MetaArray:
    return laid_out_like(a, dtype)


def laid_out_like(a: MetaArray, dtype: DType) -> MetaArray:
    """A new array that keeps the strides, without gaps."""
    if is_dense(a.shape, a.strides):
        return MetaArray(a.shape, dtype, a.strides)
    return MetaArray(a.shape, dtype, strides_in_order(a.shape, memory_order(a.shape, a.strides)))


def keep(a: MetaArray, *rest: Any) -> MetaArray:
    """A kernel that only writes."""
    return a


def gather(a: MetaArray, dim: int, index: MetaArray) -> MetaArray:
    return a.new(index.shape)


def take(a: MetaArray, index: MetaArray) -> MetaArray:
    return a.new(index.shape)


def index_select(a: MetaArray, dim: int, index: MetaArray) -> MetaArray:
    shape = list(a.shape)
    if shape:
        shape[dim] = index.size
    return a.new(shape)


def index(a: MetaArray, indices: list[MetaArray | None]) -> MetaArray:
    """Adjacent index arrays put their dimensions in the first one's place, others at the front."""
    given = [item for item in indices if item is not None]
    if any(item.dtype is bool_ for item in given):
        needs_data()
    shape: Shape = ()
    for item in given:
        shape = broadcast_shapes(shape, item.shape)
    places = [place for place, item in enumerate(indices) if item is not None]
    kept = [size for dim, size in enumerate(a.shape) if dim not in places]
    in_a_row = places == list(range(places[0], places[0] + len(places)))
    start = places[0] if in_a_row else 0
    return a.new((*kept[:start], *shape, *kept[start:]))


def masked_fill(a: MetaArray, mask: MetaArray, value: Any) -> MetaArray:
    return a.new(broadcast_shapes(a.shape, mask.shape))


def masked_scatter(a: MetaArray, mask: MetaArray, source: MetaArray) -> MetaArray:
    return a.new(broadcast_shapes(a.shape, mask.shape))


def repeat_interleave(repeats: MetaArray, output_size: int | None) -> MetaArray:
    if output_size is None:
        needs_data()
    return repeats.new((output_size,))


def solve(a: MetaArray, b: MetaArray) -> MetaArray:
    return b.new((*broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:]))


def det(a: MetaArray) -> MetaArray:
    return a.new(a.shape[:-2])


def filled(size: Shape, *rest: Any) -> MetaArray:
    """Size, then whatever fills it, dtype and device."""
    return MetaArray(size, rest[-2])


def counted(start: Any, step: Any, count: int, dtype: DType, device: int) -> MetaArray:
    return MetaArray((count,), dtype)


def spaced(start: Any, end: Any, steps: int, *rest: Any) -> MetaArray:
    return MetaArray((steps,), rest[-2])


def eye(n: int, m: int, dtype: DType, device: int) -> MetaArray:
    return MetaArray((n, m), dtype)


def random_integers(low: int, high: int, size: Shape, *rest: Any) -> MetaArray:
    return MetaArray(size, rest[-2])


def permutation(n: int, generator: Any, dtype: DType, device: int) -> MetaArray:
    return MetaArray((n,), dtype)


def multinomial(weights: MetaArray, count: int, *rest: Any) -> MetaArray:
    return weights.new((*weights.shape[:-1], count), int64)


def nll_loss(
    a: MetaArray, target: MetaArray, weight: Any, reduction: str, *rest: Any
) -> tuple[MetaArray, MetaArray]:
    return a.new(target.shape if reduction == "none" else ()), a.new(())


def loss(a: MetaArray, target: MetaArray, weight: Any, reduction: str) -> MetaArray:
    return a.new(broadcast_shapes(a.shape, target.shape) if reduction == "none" else ())


def loss_backward(grad: MetaArray, a: MetaArray, *rest: Any) -> MetaArray:
    return a.new(a.shape)


def whole_like(a: MetaArray, *rest: Any) -> MetaArray:
    """Integers, as many as there are elements in the first argument."""
    return a.new(a.shape, int64)


def needs_data(*args: Any) -> NoReturn:
    raise NotImplementedError(
        "attempted to run an operator with Meta tensors whose result depends on data, which they "
        "do not have"
    )


def half_spectrum(a: MetaArray, dims: Shape, mode: int, onesided: bool) -> MetaArray:
    last = dims[-1]
    count = a.shape[last] // 2 + 1 if onesided else a.shape[last]
    return a.new((*a.shape[:last], count, *a.shape[last + 1 :]), a.dtype.to_complex())


def signal(a: MetaArray, dims: Shape, mode: int, last_dim_size: int) -> MetaArray:
    last = dims[-1]
    return a.new((*a.shape[:last], last_dim_size, *a.shape[last + 1 :]), a.dtype.to_real())


KERNELS: Final[dict[str, Kernel]] = {
    **dict.fromkeys(("sum", "nansum", "mean", "prod"), accumulated),
    **dict.fromkeys(("var", "std"), variance),
    **dict.fromkeys(("var_mean", "std_mean"), variance_and_mean),
    **dict.fromkeys(("max", "min", "median", "amax", "amin", "logsumexp"), _same),
    **dict.fromkeys(("max.dim", "min.dim", "median.dim"), with_indices),
    **dict.fromkeys(("argmax", "argmin", "count_nonzero"), _reduction(int64)),
    **dict.fromkeys(("any", "all"), _reduction(bool_)),
    "aminmax": pair,
    "linalg_vector_norm": vector_norm,
    **dict.fromkeys(("cumsum", "cumprod"), cumulated),
    "where.self": where,
    "angle": real_like,
    "complex": complex_of_parts,
    "frexp.Tensor": mantissa_and_exponent,
    **dict.fromkeys(("round.decimals", "nan_to_num"), like),
    **dict.fromkeys(("div.Tensor_mode", "div.Scalar_mode"), elementwise),
    **dict.fromkeys(("clamp", "clamp_min", "clamp_max"), elementwise),
    **dict.fromkeys(("mm", "bmm", "mv", "dot", "vdot"), mm),
    "cat": cat,
    "stack": stack,
    "repeat": repeat,
    **dict.fromkeys(("flip", "roll", "tril", "triu"), like),
    **dict.fromkeys(("select_scatter", "slice_scatter", "diagonal_scatter"), like),
    "_as_strided_scatter": like,
    "linalg_matrix_exp": like,
    "sort": sort,
    "topk": topk,
    "clone": clone,
    "_to_copy": cast,
    "gather": gather,
    "take": take,
    "index_select": index_select,
    **dict.fromkeys(("scatter", "scatter_add", "index_add", "index_copy", "index_fill"), like),
    "index_put": like,
    "index": index,
    "masked_fill": masked_fill,
    "masked_scatter": masked_scatter,
    "repeat_interleave.Tensor": repeat_interleave,
    "_linalg_solve": solve,
    "linalg_det": det,
    "_fft_c2c": like,
    "_fft_r2c": half_spectrum,
    "_fft_c2r": signal,
    "_embedding_bag_places": whole_like,
    **dict.fromkeys(("empty", "zeros", "ones", "full", "rand", "randn"), filled),
    "arange": counted,
    **dict.fromkeys(("linspace", "logspace"), spaced),
    "eye": eye,
    "randint": random_integers,
    "randperm": permutation,
    "bernoulli": like,
    "multinomial": multinomial,
    **dict.fromkeys(
        ("copy_", "fill_", "zero_", "uniform_", "normal_", "exponential_", "bernoulli_"), keep
    ),
    "random_": keep,
    **dict.fromkeys(("cauchy_", "log_normal_", "geometric_"), keep),
    **dict.fromkeys(("poisson", "binomial", "_standard_gamma", "_sample_dirichlet"), like),
    "nll_loss_forward": nll_loss,
    "binary_cross_entropy": loss,
    "nll_loss_backward": loss_backward,
    "binary_cross_entropy_backward": loss_backward,
    **dict.fromkeys(("equal", "nonzero", "masked_select"), needs_data),
}
