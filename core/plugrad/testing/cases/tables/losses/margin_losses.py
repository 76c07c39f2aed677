"""Samples of losses of pairs, margins and counts."""

from __future__ import annotations

from typing import Any

from plugrad.plugins.cases import FLOATS, OpCase, OpError, OpSample, T
from plugrad.testing.cases.inputs import wrong

X = T((3, 2), unique=True)
Y = T((3, 2), low=-1.5, high=1.0)
SIGNS = T(values=[1.0, -1.0, 1.0], requires_grad=False)
SIGN_ROWS = T(values=[[1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]], requires_grad=False)
COUNTS = T(values=[[0.0, 1.0], [3.0, 2.0], [1.0, 5.0]], requires_grad=False)
SCORES = T((3, 4), unique=True, low=-1.0, high=1.3)
CLASSES = T(values=[0, 3, 2], dtype="int64")
WEIGHT = T((4,), low=0.2, high=2.0, requires_grad=False)
WEIGHT3 = T((3,), low=0.2, high=2.0, requires_grad=False)
PIXELS = T(values=[[[0, 1], [2, 0]], [[1, 1], [0, 2]]], dtype="int64")
LABELS = T(values=[[1, 0, -1, 2], [-1, 0, 1, 2], [3, 3, 1, -1]], dtype="int64")


def each(*args: Any, **kwargs: Any) -> list[OpSample]:
    return [OpSample(args, {**kwargs, "reduction": number}) for number in (0, 1, 2)]


def case(op: str, samples: list[OpSample], *errors: OpError, **options: Any) -> OpCase:
    settings: dict[str, Any] = {"dtypes": FLOATS, "errors": errors, "low_precision": 4.0}
    return OpCase(op, samples, **{**settings, **options})


def native(op: str, samples: list[OpSample], *errors: OpError, **options: Any) -> OpCase:
    """A case of a function that PyTorch has only in its module for layers, and only in wide
    dtypes."""
    return case(
        op, samples, *errors, **{"torch": f"_C._nn.{op}", "dtypes": ("float32",), **options}
    )


NOT_ROWS = r"Expected non-empty vector or matrix with optional 0-dim batch size, but got: \[2, 0\]"

