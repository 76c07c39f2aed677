"""Samples of normalisation, convolution, pooling, embedding and one-hot vectors."""

from __future__ import annotations

import math
from typing import Any

from plugrad.plugins.cases import FLOATS, OpCase, OpError, OpSample, T
from plugrad.testing.cases.inputs import call, wrong

IMAGES = T((2, 3, 5, 6))
ONE = T((3, 5, 6))
FILTERS = T((4, 3, 3, 2))
BIAS = T((4,))
# Pooling has kinks where two elements are equal.
DISTINCT = T((2, 3, 5, 6), unique=True)


def case(op: str, samples: list[OpSample], *errors: OpError, **options: Any) -> OpCase:
    settings: dict[str, Any] = {"dtypes": FLOATS, "errors": errors, "low_precision": 4.0}
    return OpCase(op, samples, **{**settings, **options})


def functional(op: str, samples: list[OpSample], *errors: OpError, **options: Any) -> OpCase:
    """A case with the PyTorch name `torch.nn.functional.<op>`."""
    return case(op, samples, *errors, torch=f"nn.functional.{op}", **options)


def fixed(*shape: int, low: float = -2.0, high: float = 2.0) -> T:
    return T(shape, low=low, high=high, requires_grad=False)


def batch(x: T, weight: T | None, bias: T | None, training: bool) -> OpSample:
    channels = x.shape[1]
    mean, var = fixed(channels), fixed(channels, low=0.5, high=2.0)
    return call(x, weight, bias, mean, var, training, 0.1, 1e-5, False)


PARAMETERS = (T((3,)), T((3,)))
CHANNELS = (
    r"Given groups=1, weight of size \[4, 3, 3, 2\], expected input\[2, 4, 5, 6\] to have 3 "
    "channels, but got 4 channels instead"
)
POOL_PAD = (
    "pad should be at most half of effective kernel size, but got pad=2, kernel_size=2 and "
    "dilation=1"
)
TOO_SMALL = (
    r"Given input size: \(3x2x2\). Calculated output size: \(3x0x0\). Output size is too small"
)

