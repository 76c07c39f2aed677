"""Samples of convolution and pooling over signals and volumes, and of rarer kinds of pooling."""

from __future__ import annotations

import math
from typing import Any

from plugrad.plugins.cases import FLOATS, OpCase, OpError, OpSample, T
from plugrad.testing.cases.inputs import call, wrong

SIGNALS = T((2, 3, 7))
IMAGES = T((2, 2, 4, 5))
VOLUMES = T((2, 2, 3, 4, 3))
FILTERS = T((2, 2, 2, 1, 2))
# Pooling has kinks where two elements are equal.
SIGNAL = T((2, 3, 7), unique=True)
IMAGE = T((2, 2, 4, 5), unique=True)
VOLUME = T((2, 2, 3, 4, 3), unique=True)
POOL_PAD = "pad should be at most half of effective kernel size, but got pad=2, kernel_size=2"
HALVES = ("float16", "bfloat16")


def case(op: str, samples: list[OpSample], *errors: OpError, **options: Any) -> OpCase:
    settings: dict[str, Any] = {"dtypes": FLOATS, "errors": errors, "low_precision": 4.0}
    return OpCase(op, samples, **{**settings, **options})


def internal(op: str, samples: list[OpSample], *errors: OpError, **options: Any) -> OpCase:
    """One that PyTorch has among what `torch.nn.functional` calls."""
    return case(op, samples, *errors, torch=f"_C._nn.{op}", **options)


def indices(values: Any, dtype: str = "int64") -> T:
    return T(values=values, dtype=dtype)


def random_samples(*shape: int) -> T:
    """Samples of fractional pooling; windows do not depend smoothly on them."""
    return T(shape, low=0.0, high=1.0, requires_grad=False)


CONVOLUTION = [
    case(
        "conv3d",
        [
            call(VOLUMES, FILTERS, T((2,))),
            call(T((2, 3, 4, 3)), FILTERS, stride=(2, 1, 1), padding=1, dilation=(1, 2, 1)),
            call(VOLUMES, T((4, 1, 1, 2, 2)), padding="same", groups=2),
        ],
        wrong(
            RuntimeError,
            r"Expected 4D \(unbatched\) or 5D \(batched\) input to conv3d, but got input of size: "
            r"\[3, 4, 3\]",
            T((3, 4, 3)),
            FILTERS,
        ),
        wrong(
            RuntimeError,
            r"Calculated padded input size per channel: \(1 x 4 x 3\). Kernel size: \(2 x 1 x 2\).",
            T((2, 2, 1, 4, 3)),
            FILTERS,
        ),
        dtypes=(*FLOATS, "int64", "complex64"),
        low_precision=8.0,
    ),
    case(
        "conv_transpose1d",
        [
            call(SIGNALS, T((3, 4, 2)), T((4,)), stride=2, padding=1, output_padding=1),
            call(T((4, 5)), T((4, 1, 2)), groups=2, dilation=2),
            # With stride 1, output padding is more than the padding behind the input.
            call(T((2, 4, 6)), T((4, 1, 3)), padding=2, dilation=2, groups=4, output_padding=1),
            call(T((2, 3)), T((2, 2, 1)), padding=1, dilation=2, output_padding=1),
        ],
        wrong(
            RuntimeError,
            "Output size is too small",
            *(T((2, 3)), T((2, 2, 1))),
            padding=2,
        ),
        wrong(
            RuntimeError,
            r"Given transposed=1, weight of size \[4, 2, 2\], expected input\[2, 3, 7\] to have 4 "
            "channels, but got 3 channels instead",
            SIGNALS,
            T((4, 2, 2)),
        ),
        wrong(
            RuntimeError,
            "output padding must be smaller than either stride or dilation",
            SIGNALS,
            T((3, 4, 2)),
            output_padding=1,
        ),
        dtypes=(*FLOATS, "complex64"),
        low_precision=8.0,
    ),
    case(
        "conv_transpose3d",
        [
            call(VOLUMES, T((2, 2, 2, 1, 2)), T((2,))),
            call(T((2, 2, 2, 2)), FILTERS, stride=2, padding=(1, 0, 0), output_padding=1),
        ],
        low_precision=8.0,
    ),
]