CASES = [
    case(
        "cosine_embedding_loss",
        [
            *each(X, Y, SIGNS),
            *each(X, Y, SIGNS, margin=0.3),
            OpSample((T((3,)), T((3,)), T(values=-1.0, requires_grad=False), 0.1, 1)),
        ],
        wrong(RuntimeError, "0D or 1D target tensor expected, multi-target", X, Y, SIGN_ROWS),
        wrong(
            RuntimeError,
            r"1D target tensor expects 2D input tensors, but found inputs with sizes \[3\] and",
            T((3,)),
            T((3,)),
            SIGNS,
        ),
    ),
    case(
        "hinge_embedding_loss",
        [*each(X, SIGN_ROWS), *each(X, SIGN_ROWS, margin=0.45)],
        wrong(RuntimeError, "could not infer output dtype", T((3,), dtype="int64"), SIGNS, 1.0, 1),
    ),
    case("margin_ranking_loss", [*each(X, Y, SIGN_ROWS), *each(X, Y, T((2,)), margin=0.4)]),
    case(
        "triplet_margin_loss",
        [
            *each(X, Y, T((3, 2), low=0.5)),
            *each(X, Y, T((3, 2), low=0.5), p=1.0, swap=True, margin=0.3),
            OpSample((T((3,)), T((3,)), T((3,)), 1.0, 2.0, 1e-6, False, 2)),
        ],
        wrong(
            RuntimeError,
            "same number of dimensions, but got: anchor 1D, positive 2D, and negative 1D inputs",
            T((3,)),
            X,
            T((3,)),
        ),
    ),
    case(
        "poisson_nll_loss",
        [
            OpSample((X, COUNTS, True, False, 1e-8, 1)),
            OpSample((X, COUNTS, True, True, 1e-8, 0)),
            OpSample((T((3, 2), low=0.2, high=3.0), COUNTS, False, True, 1e-2, 2)),
        ],
    ),
    native(
        "soft_margin_loss",
        [*each(X, SIGN_ROWS), *each(X, T(values=[1.0, -1.0], requires_grad=False))],
        wrong(
            RuntimeError,
            "doesn't match the broadcast shape",
            T((3,)),
            T((2, 1), requires_grad=False),
        ),
        wrong(RuntimeError, "result type Double can't be cast", T((3,), dtype="int64"), SIGNS),
        dtypes=FLOATS,
    ),
    native(
        "multi_margin_loss",
        [
            *each(SCORES, CLASSES),
            *each(SCORES, CLASSES, p=2, margin=0.5, weight=WEIGHT),
            *each(T((4,), unique=True, low=0.0, high=0.9), T(values=2, dtype="int64")),
            *each(T((4,), unique=True, low=0.0, high=0.9), T(values=[2], dtype="int64")),
        ],
        wrong(RuntimeError, "target out of range", SCORES, T(values=[0, 4, 1], dtype="int64")),
        wrong(RuntimeError, "target out of range", SCORES, T(values=[0, -1, 1], dtype="int64")),
        wrong(RuntimeError, "only p == 1 and p == 2 supported", SCORES, CLASSES, p=3),
        wrong(RuntimeError, NOT_ROWS, T((2, 0)), T((2,), dtype="int64")),
        wrong(
            RuntimeError,
            r"Expected target size \[3\], but got \[2\]. Input has shape \[3, 4\]",
            SCORES,
            T(values=[0, 1], dtype="int64"),
        ),
        wrong(
            RuntimeError,
            r"inconsistent weight size, expected 4 but got \[2\]",
            SCORES,
            CLASSES,
            weight=T((2,), requires_grad=False),
        ),
        wrong(
            RuntimeError,
            "expected scalar type Long but found Float",
            SCORES,
            T((3,), dtype="float32"),
        ),
        wrong(
            NotImplementedError, "not implemented for 'Half'", T((3, 4), dtype="float16"), CLASSES
        ),
    ),
    native(
        "multilabel_margin_loss",
        [
            *each(SCORES, LABELS),
            *each(T((4,), unique=True, low=0.0, high=0.9), T(values=[3, 0, -1, 1], dtype="int64")),
            *each(T((), low=0.0), T(values=0, dtype="int64")),
        ],
        wrong(
            RuntimeError, "argument #2 'target' is out of range", SCORES, T((3, 4), 4, 6, "int64")
        ),
        wrong(
            RuntimeError, "argument #2 'target' is out of range", SCORES, T((3, 4), -4, -2, "int64")
        ),
        wrong(
            RuntimeError,
            r"inconsistent target size: \[3\] for input of size: \[3, 4\]",
            SCORES,
            CLASSES,
        ),
        wrong(RuntimeError, "expected scalar type Long but found", SCORES, T((3, 4))),
        wrong(
            NotImplementedError,
            "not implemented for 'Long'",
            T((4,), dtype="int64"),
            T(values=[0, 1, -1, -1], dtype="int64"),
        ),
    ),
    native(
        "multilabel_margin_loss_forward",
        [OpSample((SCORES, LABELS, 0)), OpSample((SCORES, LABELS, 1))],
        torch="aten::multilabel_margin_loss_forward",
    ),
    native(
        "nll_loss2d",
        [
            *each(T((2, 3, 2, 2)), PIXELS),
            *each(T((2, 3, 2, 2)), PIXELS, weight=WEIGHT3, ignore_index=1),
        ],
        wrong(RuntimeError, "only batches of spatial inputs supported", T((2, 3)), PIXELS),
        wrong(RuntimeError, "only batches of spatial targets supported", T((2, 3, 2, 2)), CLASSES),
    ),
]
