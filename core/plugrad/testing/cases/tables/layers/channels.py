"""Samples of what moves channels of images, or normalises over them."""

from __future__ import annotations

from plugrad.plugins.cases import OpCase, OpError, OpSample, T
from plugrad.testing.cases.inputs import call, case, wrong

IMAGE = T((1, 8, 2, 2))


def fixed(*shape: int, low: float = -2.0) -> T:
    return T(shape, low=low, requires_grad=False)


def instance(x: T, training: bool, weight: T | None = None, bias: T | None = None) -> OpSample:
    mean, var = fixed(x.shape[1]), fixed(x.shape[1], low=0.5)
    return call(x, weight, bias, mean, var, training, 0.1, 1e-5, False)


CASES = [
    case(
        "pixel_shuffle",
        [call(IMAGE, 2), call(T((9, 1, 2)), 3), call(fixed(0, 4, 1, 1), 2)],
        wrong(
            RuntimeError,
            r"divisible by the square of upscale_factor, but input.size\(-3\)=8 is not divisible "
            "by 9",
            *(IMAGE, 3),
        ),
        wrong(RuntimeError, "expects a positive upscale_factor, but got 0", IMAGE, 0),
        wrong(RuntimeError, "to have at least 3 dimensions", T((4, 4)), 2),
    ),
    case(
        "pixel_unshuffle",
        [call(IMAGE, 2), call(T((1, 4, 2)), 2)],
        wrong(RuntimeError, r"height to be divisible .* input.size\(-2\)=2", IMAGE, 3),
    ),
    case(
        "channel_shuffle",
        [call(IMAGE, 4), call(T((2, 6, 1), strides="transposed"), 3), call(T((0, 4, 1)), 2)],
        wrong(RuntimeError, "Got 8 channels and 3 groups", IMAGE, 3),
        wrong(RuntimeError, "Value of groups:0", IMAGE, 0),
        wrong(RuntimeError, r"but got input with sizes \[2, 2\]", T((2, 2)), 1),
    ),
    # PyTorch has no derivative of it.
    case("native_channel_shuffle", [call(T((1, 8, 2, 2), requires_grad=False), 4)]),
    OpCase(
        "instance_norm",
        [
            instance(T((2, 3, 4)), True, T((3,)), T((3,))),
            instance(T((2, 3, 2, 2)), False, T((3,))),
            call(T((2, 3, 4)), None, None, None, None, True, 0.1, 1e-3, False),
        ],
        dtypes=("float32", "bfloat16", "int64"),
        errors=[
            wrong(
                RuntimeError,
                "Expected running_mean and running_var to be defined when use_input_stats is false",
                *(T((2, 3, 4)), None, None, None, None, False, 0.1, 1e-5, False),
            ),
            OpError(
                call(T((2, 3, 4)), T((4,)), None, None, None, True, 0.1, 1e-5, False),
                RuntimeError,
                "weight should contain 3 elements not 4",
                torch_differs=True,  # it counts the channels of all samples
            ),
        ],
        rtol=1e-6,
        low_precision=8.0,
    ),
]
