"""Samples of the connectionist temporal classification.

Its gradient assumes normalised probabilities, so finite differences agree only behind
`log_softmax`: see `tests/core/ops/layers/test_ctc.py`.
"""

from __future__ import annotations

from typing import Any

from plugrad.plugins.cases import OpCase, OpSample, T
from plugrad.testing.cases.inputs import wrong

LOGS = T((4, 2, 3), low=-3.0, high=-0.1)
ROWS = T(values=[[1, 2, 2], [1, 1, 0]], dtype="int64")
ONE_AFTER_THE_OTHER = T(values=[1, 2, 1], dtype="int64")
# The second needs five steps at least.
TOO_LONG = T(values=[[1, 2, 0], [1, 1, 1]], dtype="int64")


def lengths(*values: int) -> T:
    return T(values=list(values), dtype="int64")


def each(*args: Any, **kwargs: Any) -> list[OpSample]:
    return [OpSample(args, {**kwargs, "reduction": number}) for number in (0, 1, 2)]


SAMPLES = [
    *each(LOGS, ROWS, (4, 3), (2, 1)),
    *each(LOGS, ROWS, lengths(4, 4), lengths(3, 2)),
    *each(LOGS, ONE_AFTER_THE_OTHER, (4, 4), (2, 1)),
    *each(LOGS, TOO_LONG, (4, 4), (2, 3), zero_infinity=True),
    *each(LOGS, T(values=[[0, 1], [1, 0]], dtype="int64"), (4, 4), (2, 2), blank=2),
    *each(T((4, 3), low=-3.0, high=-0.1), T(values=[1, 2], dtype="int64"), (4,), (2,)),
    OpSample((LOGS, ROWS, (4, 0), (0, 0)), {"reduction": 1}),
]
ERRORS = [
    wrong(RuntimeError, "blank must be in label range", LOGS, ROWS, (4, 4), (2, 1), 3),
    wrong(RuntimeError, "input_lengths must be of size batch_size", LOGS, ROWS, (4,), (2, 1)),
    wrong(RuntimeError, "target_lengths must be of size batch_size", LOGS, ROWS, (4, 4), (2,)),
    wrong(
        RuntimeError,
        "Expected input_lengths to have value at most 4, but got value 5",
        LOGS,
        ROWS,
        (5, 4),
        (2, 1),
    ),
    wrong(RuntimeError, "have value at least 0, but got value -1", LOGS, ROWS, (4, 4), (-1, 1)),
    wrong(
        RuntimeError,
        "Expected tensor to have size at least 4 at dimension 1, but got size 3 for argument #2",
        LOGS,
        ROWS,
        (4, 4),
        (4, 1),
    ),
    wrong(
        RuntimeError,
        "Expected tensor to have size 4 at dimension 0, but got size 3 for argument #2 'targets'",
        LOGS,
        ONE_AFTER_THE_OTHER,
        (4, 4),
        (2, 2),
    ),
    wrong(
        RuntimeError,
        "input_lengths must be integral",
        LOGS,
        ROWS,
        T(values=[4.0, 4.0], requires_grad=False),
        lengths(2, 1),
    ),
    wrong(RuntimeError, "log_probs tensor must not be empty", T((0, 2, 3)), ROWS, (0, 0), (0, 0)),
    wrong(
        NotImplementedError,
        "not implemented for 'Half'",
        T((4, 2, 3), dtype="float16"),
        ROWS,
        (4, 4),
        (2, 1),
    ),
]

# Of full length: what PyTorch leaves beyond the end of a sequence is by chance.
PARTS = [
    OpSample((LOGS, ROWS, (4, 4), (3, 3))),
    OpSample((LOGS, ROWS, lengths(4, 4), lengths(3, 3))),
]

NUMBERS = T((2,), low=0.5, high=2.0, requires_grad=False)
FIXED_LOGS = T((4, 2, 3), low=-3.0, high=-0.1, requires_grad=False)
LOG_ALPHA = T((2, 4, 7), low=-4.0, high=-1.0, requires_grad=False)
BACKWARD = [
    OpSample((NUMBERS, FIXED_LOGS, ROWS, *both, NUMBERS, LOG_ALPHA, 0, False))
    for both in (((4, 3), (3, 2)), (lengths(4, 3), lengths(3, 2)))
]

CASES = [
    OpCase("ctc_loss", SAMPLES, dtypes=("float32",), gradient=False, errors=ERRORS),
    OpCase("_ctc_loss", PARTS, dtypes=("float32",), gradient=False),
    OpCase(
        "_ctc_loss_backward",
        BACKWARD,
        torch="aten::_ctc_loss_backward",
        dtypes=("float32",),
        gradient=False,
    ),
]