MAXIMA = [
    case(
        "max_pool1d",
        [
            call(SIGNAL, 2),
            call(T((3, 7), unique=True), 3, 2, 1, 1, True),
            call(SIGNAL, 2, 1, dilation=2),
            call(T((0, 3, 7)), 2),
        ],
        wrong(
            RuntimeError, "kernel_size must be an int, .* of size 1 but got size 2", SIGNAL, (2, 2)
        ),
        wrong(RuntimeError, "stride must be greater than zero, but got 0", SIGNAL, 2, 0),
        wrong(RuntimeError, "padding should be at most half of kernel size", SIGNAL, 2, padding=2),
        wrong(RuntimeError, "Invalid computed output size: 0", SIGNAL, 9),
        wrong(RuntimeError, r"Expected 2D or 3D .* but got:\[7\]", T((7,)), 2),
        wrong(NotImplementedError, "not implemented for 'Long'", indices([[1, 2]]), 2),
    ),
    case(
        "max_pool1d_with_indices",
        [call(SIGNAL, 3, 2, 1), call(T((3, 7), unique=True), 2)],
        wrong(RuntimeError, "Expected 2 to 3 dimensions, but got 4-dimensional", IMAGES, 2),
        dtypes=("float32", "int64"),
    ),
    case(
        "max_pool3d",
        [
            call(VOLUME, 2),
            call(T((2, 3, 4, 3), unique=True), (2, 3, 2), (1, 2, 1), (1, 1, 0), 1, True),
            call(VOLUME, 2, 1, dilation=(1, 2, 1)),
        ],
        wrong(RuntimeError, "non-empty 4D or 5D", T((3, 4, 3)), 2),
        wrong(RuntimeError, "stride should be greater than zero, but got dT", VOLUME, 2, -1),
        wrong(RuntimeError, POOL_PAD, VOLUME, 2, padding=2),
        wrong(RuntimeError, "equal to half of kernel size", VOLUME, 2, padding=2, dilation=3),
        wrong(RuntimeError, r"Calculated output size: \(2x0x0x0\)", VOLUME, 7),
        wrong(
            RuntimeError,
            "kernel_size must either be a single int, or a tuple of three ints",
            VOLUME,
            (2, 2),
        ),
        dtypes=(*FLOATS, "int64"),
    ),
    internal(
        "max_pool3d_with_indices",
        [
            call(VOLUME, 2, 1, 1),
            call(T(values=[[[[1.0, math.nan]], [[math.nan, 3.0]]]], requires_grad=False), 2, 1, 1),
        ],
        dtypes=("float32", "bfloat16"),
    ),
    *[
        case(
            f"adaptive_max_pool{len(sizes)}d",
            [call(x, sizes), call(x, even), call(T(x.shape[1:], unique=True), (1,) * len(sizes))],
            wrong(RuntimeError, "Expected", T((3,)), sizes),
            wrong(RuntimeError, "non-zero size for non-batch", T((1, 0, *x.shape[2:])), sizes),
            wrong(RuntimeError, "negative dimension -1", x, (-1,) * len(sizes)),
            torch="adaptive_max_pool1d"
            if x is SIGNAL
            else f"_C._nn.adaptive_max_pool{len(sizes)}d",
        )
        for x, sizes, even in (
            (SIGNAL, (3,), (7,)),
            (IMAGE, (3, 7), (2, 5)),
            (VOLUME, (2, 3, 2), (3, 2, 1)),
        )
    ],
    *[
        internal(
            f"fractional_max_pool{spatial}d",
            [
                call(x, 2, out, random_samples(2, 2, spatial)),
                call(T(x.shape[1:], unique=True), kernel, one, random_samples(1, 2, spatial)),
            ],
            wrong(RuntimeError, "too large relative to input", x, 2, 9, random_samples(2, 2, 2)),
            wrong(
                RuntimeError,
                "Expect _random_samples to have 3 dimensions",
                *(x, 2, out, random_samples(2, spatial)),
            ),
            wrong(
                RuntimeError,
                "equals to input channel size",
                *(x, 2, out, random_samples(2, 3, spatial)),
            ),
            dtypes=("float32",),
        )
        for spatial, x, kernel, out, one in (
            (2, IMAGE, (1, 2), (2, 3), (4, 1)),
            (3, VOLUME, (1, 2, 1), (1, 2, 1), (2, 2, 1)),
        )
    ],
]

MEANS = [
    internal(
        "avg_pool3d",
        [
            call(VOLUMES, 2),
            call(T((2, 3, 4, 3)), (2, 3, 2), (1, 2, 1), (1, 1, 0), True, False),
            call(VOLUMES, 2, divisor_override=3),
        ],
        wrong(RuntimeError, "divisor must be not zero", VOLUMES, 2, divisor_override=0),
        wrong(RuntimeError, POOL_PAD, VOLUMES, 2, padding=2),
        wrong(
            RuntimeError,
            r"input image \(T: 3 H: 4 W: 3\) smaller than kernel size \(kT: 4 kH: 4 kW: 4\)",
            VOLUMES,
            4,
            padding=2,
        ),
        dtypes=("float32", "int64"),
        wider=HALVES,
    ),
    *[
        case(
            f"adaptive_avg_pool{len(sizes)}d",
            [call(x, sizes), call(x, even), call(T(x.shape[1:]), (1,) * len(sizes))],
            wrong(RuntimeError, "Expected", T((3,)), sizes),
            wrong(
                RuntimeError,
                "elements of output_size must be greater than or equal to 0",
                x,
                (-1,) * len(sizes),
            ),
            torch="adaptive_avg_pool1d" if x is SIGNALS else "_C._nn.adaptive_avg_pool3d",
        )
        for x, sizes, even in ((SIGNALS, (3,), (7,)), (VOLUMES, (2, 3, 2), (3, 2, 1)))
    ],
]