NORMALISATION = [
    case(
        "layer_norm",
        [
            call(T((4, 3)), (3,), *PARAMETERS),
            call(T((4, 3)), (3,)),
            call(T((4, 3)), (3,), T((3,))),
            call(T((4, 3)), (3,), None, T((3,))),
            call(T((2, 3, 4)), (3, 4), T((3, 4)), T((3, 4))),
            call(T((2, 3)), (2, 3), T((2, 3)), T((2, 3))),
            call(T((3,)), (3,), *PARAMETERS, 0.1),
            call(T((0, 3)), (3,), *PARAMETERS),
            call(T((4, 3), strides="transposed"), (3,), *PARAMETERS),
            call(fixed(4, 3), (3,), *PARAMETERS),
        ],
        wrong(
            RuntimeError,
            r"Given normalized_shape=\[4\], expected input with shape \[\*, 4\], but got input of "
            r"size\[2, 3\]",
            T((2, 3)),
            (4,),
        ),
        wrong(
            RuntimeError,
            "Expected normalized_shape to be at least 1-dimensional",
            T((2, 3)),
            (),
        ),
        wrong(
            RuntimeError,
            "Expected weight to be of same shape as normalized_shape, but got weight of shape "
            r"\[4\] and normalized_shape = \[3\]",
            T((2, 3)),
            (3,),
            T((4,)),
        ),
        dtypes=(*FLOATS, "int64"),
        rtol=1e-6,
        low_precision=8.0,
    ),
    case(
        "batch_norm",
        [
            batch(T((4, 3)), *PARAMETERS, True),
            batch(T((4, 3)), *PARAMETERS, False),
            batch(T((4, 3)), None, None, True),
            batch(T((4, 3)), None, None, False),
            batch(T((2, 3, 4)), *PARAMETERS, True),
            batch(T((2, 3, 2, 2)), *PARAMETERS, True),
            batch(T((2, 3, 2, 2)), *PARAMETERS, False),
            batch(T((4, 3), strides="transposed"), *PARAMETERS, True),
            call(T((4, 3)), *PARAMETERS, None, None, True, 0.1, 1e-3, False),
        ],
        wrong(
            RuntimeError,
            "running_mean should contain 3 elements not 4",
            *(T((2, 3)), None, None, fixed(4), fixed(4), True, 0.1, 1e-5, False),
        ),
        wrong(
            RuntimeError,
            "running_mean must be defined in evaluation mode",
            *(T((2, 3)), None, None, None, None, False, 0.1, 1e-5, False),
        ),
        wrong(
            RuntimeError,
            "weight should contain 3 elements not 4",
            *(T((2, 3)), T((4,)), None, None, None, True, 0.1, 1e-5, False),
        ),
        rtol=1e-6,
        low_precision=8.0,
    ),
    case(
        "group_norm",
        [
            call(T((2, 4, 3)), 2, T((4,)), T((4,))),
            call(T((2, 4)), 4),
            call(T((2, 4, 2, 2)), 1, T((4,))),
            call(T((2, 6, 3)), 3, T((6,)), None, 0.1),
            call(T((2, 4, 3), strides="transposed"), 2, T((4,)), T((4,))),
            call(T((0, 4, 3)), 2, T((4,)), T((4,))),
            call(fixed(2, 4, 3), 2, T((4,)), T((4,))),
        ],
        wrong(RuntimeError, "Expected num groups to be greater than 0, got 0", T((2, 4)), 0),
        wrong(
            RuntimeError,
            "Expected weight to be a vector of size equal to the number of channels in input, but "
            r"got weight of shape \[3\] and input of shape \[2, 4\]",
            *(T((2, 4)), 2, T((3,))),
        ),
        wrong(
            RuntimeError,
            "Expected number of channels in input to be divisible by num_groups, but got input of "
            r"shape \[2, 4\] and num_groups=3",
            T((2, 4)),
            3,
        ),
        rtol=1e-6,
        low_precision=8.0,
    ),
    case(
        "native_group_norm",
        [
            call(T((2, 4, 3)), T((4,)), T((4,)), 2, 4, 3, 2, 1e-5),
            call(T((1, 4)), None, None, 1, 4, 1, 1, 1e-3),
        ],
        wrong(
            RuntimeError,
            r"input of shape \[1, 4\] and num_groups=3",
            *(T((1, 4)), None, None, 1, 4, 1, 3, 1e-5),
        ),
        wrong(
            RuntimeError,
            r"Expected X.numel\(\) == N \* C \* HxW to be true, but got false",
            *(T((1, 4)), None, None, 2, 4, 1, 2, 1e-5),
        ),
        dtypes=("float32", "float64", "bfloat16"),
        rtol=1e-6,
        low_precision=8.0,
    ),
    case(
        "rms_norm",
        [
            call(T((4, 3)), (3,), T((3,))),
            call(T((4, 3)), (3,)),
            call(T((2, 3)), (3,), None, 0.1),
            call(T((2, 3, 4)), (3, 4), T((3, 4))),
            call(T((3,)), (3,), T((3,))),
            call(T((0, 3)), (3,), T((3,))),
            call(T((4, 3), strides="transposed"), (3,), T((3,))),
            call(fixed(4, 3), (3,), T((3,))),
        ],
        wrong(
            RuntimeError,
            r"Given normalized_shape=\[4\], expected input with shape",
            *(T((2, 3)), (4,)),
        ),
        wrong(
            ValueError,
            "Input tensor must have at least 2 dimensions, but got 1",
            *(T((3,)), (2, 3)),
        ),
        low_precision=8.0,
    ),
]

