"""Samples of loss functions: every reduction, weights, ignored targets, and PyTorch's errors."""

from __future__ import annotations

from typing import Any

from plugrad.plugins.cases import FLOATS, OpCase, OpError, OpSample, T
from plugrad.testing.cases.inputs import wrong

REDUCTIONS = ("mean", "sum", "none")

X = T((4, 5))
IMAGE = T((2, 3, 2, 2))
SEQUENCE = T((2, 3, 4))
VECTOR = T((5,))
# Probabilities: away from 0 and 1, where the slope is infinite.
P = T((3, 2), low=0.05, high=0.95)
Q = T((3, 2), low=0.05, high=0.95)
M = T((3, 2))
N = T((3, 2), low=-1.5, high=1.0)
WEIGHT = T((5,), low=0.2, high=2.0, requires_grad=False)
WEIGHT3 = T((3,), low=0.2, high=2.0, requires_grad=False)


def classes(values: Any, dtype: str = "int64") -> T:
    return T(values=values, dtype=dtype)


LABELS = classes([0, 4, 2, 2])
SOME_IGNORED = classes([0, -100, 2, -100])
PIXELS = classes([[[0, 1], [2, 0]], [[1, 1], [0, 2]]])
WORDS = classes([[0, 1, 2, 0], [2, 2, 1, 0]])


def each(*args: Any, **kwargs: Any) -> list[OpSample]:
    return [OpSample(args, {**kwargs, "reduction": reduction}) for reduction in REDUCTIONS]


def case(op: str, samples: list[OpSample], *errors: OpError, **options: Any) -> OpCase:
    settings: dict[str, Any] = {
        "torch": f"nn.functional.{op}",
        "dtypes": FLOATS,
        "errors": errors,
        "low_precision": 4.0,
    }
    return OpCase(op, samples, **{**settings, **options})


BATCH = r"Expected input batch_size \(4\) to match target batch_size \(3\)."
ALL_CLASSES = (
    "weight tensor should be defined either for all 5 classes or no classes but got weight tensor "
    r"of shape: \[3\]"
)
NO_REDUCTION = "x is not a valid value for reduction"

BY_INDEX = [
    *each(X, LABELS),
    *each(X, LABELS, weight=WEIGHT),
    *each(X, SOME_IGNORED),
    *each(X, SOME_IGNORED, weight=WEIGHT),
    *each(X, LABELS, ignore_index=2),
    *each(X, LABELS, ignore_index=2, weight=WEIGHT),
    *each(IMAGE, PIXELS),
    *each(IMAGE, PIXELS, weight=WEIGHT3, ignore_index=1),
    *each(SEQUENCE, WORDS),
    *each(SEQUENCE, WORDS, ignore_index=0),
    *each(VECTOR, classes(3)),
    *each(VECTOR, classes(3), weight=WEIGHT),
    *each(T((4, 5), strides="transposed"), classes([0, 4, 2, 2], "uint8")),
    OpSample((T((0, 5)), classes([])), {"reduction": "sum"}),
    OpSample((T((0, 5)), classes([])), {"reduction": "none"}),
]
INDEX_ERRORS = [
    wrong(IndexError, "Target 5 is out of bounds.", X, classes([0, 1, 2, 5])),
    wrong(IndexError, "Target -1 is out of bounds.", X, classes([0, 1, 2, -1])),
    wrong(ValueError, BATCH, X, classes([0, 1, 2])),
    wrong(
        RuntimeError,
        "expected target dtype to be Long or Byte, but got Float",
        X,
        classes([0, 1, 2, 3], "float32"),
    ),
    wrong(RuntimeError, ALL_CLASSES, X, LABELS, weight=T((3,), requires_grad=False)),
    wrong(ValueError, NO_REDUCTION, X, LABELS, reduction="x"),
    wrong(IndexError, "Target 7 is out of bounds.", SEQUENCE, classes([[7, 0, 0, 0]] * 2)),
    wrong(
        RuntimeError,
        r"Expected target size \[2, 4\], got \[2, 3\]",
        SEQUENCE,
        classes([[0, 0, 0]] * 2),
    ),
    wrong(
        RuntimeError,
        r"only batches of spatial targets supported \(3D tensors\) but got targets of dimension: 2",
        IMAGE,
        classes([[0, 0], [1, 1]]),
    ),
]

