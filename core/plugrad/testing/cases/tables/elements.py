"""Samples of hashes, static indices, segments, padding by elements, and layers for sequences."""

from __future__ import annotations

from typing import Any

from plugrad.plugins.cases import OpCase, OpError, OpSample, T
from plugrad.testing.cases.inputs import CUBE, EMPTY, SCALAR, TURNED, M, call, calls, wrong

SIGNAL, IMAGE, VOLUME = T((2, 3)), T((1, 2, 3)), T((1, 2, 2, 2))
FLOATS = ("float32", "bfloat16")
ALL = ("float32", "bfloat16", "int64", "int8", "uint8", "bool")
LENGTHS = T(values=[1, 0, 2], dtype="int64")
OFFSETS = T(values=[0, 2, 3], dtype="int64")
ROWS, BAGS = T(values=[0, 2, 1], dtype="int64"), T(values=[0, 2], dtype="int64")
NO_BATCH = r"Expected 2D or 3D \(batch mode\) tensor"


def case(op: str, samples: list[OpSample], *errors: OpError, **options: Any) -> OpCase:
    settings: dict[str, Any] = {"dtypes": FLOATS, "errors": errors, "low_precision": 4.0}
    return OpCase(op, samples, **{**settings, **options})


def padding(op: str, samples: list[OpSample], *errors: OpError) -> OpCase:
    """An operator that PyTorch keeps in `torch._C._nn`."""
    dtypes = ("float32", "int64", "complex64")
    return case(op, samples, *errors, torch=f"_C._nn.{op}", dtypes=dtypes)


CASES = [
    case(
        "hash_tensor",
        [*calls((M,), (CUBE, 1), (TURNED, (0, -1)), (SCALAR,)), call(M, 0, keepdim=True)],
        wrong(RuntimeError, "Unknown hash_tensor mode: 1", M, mode=1),
        wrong(RuntimeError, "Specify the reduction dim", EMPTY),
        wrong(IndexError, "Expected reduction dim 0 to have non-zero size", EMPTY, 0),
        wrong(NotImplementedError, "xor_sum_cpu", T((2,), dtype="complex64")),
        dtypes=ALL,
        gradient=False,
    ),
    case(
        "nonzero_static",
        [
            call(T(values=[[0.0, 2.0], [3.0, 0.0]]), size=1),
            call(T(values=[[0.0, 2.0], [3.0, 0.0]]), size=3, fill_value=7),
            call(SCALAR, size=2),
            call(EMPTY, size=2),
        ],
        wrong(RuntimeError, "'size' must be an non-negative integer", M, size=-1),
        dtypes=ALL,
        gradient=False,
    ),
    case(
        "segment_reduce",
        [
            call(T((3, 2)), "sum", lengths=LENGTHS),
            call(T((3, 2)), "mean", offsets=OFFSETS),
            call(T((3,)), "max", lengths=LENGTHS, initial=-3),
            call(T((3,)), "min", lengths=LENGTHS, initial=3.5),
            call(T((3,)), "prod", lengths=LENGTHS),
            call(T((1, 3, 2)), "max", offsets=T(values=[[0, 2, 3]], dtype="int64"), axis=1),
            call(T((4,)), "mean", lengths=LENGTHS, unsafe=True, initial=1),
        ],
        wrong(RuntimeError, "Either lengths or offsets must be defined", M, "sum"),
        wrong(RuntimeError, "to sum to", M, "sum", lengths=LENGTHS),
        wrong(RuntimeError, "negative", M, "sum", lengths=T(values=[3, -1], dtype="int64")),
        wrong(RuntimeError, "the last dimension of lengths", M, "sum", lengths=LENGTHS, axis=1),
        wrong(RuntimeError, "reduce", M, "median", lengths=LENGTHS),
    ),
    padding(
        "reflection_pad1d",
        calls((SIGNAL, (2, 1)), (T((0, 2, 3)), (1, 0)), (SIGNAL, (-1, 2)), (SIGNAL, (0, 0))),
        wrong(RuntimeError, r"got: padding \(3, 0\) at dimension 1", SIGNAL, (3, 0)),
        wrong(RuntimeError, NO_BATCH, SCALAR, (1, 1)),
        wrong(RuntimeError, r"input \(W: 3\) is too small", SIGNAL, (-2, -1)),
    ),
    padding("reflection_pad2d", calls((IMAGE, (1, 2, 1, 0)), (T((1, 2, 2, 2)), (0, 1, 1, 1)))),
    padding("reflection_pad3d", calls((VOLUME, (1, 0, 1, 1, 0, 1)))),
    padding(
        "replication_pad1d",
        calls((SIGNAL, (4, 1)), (SIGNAL, (-1, 2))),
        wrong(NotImplementedError, "replication_pad1d", T((2, 3), dtype="bool"), (1, 1)),
    ),
    padding("replication_pad2d", calls((IMAGE, (1, 2, 3, 0)))),
    padding("replication_pad3d", calls((VOLUME, (1, 0, 1, 1, 0, 3)))),
    case(
        "conv_tbc",
        [
            call(T((4, 2, 3)), T((2, 3, 2)), T((2,))),
            call(T((2, 1, 2)), T((3, 2, 1)), T((1,)), pad=1),
        ],
        wrong(RuntimeError, "Input must have 3 dims", M, T((1, 3, 2)), T((2,))),
        wrong(RuntimeError, "Bias must be 1-D", T((2, 1, 3)), T((1, 3, 2)), M),
        wrong(RuntimeError, "Input dim 2", T((2, 1, 3)), T((1, 2, 2)), T((2,))),
        dtypes=("float32",),
    ),
    case(
        "_safe_softmax",
        [call(M, 1), call(T(values=[[-float("inf")] * 2, [1.0, 2.0]]), -1), call(SCALAR, 0)],
    ),
    case("norm_except_dim", [call(CUBE), call(CUBE, 2, 1), call(CUBE, 2, -1), call(M, 1, 1)]),
    case("_weight_norm", [call(CUBE, T((2, 1, 1))), call(M, T((1, 3)), 1)]),
    *(
        case(
            f"{kind}_cell",
            [
                call(M, T((2, 2)), T((gates, 3)), T((gates, 2)), T((gates,)), T((gates,))),
                call(M, T((2, 2)), T((gates, 3)), T((gates, 2))),
            ],
        )
        for kind, gates in (("rnn_tanh", 2), ("rnn_relu", 2), ("gru", 6))
    ),
    case(
        "lstm_cell",
        [
            call(M, [T((2, 2)), T((2, 2))], T((8, 3)), T((8, 2)), T((8,)), T((8,))),
            call(M, [T((2, 2)), T((2, 2))], T((8, 3)), T((8, 2))),
        ],
        wrong(RuntimeError, "two hidden states", M, [M], T((8, 3)), T((8, 2))),
    ),
    case(
        "_embedding_bag",
        [
            call(T((3, 2)), ROWS, BAGS),
            call(T((3, 2)), ROWS, BAGS, per_sample_weights=T((3,))),
            call(T((3, 2)), ROWS, BAGS, mode=2, padding_idx=2),
        ],
        dtypes=("float32",),
    ),
    case(
        "_embedding_bag_forward_only",
        [call(T((3, 2), requires_grad=False), ROWS, BAGS)],
        dtypes=("float32",),
        gradient=False,
    ),
    case("empty_permuted", [call((0, 2), (1, 0))], dtypes=(), gradient=False),
]