PLACES = [[[[1, 4]], [[11, 0]]]]
INVERSES = [
    internal(
        "max_unpool2d",
        [
            call(T((1, 2, 1, 2)), indices(PLACES), (4, 3)),
            call(T((2, 1, 2)), indices([[[1, 4]]] * 2), (3, 2)),
        ],
        wrong(
            RuntimeError,
            "elements in indices should be type int64",
            *(T((1, 2, 1, 2)), indices(PLACES, "int32"), (4, 3)),
        ),
        wrong(
            RuntimeError,
            "Expected shape of indices to be same",
            *(T((1, 1, 1, 2)), indices(PLACES), (4, 3)),
        ),
        wrong(
            RuntimeError,
            r"Found an invalid max index: 7 \(output volumes are of size 2x3\)",
            *(T((1, 1, 2)), indices([[[7, 0]]]), (2, 3)),
        ),
        dtypes=("float32",),
        wider=HALVES,
    ),
    internal(
        "max_unpool3d",
        [
            call(
                T((2, 1, 1, 2)), indices([[[[1, 4]]], [[[11, 0]]]]), (2, 3, 2), (2, 2, 2), (0, 0, 0)
            )
        ],
        wrong(
            RuntimeError,
            "Found an invalid max index: -1",
            *(T((1, 1, 1, 2)), indices([[[[-1, 0]]]]), (2, 3, 2), (2, 2, 2), (0, 0, 0)),
        ),
        dtypes=("float32",),
    ),
    internal(
        "im2col",
        [
            call(IMAGES, (2, 2), (1, 1), (0, 0), (1, 1)),
            call(T((2, 4, 5)), (2, 3), (2, 1), (1, 1), (1, 2)),
            call(T((0, 2, 4, 5)), (2, 2), (1, 1), (0, 0), (1, 1)),
            call(T((2, 2, 4, 5), strides="transposed"), (3, 1), (1, 1), (0, 0), (1, 1)),
        ],
        wrong(
            RuntimeError,
            r"Expected 3D or 4D .* but got: \[2, 0, 4, 5\]",
            *(T((2, 0, 4, 5)), (2, 2), (1, 1), (0, 0), (1, 1)),
        ),
        wrong(
            RuntimeError,
            "kernel size should be greater than zero, but got kernel_height: 0",
            *(IMAGES, (0, 1), (1, 1), (0, 0), (1, 1)),
        ),
        wrong(
            RuntimeError,
            "padding should be non-negative",
            *(IMAGES, (1, 1), (1, 1), (0, -1), (1, 1)),
        ),
        wrong(
            RuntimeError,
            r"calculated shape of the array of sliding blocks as \(-2, -1\)",
            *(IMAGES, (7, 7), (1, 1), (0, 0), (1, 1)),
        ),
        wrong(
            NotImplementedError,
            "\"im2col_out_cpu\" not implemented for 'Long'",
            *(indices([[[1, 2]]]), (1, 1), (1, 1), (0, 0), (1, 1)),
        ),
        dtypes=(*FLOATS, "bool", "complex64"),
        grad_dtypes=("float64", "complex128"),
    ),
    internal(
        "col2im",
        [
            call(T((2, 8, 12)), (4, 5), (2, 2), (1, 1), (0, 0), (1, 1)),
            call(T((12, 12)), (4, 5), (2, 3), (2, 1), (1, 1), (1, 2)),
            call(T((0, 8, 12)), (4, 5), (2, 2), (1, 1), (0, 0), (1, 1)),
        ],
        wrong(
            RuntimeError,
            r"Given output_size=\(4, 4\), kernel_size=\(2, 2\), dilation=\(1, 1\), "
            r"padding=\(0, 0\), stride=\(1, 1\), expected size of input's dimension 2 to match the "
            r"calculated number of sliding blocks 3 \* 3 = 9, but got input.size\(2\)=12.",
            *(T((2, 8, 12)), (4, 4), (2, 2), (1, 1), (0, 0), (1, 1)),
        ),
        wrong(
            RuntimeError,
            "dimension 1 to be divisible by the product of kernel_size",
            *(T((2, 8, 12)), (4, 5), (3, 3), (1, 1), (0, 0), (1, 1)),
        ),
        wrong(
            RuntimeError,
            "It is expected output_size equals to 2, but got size 3",
            *(T((2, 8, 12)), (4, 5, 6), (2, 2), (1, 1), (0, 0), (1, 1)),
        ),
        dtypes=(*FLOATS, "bool", "complex64"),
        grad_dtypes=("float64", "complex128"),
    ),
]

CASES = [*CONVOLUTION, *MAXIMA, *MEANS, *INVERSES]
