"""The variants: which compiled kernel serves which operator.

plugrad-onednn has some of these operators, too. Ours come first, except for large gradients of
gelu without AVX-512; if it is not installed, ours serve those as well. See README.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from plugrad.plugins import Variant
from plugrad_native import chains, compiled, narrow

# The largest arrays on which our gradient of gelu comes before plugrad-onednn's.
_MOST: Final = 1 << 15

# By operator: the kernel.
_KERNELS: Final[dict[str, str]] = {
    "_softmax": "softmax",
    "_log_softmax": "log_softmax",
    "_softmax_backward_data": "softmax_backward",
    "_log_softmax_backward_data": "log_softmax_backward",
    "native_layer_norm": "layer_norm",
    "native_layer_norm_backward": "layer_norm_backward",
    "_fused_rms_norm": "rms_norm",
    "_fused_rms_norm_backward": "rms_norm_backward",
    "native_group_norm": "group_norm",
    "native_group_norm_backward": "group_norm_backward",
    "gelu": "gelu",
    "silu_backward": "silu_backward",
    "sigmoid_backward": "sigmoid_backward",
    "tanh_backward": "tanh_backward",
    "clamp": "clamp",
    "threshold_backward": "threshold_backward",
    "sum": "sum",
    "mean": "mean",
    "cumsum": "cumsum",
    "max.dim": "max_dim",
    "nll_loss_forward": "nll_loss",
    "nll_loss_backward": "nll_loss_backward",
    "mse_loss": "mse_loss",
    "mse_loss_backward": "mse_loss_backward",
    # Variants for small matrices.
    "mm": "mm",
    "bmm": "bmm",
    "_matmul_nh": "matmul_nh",
    "_matmul_hn": "matmul_hn",
    "addmm": "addmm",
    "linear": "linear",
    "linear_backward": "linear_backward",
    "native_batch_norm": "batch_norm",
    "native_batch_norm_backward": "batch_norm_backward",
    "_max_pool1d": "max_pool1d",
    "max_pool2d_with_indices": "max_pool",
    "max_pool2d_with_indices_backward": "max_pool_backward",
    "max_pool3d_with_indices": "max_pool",
    "max_pool3d_with_indices_backward": "max_pool_backward",
    "avg_pool2d": "avg_pool",
    "avg_pool2d_backward": "avg_pool_backward",
    "avg_pool3d": "avg_pool",
    "avg_pool3d_backward": "avg_pool_backward",
    "_scaled_dot_product_attention": "attention",
    "_scaled_dot_product_attention_backward": "attention_backward",
    "_lstm_layer": "lstm_layer",
    "_lstm_layer_backward": "lstm_layer_backward",
    "_gru_layer": "gru_layer",
    "_gru_layer_backward": "gru_layer_backward",
    "_update_sgd": "update_sgd",
    "_update_adam": "update_adam",
}
# Those that take `out`.
_OF_ELEMENTS: Final = (
    *("abs", "erf", "exp", "neg", "reciprocal", "relu", "rsqrt", "sigmoid", "silu", "sqrt"),
    *("tanh", "maximum", "minimum"),
)
_OF_PAIRS: Final = ("add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge")
_INTO_FIRST: Final = ("add_", "sub_", "mul_", "div_")
# For large arrays NumPy copies as fast and finds maxima faster.
_JOINED: Final[dict[str, str]] = {"cat": "cat", "stack": "stack"}
_TAKEN: Final[dict[str, str]] = {
    "index_select": "index_select",
    "embedding": "embedding",
    "gather": "gather",
    "scatter.src": "scatter",
}
_VIEWS: Final = (
    *("view", "permute", "transpose", "t", "expand", "select", "slice", "unsqueeze"),
    *("split.Tensor", "split_with_sizes", "unbind.int"),
)
_SPLIT: Final[dict[str, str]] = {
    "split.Tensor": "split",
    "split_with_sizes": "split",
    "unbind.int": "unbind",
}
_MOST_OF_SMALL: Final = 1 << 12
_REAL: Final = ("float32", "float64")


def _variant(
    operator: str,
    function: str,
    *,
    name: str = "native",
    features: tuple[str, ...] = compiled.NEEDS[compiled.name],
    dtypes: tuple[str, ...] = _REAL,
    least: int = 0,
    most: int | None = None,
    priority: int = 1,
    takes_out: bool = False,
) -> Variant:
    return Variant(
        operator,
        compiled.kernel(function),
        name=name,
        features=features,
        dtypes=dtypes,
        least=least,
        most=most,
        priority=priority,
        takes_out=takes_out,
        joins=chains.join if function in chains.LINKS else None,
        problem=compiled.problem,
    )


# Of bfloat16, too, these compute arrays, or two arrays of one shape.
_NARROW: Final = (
    *(*_OF_ELEMENTS, "gelu"),
    *(f"{operator}.Tensor" for operator in (*_OF_PAIRS, *_INTO_FIRST)),
    *("gelu_backward", "silu_backward", "sigmoid_backward", "tanh_backward"),
)
# And these as a whole: the kernel, and the position of an argument that asks for float32.
_NARROW_WHOLE: Final[dict[str, tuple[str, int]]] = {
    "_softmax": ("softmax", 2),
    "_log_softmax": ("log_softmax", 2),
    "_softmax_backward_data": ("softmax_backward", -1),
    "_log_softmax_backward_data": ("log_softmax_backward", -1),
    "native_layer_norm": ("layer_norm", -1),
    "_fused_rms_norm": ("rms_norm", -1),
    "sum": ("sum", -1),
    "mean": ("mean", -1),
    "threshold_backward": ("threshold_backward", -1),
}
# Up to so many elements the loops of ml_dtypes are as fast.
_LEAST_NARROW: Final = 1 << 11


def _narrow(operator: str, kernel: Callable[..., Any]) -> Variant:
    return Variant(
        operator,
        kernel,
        name="native-bfloat16",
        features=compiled.NEEDS[compiled.name],
        dtypes=("bfloat16",),
        least=_LEAST_NARROW,
        priority=1,
        problem=compiled.problem,
    )


VARIANTS: Final = [
    *(_variant(operator, function) for operator, function in _KERNELS.items()),
    *(_variant(operator, _SPLIT.get(operator, operator), dtypes=()) for operator in _VIEWS),
    *(_variant(operator, operator, takes_out=True) for operator in _OF_ELEMENTS),
    _variant("pow.Tensor_Scalar", "pow", takes_out=True),
    *(
        _variant(f"{operator}.{overload}", operator, takes_out=operator in _OF_PAIRS)
        for operator in (*_OF_PAIRS, *_INTO_FIRST)
        for overload in ("Tensor", "Scalar")
    ),
    _variant(
        "log", "log", dtypes=("float32",), takes_out=True
    ),  # for float64 it is not faster than NumPy
    _variant("convolution", "convolution", dtypes=("float32",)),
    _variant("convolution_backward", "convolution_backward", dtypes=("float32",)),
    _variant("argmax", "argmax", most=_MOST_OF_SMALL),
    *(
        _variant(operator, function, dtypes=(), most=_MOST_OF_SMALL)
        for operator, function in _JOINED.items()
    ),
    *(_variant(operator, function, dtypes=()) for operator, function in _TAKEN.items()),
    _variant("gelu_backward", "gelu_backward", most=_MOST),
    _variant(
        "gelu_backward",
        "gelu_backward",
        name="native-wide",
        features=compiled.NEEDS["_avx512"],
        least=_MOST + 1,
    ),
    _variant("gelu_backward", "gelu_backward", name="native-large", least=_MOST + 1, priority=-1),
    *(
        _variant("_to_copy", "cast", name=f"native-{dtype}", dtypes=(dtype,), least=_LEAST_NARROW)
        for dtype in ("float32", "bfloat16")
    ),
    *(_narrow(operator, compiled.kernel(operator.partition(".")[0])) for operator in _NARROW),
    *(
        _narrow(operator, narrow.whole(compiled.kernel(function), widening))
        for operator, (function, widening) in _NARROW_WHOLE.items()
    ),
]