CONVOLUTION = [
    functional(
        "conv2d",
        [
            call(IMAGES, FILTERS, BIAS),
            call(IMAGES, FILTERS),
            call(ONE, FILTERS, BIAS),
            call(IMAGES, FILTERS, BIAS, padding=1),
            call(IMAGES, FILTERS, BIAS, padding=(2, 1)),
            call(IMAGES, FILTERS, BIAS, stride=2),
            call(IMAGES, FILTERS, BIAS, stride=(2, 1), padding=(1, 2)),
            call(IMAGES, FILTERS, BIAS, dilation=2),
            call(IMAGES, FILTERS, BIAS, dilation=(1, 3), padding=2, stride=(1, 2)),
            call(T((2, 4, 4, 4)), T((6, 2, 3, 3)), T((6,)), groups=2),
            call(T((2, 4, 4, 4)), T((4, 1, 2, 2)), T((4,)), stride=2, groups=4),
            call(IMAGES, FILTERS, padding="same"),
            call(IMAGES, FILTERS, BIAS, padding="valid"),
            call(IMAGES, FILTERS, padding="same", dilation=2),
            call(IMAGES, T((4, 3, 1, 1))),
            call(IMAGES, T((4, 3, 5, 6))),
            call(T((0, 3, 5, 6)), FILTERS, BIAS),
            call(T((2, 3, 5, 6), strides="transposed"), T((4, 3, 3, 2), strides="transposed")),
            call(T((2, 3, 5, 6), strides="sliced"), FILTERS),
            call(fixed(2, 3, 5, 6), FILTERS, BIAS),
            call(IMAGES, fixed(4, 3, 3, 2), BIAS),
        ],
        wrong(
            RuntimeError,
            r"Expected 3D \(unbatched\) or 4D \(batched\) input to conv2d, but got input of size: "
            r"\[5, 6\]",
            T((5, 6)),
            FILTERS,
        ),
        wrong(RuntimeError, CHANNELS, T((2, 4, 5, 6)), FILTERS),
        wrong(
            RuntimeError,
            r"Given groups=2, expected weight to be divisible by 2 at dimension 0, but got weight "
            r"of size \[\[3, 2, 3, 3\]\] instead",
            T((2, 4, 5, 6)),
            T((3, 2, 3, 3)),
            groups=2,
        ),
        wrong(
            RuntimeError,
            r"Given weight of size \[4, 3, 3, 2\], expected bias to be 1-dimensional with 4 "
            r"elements, but got bias of size \[5\] instead",
            IMAGES,
            FILTERS,
            T((5,)),
        ),
        wrong(
            RuntimeError,
            r"Calculated padded input size per channel: \(2 x 2\). Kernel size: \(3 x 2\). Kernel "
            "size can't be greater than actual input size",
            T((2, 3, 2, 2)),
            FILTERS,
        ),
        wrong(RuntimeError, "non-positive stride is not supported", IMAGES, FILTERS, stride=0),
        OpError(
            call(IMAGES, FILTERS, dilation=0),
            RuntimeError,
            "non-positive dilation is not supported",
            torch_differs=True,  # its words depend on the dtype
        ),
        wrong(RuntimeError, "non-positive groups is not supported", IMAGES, FILTERS, groups=0),
        wrong(RuntimeError, "negative padding is not supported", IMAGES, FILTERS, padding=-1),
        wrong(
            RuntimeError,
            "padding='same' is not supported for strided convolutions",
            *(IMAGES, FILTERS),
            padding="same",
            stride=2,
        ),
        wrong(
            RuntimeError,
            r"Input type \(double\) and bias type \(float\) should be the same",
            *(IMAGES, FILTERS, T((4,), dtype="float32")),
        ),
        dtypes=(*FLOATS, "int64", "complex64"),
        grad_dtypes=("float64", "complex128"),
        low_precision=8.0,
    ),
    functional(
        "conv1d",
        [
            call(T((2, 3, 6)), T((4, 3, 2)), BIAS),
            call(T((3, 6)), T((4, 3, 2))),
            call(T((2, 3, 6)), T((4, 3, 2)), BIAS, stride=2, padding=1),
            call(T((2, 3, 6)), T((4, 3, 2)), padding="same"),
            call(T((2, 4, 6)), T((4, 2, 3)), groups=2, dilation=2),
        ],
        wrong(
            RuntimeError,
            r"Expected 2D \(unbatched\) or 3D \(batched\) input to conv1d, but got input of size: "
            r"\[8\]",
            T((8,)),
            T((4, 3, 2)),
        ),
        low_precision=8.0,
    ),
    functional(
        "conv_transpose2d",
        [
            call(T((2, 3, 3, 4)), T((3, 4, 2, 3)), BIAS),
            call(T((3, 3, 4)), T((3, 4, 2, 3))),
            call(T((2, 3, 3, 4)), T((3, 4, 2, 3)), BIAS, stride=2, padding=1, output_padding=1),
            call(T((2, 4, 3, 3)), T((4, 2, 2, 2)), groups=2, dilation=2),
        ],
        wrong(
            RuntimeError,
            r"Given transposed=1, weight of size \[4, 3, 3, 3\], expected input\[2, 3, 4, 4\] to "
            "have 4 channels, but got 3 channels instead",
            T((2, 3, 4, 4)),
            T((4, 3, 3, 3)),
        ),
        low_precision=8.0,
    ),
]

