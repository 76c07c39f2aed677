"""Samples of shrinkage functions, of randomised units and dropouts where they draw nothing."""

from __future__ import annotations

from typing import Any

from plugrad.plugins.cases import FLOATS, OpCase, OpError, OpSample, T
from plugrad.testing.cases.inputs import EMPTY, SCALAR, TURNED, fails

M = T((2, 3), unique=True)
IMAGES = T((2, 3, 2))
SPECIAL = T(values=[-0.5, 0.0, -0.0, 0.5, float("inf"), float("nan")], requires_grad=False)


def case(op: str, samples: list[OpSample], *errors: OpError, **options: Any) -> OpCase:
    return OpCase(op, samples, **{"dtypes": FLOATS, "errors": errors, **options})


def dropout(op: str) -> OpCase:
    """Without `train`, or with a probability that leaves no choice."""
    return case(
        op,
        [
            OpSample((IMAGES, 0.5, False)),
            OpSample((IMAGES, 0.0, True)),
            OpSample((IMAGES, 1.0, True)),
            OpSample((T((0, 3)), 0.5, True)),
        ],
        fails(
            RuntimeError, "probability has to be between 0 and 1, but got 1.5", IMAGES, 1.5, True
        ),
        fails(RuntimeError, "result type Float can't be cast", T((2, 3), dtype="int64"), 0.5, True),
    )


CASES = [
    case(
        "hardshrink",
        [OpSample((x,)) for x in (M, TURNED, SCALAR, EMPTY, SPECIAL)] + [OpSample((M, 0.1))],
        fails(NotImplementedError, "not implemented for 'Long'", T((2,), dtype="int64")),
        fails(
            NotImplementedError, "not implemented for 'ComplexFloat'", T((2,), dtype="complex64")
        ),
    ),
    case(
        "softshrink",
        [OpSample((x,)) for x in (M, TURNED, SCALAR, EMPTY, SPECIAL)] + [OpSample((M, 0.1))],
        fails(RuntimeError, "lambda must be in range .* but found -1", M, -1.0),
        fails(NotImplementedError, "not implemented for 'Long'", T((2,), dtype="int64")),
        torch="nn.functional.softshrink",
    ),
    case(
        "rrelu",
        [OpSample((M,)), OpSample((M, 0.1, 0.3)), OpSample((M, 0.25, 0.25, True))],
        fails(RuntimeError, "Lower bound should be less than or equal", M, 0.5, 0.3),
        fails(RuntimeError, "upper bound must be finite, got inf", M, 0.5, float("inf")),
        fails(NotImplementedError, "not implemented for 'Long'", T((2,), dtype="int64")),
    ),
    case(
        "rrelu_with_noise",
        [OpSample((M, T((2, 3), requires_grad=False), 0.1, 0.3))],
        fails(
            RuntimeError, r"Got self.shape = \[2, 3\] noise.shape = \[2\]", M, T((2,)), differs=True
        ),
        torch="_C._nn.rrelu_with_noise",
    ),
    dropout("alpha_dropout"),
    dropout("feature_dropout"),
    dropout("feature_alpha_dropout"),
]
