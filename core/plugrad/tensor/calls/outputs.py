"""`out=`: writes results into given tensors.

The result is computed as without `out=`, and then written into the tensor's memory. The tensor is
resized if its shape differs.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

from plugrad.device import Device, as_device
from plugrad.dispatch.autocast import pause_autocast, resume_autocast
from plugrad.dispatch.caller import warn_at_caller
from plugrad.dispatch.keys import FORWARD_AD_BIT
from plugrad.dispatch.local_state import current_state
from plugrad.dtype import INTEGER, DType, bool_, uint8
from plugrad.tensor.aliasing.functionalize import take_over
from plugrad.tensor.aliasing.overlap import check_out
from plugrad.tensor.base import TensorBase, bump_version, needs_grad, numel_of, sizes_of
from plugrad.tensor.calls.arguments import dtype_argument, type_name
from plugrad.tensor.calls.cpp_names import CPP_NAMES
from plugrad.tensor.calls.promotion import can_cast

# Decompositions, and what is solved by them.
MATRICES: Final = [
    "chain_matmul",
    "linalg_cholesky",
    "linalg_cholesky_ex",
    "linalg_eig",
    "linalg_eigh",
    "linalg_eigvals",
    "linalg_eigvalsh",
    "linalg_inv_ex",
    "linalg_ldl_factor",
    "linalg_ldl_factor_ex",
    "linalg_ldl_solve",
    "linalg_lu",
    "linalg_lu_factor",
    "linalg_lu_factor_ex",
    "linalg_lu_solve",
    "linalg_qr",
    "linalg_slogdet",
    "linalg_solve_ex",
    "linalg_solve_triangular",
    "linalg_svd",
    "linalg_svdvals",
    "lu_solve",
    "lu_unpack",
    "ormqr",
    "qr",
    "slogdet",
    "svd",
    "triangular_solve",
]
# Copies of views, and other functions that write into `out` in its dtype.
COPIES: Final = [
    *("alias_copy", "as_strided_copy", "detach_copy", "diagonal_copy", "expand_copy"),
    *("narrow_copy", "permute_copy", "select_copy", "slice_copy", "squeeze_copy", "t_copy"),
    *("transpose_copy", "unfold_copy", "unsqueeze_copy", "view_as_complex_copy"),
    *("view_as_real_copy", "view_copy"),
    *("avg_pool2d", "avg_pool3d", "ceil", "conj_physical", "floor", "gelu", "hardshrink", "linear"),
    *("log_sigmoid", "logcumsumexp", "logsigmoid", "mode", "nanmedian", "nanquantile", "neg"),
    *("quantile", "sign", "softplus", "softshrink"),
]
# Functions that PyTorch computes without promotion: `out` must have the dtype of the result.
EXACT: Final = frozenset(
    [
        *MATRICES,
        *COPIES,
        "addmm",
        "addmv",
        "all",
        "amax",
        "amin",
        "aminmax",
        "any",
        "argmax",
        "argmin",
        "argsort",
        "baddbmm",
        "bmm",
        "bucketize",
        "clamp",
        "cross",
        "cummax",
        "cummin",
        "det",
        "diag",
        "dot",
        "fix",
        "frac",
        "gather",
        "index_add",
        "index_copy",
        "index_select",
        "inner",
        "inv",
        "inverse",
        "isin",
        "isneginf",
        "isposinf",
        "kthvalue",
        "linalg_cross",
        "linalg_det",
        "linalg_inv",
        "linalg_solve",
        "linalg_vector_norm",
        "log_softmax",
        "masked_select",
        "matmul",
        "matrix_norm",
        "matrix_power",
        "median",
        "mm",
        "msort",
        "multi_dot",
        "mv",
        "nan_to_num",
        "negative",
        "norm",
        *("reflection_pad1d", "reflection_pad3d"),
        *("replication_pad1d", "replication_pad2d", "replication_pad3d"),
        "round",
        "scatter",
        "scatter_add",
        "scatter_reduce",
        "searchsorted",
        "sgn",
        "signbit",
        "softmax",
        "softplus",
        "solve",
        "sort",
        "take",
        "take_along_dim",
        "tensordot",
        "topk",
        "tril",
        "triu",
        "trunc",
        "vdot",
        "vecdot",
        "vector_norm",
        "where",
    ]
)
# Functions that make tensors of nothing resize `out` without a warning.
FACTORIES: Final = frozenset(["empty", "eye", "full", "ones", "rand", "randn", "randperm", "zeros"])
# Functions that join tensors.
JOINING: Final = frozenset(
    [
        "cat",
        "column_stack",
        "concat",
        "concatenate",
        "dstack",
        "hstack",
        "row_stack",
        "stack",
        "vstack",
    ]
)
# Functions that cast their results to any dtype.
CAST: Final = frozenset(("lu",))
# Truth values that bytes hold as well.
TRUTHS: Final = frozenset(("all", "any"))
# Functions that compute in the dtype of `out`.
ACCUMULATING: Final = frozenset(("cumprod", "cumsum", "prod", "sum"))
# Functions that write into `out` as it is, if it has as many elements as the result.
SEQUENCES: Final = frozenset(("arange", "linspace", "logspace", "range"))
# For these, only the several results of a reduction.
EXACT_IF_SEVERAL: Final = frozenset(("max", "min"))

# Functions with messages of their own: the expected dtype, and the given one.
WORDS: Final = {
    "complex": "Expected object of scalar type {} but got scalar type {} for argument 'out'",
    "multinomial": "multinomial expects {} tensor out, got: {}",
    **dict.fromkeys(
        ("native_batch_norm", "reflection_pad2d"), "expected scalar type {} but found {}"
    ),
    "nonzero": "nonzero: Expected out tensor to have scalar type {} but got scalar type{}",
}
# Functions of matrices that convert to the dtype of `out`: what their errors begin with.
CONVERTED: Final = {
    "cholesky": "cholesky: Expected result",
    "cholesky_inverse": "cholesky_inverse: Expected result",
    "cholesky_solve": "cholesky_solve: Expected result",
    "geqrf": "plugrad.geqrf: Expected a",
    "linalg_cond": "linalg.cond: Expected result",
    "linalg_householder_product": "plugrad.linalg.householder_product: Expected result",
    "linalg_pinv": "linalg.pinv: Expected result",
    "linalg_tensorinv": "tensorinv: Expected result",
    "linalg_tensorsolve": "tensorsolve: Expected result",
    "orgqr": "plugrad.linalg.householder_product: Expected result",
}
# Fourier transforms look at the category of `out` only: complex, or real and no integer.
SPECTRAL: Final = {
    **dict.fromkeys(("fft_fft2", "fft_fftn"), "fftn"),
    **dict.fromkeys(("fft_ifft2", "fft_ifftn"), "ifftn"),
    **dict.fromkeys(("fft_rfft2", "fft_rfftn"), "rfftn"),
    **dict.fromkeys(("fft_ihfft2", "fft_ihfftn"), "ihfftn"),
    **dict.fromkeys(("fft_irfft2", "fft_irfftn"), "irfftn"),
    **dict.fromkeys(("fft_hfft2", "fft_hfftn"), "hfftn"),
    **{"fft_" + name: name for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
}


def _check_spectral(function: str, out: TensorBase, result: TensorBase) -> None:
    if result.dtype.is_complex:
        wanted, fits = "complex", out.dtype.is_complex
    else:
        wanted, fits = "floating point", out.dtype.is_floating_point
    if not fits:
        raise RuntimeError(
            f"{SPECTRAL[function]} expects a {wanted} output tensor, but got "
            f"{out.dtype.scalar_name}"
        )


def write_out(function: str, out: Any, result: TensorBase, several: bool = False) -> TensorBase:
    """Put a result into the tensor given as `out=`, resizing it if its shape differs.

    Args:
        several: whether it is one of several results.

    Raises:
        TypeError: `out` is not a tensor, or its dtype takes no result of `cat`.
        RuntimeError: it is on another device, its dtype cannot take the result, or one of both
            requires grad while operations are recorded.
        NotImplementedError: one of both has a tangent.
    """
    if not isinstance(out, TensorBase):
        raise TypeError(f"{function}(): argument 'out' must be Tensor, not {type_name(out)}")
    state = current_state()
    if state.grad_enabled and (needs_grad(out) or needs_grad(result)):
        raise_requires_grad(function)
    if (out._keyset | result._keyset) & state.kept & FORWARD_AD_BIT:
        raise NotImplementedError(
            f"Trying to use forward AD with {function}_out that does not support it because it is "
            "an out= function"
        )
    if out.device is not result.device:
        raise RuntimeError(
            f"Attempting to copy from device {result.device} to device {out.device}, but "
            "cross-device copies are not allowed!"
        )
    if function in SPECTRAL:
        _check_spectral(function, out, result)
    exact = function in EXACT or (several and function in EXACT_IF_SEVERAL)
    if function in TRUTHS and out.dtype is not result.dtype:
        if out.dtype is not uint8 and out.dtype is not bool_:
            raise RuntimeError(
                f"{function} only supports bool tensor for result, got: {out.dtype.scalar_name}"
            )
    elif function in WORDS and out.dtype is not result.dtype:
        raise RuntimeError(WORDS[function].format(result.dtype.scalar_name, out.dtype.scalar_name))
    elif exact and out.dtype is not result.dtype:
        raise RuntimeError(
            f"Expected out tensor to have dtype {CPP_NAMES[result.dtype.name]}, but got "
            f"{CPP_NAMES[out.dtype.name]} instead"
        )
    if function not in TRUTHS and function not in CAST and not can_cast(result.dtype, out.dtype):
        if function in CONVERTED:
            start = CONVERTED[function]
            raise RuntimeError(
                f"{start} to be safely castable from {result.dtype.scalar_name} dtype, but got "
                f"{start.rpartition(' ')[2]} with dtype {out.dtype.scalar_name}"
            )
        if function in JOINING:
            raise TypeError(
                f"plugrad.{function}(): input types can't be cast to the desired output type "
                f"{out.dtype.scalar_name}"
            )
        raise RuntimeError(
            f"result type {result.dtype.scalar_name} can't be cast to the desired output type "
            f"{out.dtype.scalar_name}"
        )
    target: Any = out
    if function in SEQUENCES and numel_of(out) == numel_of(result):
        sequence: Any = result
        result = sequence.reshape(sizes_of(out))
    if sizes_of(out) != sizes_of(result):
        if numel_of(out) != 0 and function not in FACTORIES:
            warn_at_caller(
                "An output with one or more elements was resized since it had shape "
                f"{list(sizes_of(out))}, which does not match the required output shape "
                f"{list(sizes_of(result))}. This behavior is deprecated, and in a future plugrad "
                "release outputs will not be resized unless they have zero elements. You can "
                "explicitly reuse an out tensor t by resizing it, inplace, to zero elements with "
                "t.resize_(0).",
            )
        converted: Any = result
        if result._view_info is not None:
            converted = converted.clone()
        take_over(out, converted.to(out.dtype))
        bump_version(out)
        return out
    target.copy_(result)
    return out


def raise_requires_grad(function: str) -> NoReturn:
    raise RuntimeError(
        f"{function}(): functions with out=... arguments don't support automatic "
        "differentiation, but one of the arguments requires grad."
    )


def write_outs(function: str, out: Any, results: Any) -> Any:
    """Put several results into the tensors given as `out=`, a tuple of as many.

    Returns:
        Named results as `function` gives them, of the tensors in `out`.

    Raises:
        TypeError: `out` is not a tuple of the right number of tensors.
        RuntimeError: see `write_out`.
    """
    wanted = f"tuple of {len(results)} Tensors"
    if not isinstance(out, (tuple, list)):
        raise TypeError(f"{function}(): argument 'out' must be {wanted}, not {type_name(out)}")
    if len(out) != len(results) or not all(isinstance(item, TensorBase) for item in out):
        given = ", ".join([type_name(item) for item in out])
        raise TypeError(f"{function}(): argument 'out' must be {wanted}, not ({given})")
    pairs = zip(out, results, strict=True)
    written = [write_out(function, item, result, True) for item, result in pairs]
    return type(results)(*written) if hasattr(results, "_fields") else tuple(written)


def compute_into(
    function: str,
    out: Any,
    call: Any,
    args: tuple[Any, ...],
    read: tuple[Any, ...],
    elementwise: bool = False,
) -> Any:
    """Call an operator and write its results into the tensors given as `out=`.

    Args:
        call: takes `args`, which have been checked.
        read: the tensors that `out` must not overlap with, if the function requires that; empty if
            it was checked already.

    Returns:
        `out`, see `write_out` and `write_outs`; None for an operator that gives a list, as in
        PyTorch.
    """
    if read:
        check_out(function, out, read, elementwise)
    former = pause_autocast()
    try:
        result = call(*args)
    finally:
        resume_autocast(former)
    if isinstance(result, list):
        write_outs(function, out, result)
        return None
    if isinstance(result, tuple):
        return write_outs(function, out, result)
    return write_out(function, out, result)


def accumulated_dtype(function: str, given: Any, out: Any, dtype: Any) -> Any:
    """The dtype that a reduction of `given` computes in, with `out=` and perhaps `dtype=`.

    Raises:
        RuntimeError: `out` has another dtype than was requested, or `given` requires grad.
    """
    if not isinstance(out, TensorBase):
        return dtype
    if dtype is None:
        # `nansum` does so for integers, which are never nan.
        whole = isinstance(given, TensorBase) and given.dtype.category <= INTEGER
        if function not in ACCUMULATING and not (whole and function == "nansum"):
            return None
        # A result of integers would not show this.
        if isinstance(given, TensorBase) and needs_grad(given) and current_state().grad_enabled:
            raise_requires_grad(function)
        return out.dtype
    wanted = dtype_argument(dtype, function, "dtype", 0)
    if wanted is not out.dtype:
        raise RuntimeError(
            f"Expected out tensor to have dtype {CPP_NAMES[wanted.name]}, but got "
            f"{CPP_NAMES[out.dtype.name]} instead"
        )
    return wanted


def like_out(function: str, out: Any, dtype: Any, device: Any) -> tuple[DType, Device]:
    """The dtype and device for a factory with `out=`: the given tensor's.

    Raises:
        TypeError: `out` is not a tensor.
        RuntimeError: a dtype or device was requested that it does not have.
    """
    if not isinstance(out, TensorBase):
        raise TypeError(f"{function}(): argument 'out' must be Tensor, not {type_name(out)}")
    if dtype is not None:
        wanted = dtype_argument(dtype, function, "dtype", 0)
        if wanted is not out.dtype:
            raise RuntimeError(
                f"dtype {wanted.scalar_name} does not match dtype of out parameter "
                f"({out.dtype.scalar_name})"
            )
    if device is not None and as_device(device) is not out.device:
        raise RuntimeError(
            f"device {as_device(device)} does not match device of out parameter ({out.device})"
        )
    return out.dtype, out.device
