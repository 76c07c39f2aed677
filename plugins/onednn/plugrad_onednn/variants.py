"""The variants: which kernel of oneDNN serves which operator, and from which size on.

The least sizes are measured: from there on the variant is faster than plugrad-cpu's own kernel, on
one thread and on two. See README.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from plugrad.plugins import Variant
from plugrad_onednn.kernels import convolution, elementwise, normalization, products, softmax
from plugrad_onednn.library import problem, problem_of_bfloat16

# By operator: the kernel, the least number of elements, and whether all arrays must be contiguous.
_TABLE: Final[dict[str, tuple[Callable[..., Any], int, bool]]] = {
    # These check the number of products themselves.
    "convolution": (convolution.convolution, 1, False),
    "convolution_backward": (convolution.convolution_backward, 1, False),
    "_softmax": (softmax.softmax, 1 << 11, True),
    "_log_softmax": (softmax.log_softmax, 1 << 12, True),
    "_softmax_backward_data": (softmax.softmax_backward, 1 << 14, True),
    "_log_softmax_backward_data": (softmax.log_softmax_backward, 1 << 14, True),
    "native_layer_norm": (normalization.layer_norm, 1 << 14, True),
    "native_layer_norm_backward": (normalization.layer_norm_backward, 1 << 13, True),
    "gelu": (elementwise.gelu, 1 << 11, True),
    "gelu_backward": (elementwise.gelu_backward, 1 << 11, True),
    "silu": (elementwise.silu, 1 << 14, True),
    "silu_backward": (elementwise.silu_backward, 1 << 14, True),
    "sigmoid": (elementwise.sigmoid, 1 << 14, True),
}

# The same of bfloat16. These check the number of products, too.
_BFLOAT16: Final[dict[str, Callable[..., Any]]] = {
    "convolution": convolution.convolution,
    "convolution_backward": convolution.convolution_backward,
    "mm": products.multiply,
    "bmm": products.multiply,
    "_matmul_nh": products.multiply_by_turned,
    "_matmul_hn": products.multiply_turned,
    "addmm": products.addmm,
    "linear": products.linear,
    "linear_backward": products.linear_backward,
}


def _variant(
    operator: str,
    kernel: Callable[..., Any],
    least: int = 0,
    contiguous: bool = False,
    *,
    narrow: bool = False,
) -> Variant:
    return Variant(
        operator,
        kernel,
        name="onednn-bfloat16" if narrow else "onednn",
        features=["avx512f" if narrow else "sse41"],
        dtypes=["bfloat16" if narrow else "float32"],
        contiguous=contiguous,
        least=least,
        problem=problem_of_bfloat16 if narrow else problem,
    )


VARIANTS: Final = [
    *(_variant(operator, *rest) for operator, rest in _TABLE.items()),
    *(_variant(operator, kernel, narrow=True) for operator, kernel in _BFLOAT16.items()),
]
