"""Samples of factory functions; random ones are tested by their distribution elsewhere."""

from __future__ import annotations

from typing import Any

from plugrad.plugins.cases import FLOATS, INTEGERS, D, OpCase, OpError, OpSample, T
from plugrad.testing.cases.inputs import M, call, fails

NUMBERS = (*FLOATS, *INTEGERS)


def case(op: str, samples: list[OpSample], *errors: OpError, **options: Any) -> OpCase:
    return OpCase(op, samples, errors=errors, gradient=False, **{"dtypes": (), **options})


def in_every_dtype(op: str, samples: list[OpSample], dtypes: tuple[str, ...] = NUMBERS) -> OpCase:
    """The same samples with `dtype=` the one under test."""
    typed = [OpSample(s.args, {**s.kwargs, "dtype": D()}) for s in samples]
    return OpCase(op, typed, gradient=False, dtypes=dtypes)


ALL = (*NUMBERS, "bool", "complex64", "complex128")
NEGATIVE = "Trying to create tensor with negative dimension -1"

CASES = [
    case(
        "zeros",
        [call(2, 3), call((2, 3)), call(()), call(0), call(2, dtype=D("int32")), call(size=(2,))],
        fails(RuntimeError, "zeros: Dimension size must be non-negative", -1),
    ),
    in_every_dtype("zeros", [call(2, 3)], ALL),
    case("ones", [call(2, 3), call([4]), call(())], fails(RuntimeError, NEGATIVE, -1)),
    in_every_dtype("ones", [call(2, 3)], ALL),
    case(
        "full",
        [
            call((2, 3), 1),
            call((2,), 1.5),
            call((2,), True),
            call((2,), 1j),
            call((), 2.0),
            call((2,), 1.5, dtype=D("int32")),
            call((2,), 2, dtype=D("bool")),
            call((2,), fill_value=-1, dtype=D("uint8")),
        ],
        fails(TypeError, r"full\(\): argument 'size' \(position 1\) must be tuple of ints", 2, 1),
        OpError(
            call((2,), 300, dtype=D("uint8")),
            RuntimeError,
            "value cannot be converted to type uint8_t without overflow",
        ),
    ),
    case("zeros_like", [call(M), call(M, dtype=D("int64")), call(T((0, 2)))], dtypes=ALL),
    case("ones_like", [call(M), call(M, dtype=D("bool"))], dtypes=ALL),
    case("full_like", [call(M, 2), call(M, 1.5, dtype=D("float32"))], dtypes=("int64", "float16")),
    case("Tensor.new_zeros", [call(M, 2, 2), call(M, (2,), dtype=D("int8"))], dtypes=ALL),
    case("Tensor.new_ones", [call(M, 2, 2), call(M, (2,))], dtypes=ALL),
    case("Tensor.new_full", [call(M, (2, 2), 3)], dtypes=NUMBERS),
    case(
        "arange",
        [
            call(5),
            call(5.0),
            call(2, 5),
            call(1, 7, 2),
            call(5, 0, -2),
            call(0, 1, 0.3),
            call(1, 2, 0.1),
            call(0),
            call(True),
            call(end=4),
            call(start=1, end=4),
            call(1, 4, step=2),
            call(0.5, 3.5, dtype=D("int64")),
            call(2.5, dtype=D("int64")),
            call(3, dtype=D("float16")),
            call(-3, 3),
        ],
        fails(RuntimeError, "step must be nonzero", 0, 5, 0),
        fails(RuntimeError, "upper bound and lower bound inconsistent with step sign", 5, 0),
        fails(RuntimeError, "upper bound and lower bound inconsistent", 0, 5, -1),
        fails(RuntimeError, "unsupported range: 0 -> inf", float("inf")),
        OpError(
            call(3, dtype=D("bool")),
            NotImplementedError,
            "\"arange_cpu\" not implemented for 'Bool'",
        ),
    ),
    case(
        "range",
        [
            call(0, 3),
            call(1, 4, 2),
            call(5, 1, -1),
            call(0, 1, 0.25),
            call(0.5, 3.2, dtype=D("int64")),
            call(2, 2),
            call(0, end=3, step=2, dtype=D("float16")),
        ],
        fails(RuntimeError, "step must be nonzero", 0, 5, 0),
        fails(RuntimeError, "upper bound and lower bound inconsistent with step sign", 5, 0),
    ),
    in_every_dtype("arange", [call(5), call(1, 9, 3), call(0, 3, 1)]),
    case(
        "linspace",
        [
            call(0, 1, 3),
            call(0, 1, 1),
            call(0, 1, 0),
            call(-1.5, 2.5, steps=7),
            call(0, 1j, 3),
            call(5, 1, 4),
            call(-2, 7, 5, dtype=D("int32")),
        ],
        fails(RuntimeError, "number of steps must be non-negative", 0, 1, -1),
    ),
    in_every_dtype("linspace", [call(0, 10, 4)]),
    case(
        "logspace",
        [call(0, 2, 3), call(0, 2, 3, base=2), call(0, 2, 0), call(-1, 1, 5), call(0, 2, 1)],
        fails(RuntimeError, "number of steps must be non-negative", 0, 1, -1),
    ),
    case(
        "eye",
        [call(3), call(2, 3), call(0), call(2, m=4, dtype=D("int64"))],
        fails(RuntimeError, "n must be greater or equal to 0, got -1", -1),
        fails(RuntimeError, "m must be greater or equal to 0, got -1", 2, -1),
    ),
    case("tril_indices", [call(3, 3), call(2, 4, 1), call(4, 2, -1), call(0, 3)]),
    case(
        "triu_indices",
        [call(3, 3), call(2, 4, 1), call(4, 2, -1), call(3, 3, dtype=D("int32"))],
        fails(RuntimeError, "row must be non-negative", -1, 3),
    ),
    OpCase(
        "complex",
        [call(T((2, 3)), T((2, 3))), call(T((2, 1)), T((3,))), call(T(()), T((2,)))],
        dtypes=("float32",),
        errors=[
            OpError(
                call(T((2,), dtype="int64"), T((2,), dtype="int64")),
                RuntimeError,
                "Expected both inputs to be Half, Float or Double tensors but got Long and Long",
            ),
            OpError(
                call(T((2,), dtype="float32"), T((2,), dtype="float64")),
                RuntimeError,
                "Expected object of scalar type Float but got scalar type Double for second",
            ),
        ],
    ),
]