CASES = [
    case("nll_loss", BY_INDEX, *INDEX_ERRORS),
    case(
        "cross_entropy_loss",
        [
            *BY_INDEX,
            *each(X, LABELS, label_smoothing=0.1),
            *each(X, SOME_IGNORED, label_smoothing=0.1, weight=WEIGHT),
            *each(X, LABELS, label_smoothing=1.0, weight=WEIGHT),
            *each(IMAGE, PIXELS, label_smoothing=0.2, ignore_index=1),
            *each(X, T((4, 5), low=0.0, high=1.0)),
            *each(X, T((4, 5), low=0.0, high=1.0), weight=WEIGHT, label_smoothing=0.3),
            *each(IMAGE, T((2, 3, 2, 2), low=0.0, high=1.0), weight=WEIGHT3),
            *each(VECTOR, T((5,), low=0.0, high=1.0)),
        ],
        *INDEX_ERRORS,
        wrong(
            RuntimeError,
            "Expected floating point type for target with class probabilities, got Long",
            X,
            T((4, 5), dtype="int64"),
        ),
        wrong(
            RuntimeError,
            "ignore_index is not supported for floating point target",
            X,
            X,
            ignore_index=2,
        ),
        wrong(
            RuntimeError,
            "label_smoothing must be between 0.0 and 1.0. Got: 1.5",
            X,
            LABELS,
            label_smoothing=1.5,
        ),
        wrong(
            RuntimeError, f"cross_entropy: {ALL_CLASSES}", X, X, weight=T((3,), requires_grad=False)
        ),
        torch="nn.functional.cross_entropy",
    ),
    case(
        "mse_loss",
        [
            *each(M, N),
            *each(M, T((3, 2), strides="transposed")),
            *each(T((3, 1)), T((1, 2))),
            *each(T(()), T(())),
            OpSample((T((0, 2)), T((0, 2))), {"reduction": "sum"}),
        ],
        wrong(
            RuntimeError,
            r"The size of tensor a \(2\) must match the size of tensor b \(3\) at non-singleton "
            "dimension 1",
            M,
            T((3,)),
        ),
        wrong(ValueError, NO_REDUCTION, M, N, reduction="x"),
        dtypes=(*FLOATS, "int64"),
    ),
    case("l1_loss", [*each(M, N), *each(T((3, 1)), T((1, 2)))], dtypes=(*FLOATS, "int64")),
    case(
        "smooth_l1_loss",
        [*each(M, N), *each(M, N, beta=0.3), *each(M, N, beta=0.0)],
        wrong(
            RuntimeError,
            "smooth_l1_loss does not support negative values for beta.",
            M,
            N,
            beta=-1.0,
        ),
    ),
    case(
        "huber_loss",
        [*each(M, N), *each(M, N, delta=0.3)],
        wrong(
            RuntimeError,
            "huber_loss does not support non-positive values for delta.",
            M,
            N,
            delta=0.0,
        ),
    ),
    case(
        "binary_cross_entropy",
        [
            *each(P, Q),
            *each(P, Q, weight=T((3, 2), low=0.2, high=2.0, requires_grad=False)),
            *each(P, T((3, 2), low=0.0, high=1.0, requires_grad=False)),
            *each(
                T(values=[0.0, 1.0, 0.0, 1.0], requires_grad=False),
                T(values=[0.0, 0.0, 1.0, 1.0], requires_grad=False),
            ),
        ],
        wrong(
            RuntimeError,
            "all elements of input should be between 0 and 1",
            T((2,), low=2, high=3),
            T((2,)),
        ),
        wrong(RuntimeError, "Found dtype Float but expected Double", P, T((3, 2), dtype="float32")),
        wrong(ValueError, "Using a target size", P, T((2,))),
    ),
    case(
        "binary_cross_entropy_with_logits",
        [
            *each(M, Q),
            *each(M, Q, weight=T((3, 2), low=0.2, high=2.0, requires_grad=False)),
            *each(M, Q, pos_weight=T((2,), low=0.2, high=2.0, requires_grad=False)),
            *each(
                M,
                Q,
                weight=T((3, 1), low=0.2, high=2.0, requires_grad=False),
                pos_weight=T((2,), low=0.2, high=2.0, requires_grad=False),
            ),
            *each(
                T(values=[1e4, -1e4, 0.0, 50.0], requires_grad=False),
                T(values=[1.0, 1.0, 0.5, 0.0], requires_grad=False),
            ),
        ],
        wrong(ValueError, "must be the same as input size", M, T((3,))),
    ),
    case(
        "kl_div",
        [
            *each(M, P),
            *each(M, N, log_target=True),
            *each(M, T(values=[[0.0, 0.5], [1.0, 0.0], [0.2, 0.3]], requires_grad=False)),
        ],
    ),
]
