"""Samples of images of another size, and of images read at the places of a grid."""

from __future__ import annotations

from typing import Any

from plugrad.plugins.cases import OpCase, OpError, OpSample, T
from plugrad.testing.cases.inputs import call, wrong

LINE, IMAGE, VOLUME = T((2, 1, 4)), T((1, 2, 3, 4)), T((1, 1, 2, 3, 2))
FLOATS = ("float32", "bfloat16")
# Places inside, outside and between pixels, none where the result has a kink.
GRID = T(values=[[[[-0.93, 0.21], [0.37, -1.41]], [[1.72, 0.55], [0.11, 0.83]]]])
GRID_3D = T(values=[[[[[-0.93, 0.21, 0.6], [0.37, -1.41, -0.2]]]]])


def case(op: str, samples: list[OpSample], *errors: OpError, **options: Any) -> OpCase:
    settings: dict[str, Any] = {"dtypes": FLOATS, "errors": errors, "low_precision": 4.0}
    return OpCase(op, samples, **{**settings, **options})


def sized(op: str, samples: list[OpSample], *errors: OpError, **options: Any) -> OpCase:
    """An operator that PyTorch keeps in `torch._C._nn`."""
    return case(op, samples, *errors, torch=f"_C._nn.{op}", **options)


EMPTY = r"Input and output sizes should be greater than 0, but got input \(H: 3, W: 4\)"

CASES = [
    sized(
        "upsample_nearest1d",
        [call(LINE, [7]), call(LINE, [3]), call(LINE, None, [1.5])],
        dtypes=(*FLOATS, "uint8", "int64"),
    ),
    sized(
        "upsample_nearest2d",
        [
            call(IMAGE, [6, 3]),
            call(IMAGE, [5, 5], 1.9, 1.3),
            call(IMAGE, None, [2.3, 0.6]),
            call(T((0, 2, 3, 4)), [2, 2]),
            call(T((1, 2, 3, 4), strides="transposed"), [4, 4]),
        ],
        wrong(RuntimeError, "It is expected input_size equals to 4, but got size 3", LINE, [2, 2]),
        wrong(RuntimeError, "It is expected output_size equals to 2, but got size 1", IMAGE, [2]),
        wrong(RuntimeError, EMPTY, IMAGE, [0, 2]),
        wrong(RuntimeError, "Must specify exactly one", IMAGE, None, None),
        dtypes=(*FLOATS, "uint8", "int64", "complex64"),
    ),
    sized("upsample_nearest3d", [call(VOLUME, [3, 2, 4])]),
    sized("_upsample_nearest_exact1d", [call(LINE, [7])]),
    sized("_upsample_nearest_exact2d", [call(IMAGE, [5, 3]), call(IMAGE, None, [2.3, 0.6])]),
    sized("_upsample_nearest_exact3d", [call(VOLUME, [3, 2, 4])]),
    sized(
        "upsample_linear1d",
        [call(LINE, [7], False), call(LINE, [1], True), call(LINE, None, False, [0.6])],
        dtypes=(*FLOATS, "int64"),
    ),
    sized(
        "upsample_bilinear2d",
        [
            call(IMAGE, [5, 3], False),
            call(IMAGE, [5, 3], True),
            call(IMAGE, [5, 3], False, 1.9, None),
            call(IMAGE, None, False, [2.0, 0.6]),
            call(T((1, 1, 1, 9)), [2, 2], False),
        ],
        dtypes=(*FLOATS, "int64"),
    ),
    sized("upsample_trilinear3d", [call(VOLUME, [3, 2, 4], False), call(VOLUME, [1, 4, 3], True)]),
    sized("upsample_bicubic2d", [call(IMAGE, [5, 3], False), call(IMAGE, [2, 6], True)]),
    sized(
        "_upsample_bilinear2d_aa",
        [call(IMAGE, [5, 2], False), call(IMAGE, [2, 3], True)],
        dtypes=("float32", "int64"),
    ),
    sized("_upsample_bicubic2d_aa", [call(IMAGE, [5, 2], False)], dtypes=("float32",)),
    sized("_upsample_lanczos2d_aa", [call(IMAGE, [5, 2], False)], dtypes=("float32",)),
    case(
        "grid_sampler",
        [
            *(
                call(T((1, 2, 3, 4)), GRID, mode, padding, padding != 1)
                for mode in (0, 2)
                for padding in (0, 1, 2)
            ),
            call(T((1, 2, 3, 4)), GRID, 1, 0, False),
            call(T((1, 2, 3, 1)), GRID, 0, 2, True),
        ],
        wrong(
            RuntimeError,
            r"expected grid to have size 2 in last dimension, but got grid with sizes \[1, 2, 3\]",
            *(IMAGE, T((1, 2, 3)), 0, 0, False),
        ),
        wrong(
            RuntimeError,
            "expected grid and input to have same batch size",
            *(IMAGE, T((2, 2, 2, 2)), 0, 0, False),
        ),
        wrong(
            RuntimeError,
            "bicubic interpolation only supports 4D input",
            *(T((1, 1, 2, 2, 2)), GRID_3D, 2, 0, False),
        ),
        dtypes=("float32", "int64"),
        second=False,
    ),
    case(
        "grid_sampler_2d_backward",
        [
            *(
                call(T((1, 2, 2, 2)), T((1, 2, 3, 4)), GRID, mode, padding, False, (True, True))
                for mode, padding in ((0, 0), (0, 1), (0, 2), (1, 1), (2, 2))
            )
        ],
        torch="ops.aten.grid_sampler_2d_backward",
        dtypes=("float32",),
        gradient=False,
    ),
    case(
        "grid_sampler_3d_backward",
        [call(T((1, 1, 1, 1, 2)), VOLUME, GRID_3D, 0, 2, True, (True, True))],
        torch="ops.aten.grid_sampler_3d_backward",
        dtypes=("float32",),
        gradient=False,
    ),
    case(
        "grid_sampler_2d",
        [
            call(T((1, 2, 3, 4)), GRID, 0, 2, False),
            call(T((0, 2, 3, 4)), T((0, 2, 2, 2)), 0, 0, True),
        ],
        dtypes=("float32",),
    ),
    case(
        "grid_sampler_3d",
        [call(T((1, 2, 2, 3, 4)), GRID_3D, mode, 2, False) for mode in (0, 1)],
        dtypes=("float32",),
    ),
    case(
        "affine_grid_generator",
        [
            call(T((2, 2, 3)), [2, 1, 3, 2], False),
            call(T((1, 2, 3)), [1, 1, 1, 2], True),
            call(T((1, 3, 4)), [1, 1, 2, 1, 3], True),
        ],
        wrong(RuntimeError, r"needs 4d \(spatial\) or 5d", T((1, 2, 3)), [1, 1, 2], False),
        dtypes=("float32",),
    ),
]