POOLING = [
    functional(
        "max_pool2d",
        [
            call(DISTINCT, 2),
            call(T((3, 5, 6), unique=True), 2),
            call(DISTINCT, (2, 3)),
            call(DISTINCT, 3, 1),
            call(DISTINCT, 3, 2, 1),
            call(DISTINCT, 2, ceil_mode=True),
            call(DISTINCT, 3, 2, 1, ceil_mode=True),
            call(DISTINCT, 2, 1, dilation=2),
            call(DISTINCT, (2, 3), (1, 2), (1, 0), (2, 1)),
            call(T((0, 3, 5, 6)), 2),
            call(T((2, 3, 5, 6), unique=True, strides="transposed"), 2),
        ],
        wrong(
            RuntimeError,
            r"non-empty 3D or 4D \(batch mode\) tensor expected for input",
            T((5, 6)),
            2,
        ),
        wrong(RuntimeError, "stride should not be zero", IMAGES, 2, 0),
        wrong(RuntimeError, POOL_PAD, IMAGES, 2, padding=2),
        wrong(RuntimeError, TOO_SMALL, T((2, 3, 2, 2)), 4),
        dtypes=(*FLOATS, "int64", "int32", "uint8"),
    ),
    functional(
        "max_pool2d_with_indices",
        [
            call(DISTINCT, 2),
            call(DISTINCT, 3, 2, 1, ceil_mode=True),
            call(DISTINCT, 2, 1, dilation=2),
            call(T(values=[[[1.0, 1.0], [1.0, 1.0]]], requires_grad=False), 2),
            call(T(values=[[[1.0, math.nan], [3.0, -math.inf]]], requires_grad=False), 2),
            call(T(values=[[[math.nan, math.nan], [3.0, 1.0]]], requires_grad=False), 2),
        ],
        dtypes=("float32", "bfloat16", "int64"),
    ),
    functional(
        "avg_pool1d",
        [
            call(T((2, 3, 8)), 2),
            call(T((3, 7)), (3,), 2, 1),
            call(T((2, 3, 7)), 3, 2, 1, ceil_mode=True, count_include_pad=False),
        ],
        wrong(RuntimeError, "Expected 2 to 3 dimensions, but got 4-dimensional", IMAGES, 2),
        wrong(RuntimeError, "stride should be greater than zero", T((2, 3, 8)), 2, -1),
        dtypes=(*FLOATS, "int64"),
    ),
    functional(
        "avg_pool2d",
        [
            call(IMAGES, 2),
            call(ONE, 2),
            call(IMAGES, (2, 3), (1, 2)),
            call(IMAGES, 3, 2, 1),
            call(IMAGES, 3, 2, 1, count_include_pad=False),
            call(IMAGES, 3, 2, 1, ceil_mode=True),
            call(IMAGES, 3, 2, 1, ceil_mode=True, count_include_pad=False),
            call(IMAGES, 2, divisor_override=3),
            call(T((0, 3, 5, 6)), 2),
            call(T((2, 3, 5, 6), strides="transposed"), 2),
        ],
        wrong(RuntimeError, "stride should not be zero", IMAGES, 2, 0),
        wrong(RuntimeError, POOL_PAD, IMAGES, 2, padding=2),
        wrong(RuntimeError, TOO_SMALL, T((2, 3, 2, 2)), 4),
        wrong(RuntimeError, "divisor must be not zero", IMAGES, 2, divisor_override=0),
        dtypes=(*FLOATS, "int64"),
    ),
    functional(
        "adaptive_avg_pool2d",
        [call(IMAGES, 1), call(IMAGES, (5, 3)), call(IMAGES, (2, 4)), call(ONE, (3, 2))],
    ),
]


def rows(values: Any, dtype: str = "int64") -> T:
    return T(values=values, dtype=dtype)


EMBEDDING = [
    case(
        "embedding",
        [
            call(T((4, 3)), rows([[0, 2, 2], [1, 3, 0]])),
            call(T((4, 3)), rows([0, 2, 2, 3], "int32")),
            call(T((4, 3)), rows(1)),
            call(T((4, 3)), rows([])),
            call(T((4, 3)), rows([0, 3]), -1),
            call(T((4, 3), strides="transposed"), rows([0, 1])),
        ],
        wrong(IndexError, "index out of range in self", T((4, 3)), rows([5])),
        wrong(IndexError, "index out of range in self", T((4, 3)), rows([-1])),
        wrong(RuntimeError, "'weight' must be 2-D", T((4,)), rows([1])),
        dtypes=(*FLOATS, "int64"),
    ),
    functional(
        "one_hot",
        [
            call(rows([0, 2, 1])),
            call(rows([[0, 2], [1, 1]]), 4),
            call(rows([]), 3),
            call(rows(1), 2),
        ],
        wrong(
            RuntimeError,
            "one_hot is only applicable to index tensor of type LongTensor",
            rows([1], "int32"),
        ),
        wrong(RuntimeError, "Class values must be smaller than num_classes.", rows([5]), 3),
        wrong(RuntimeError, "Class values must be non-negative.", rows([-1])),
        gradient=False,
        dtypes=(),
    ),
]

CASES = [*NORMALISATION, *CONVOLUTION, *POOLING, *EMBEDDING]
