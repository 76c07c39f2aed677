"""Samples of the gradients of distributions, and errors of what draws from them; what is drawn is
compared elsewhere, number by number."""

from __future__ import annotations

from typing import Any

from plugrad.plugins.cases import OpCase, T
from plugrad.testing.cases.inputs import call, fails, wrong


def plain(shape: tuple[int, ...], **options: Any) -> T:
    """A tensor that does not require grad: most of the operators have no derivative."""
    return T(shape, requires_grad=False, **options)


# Shapes of gamma distributions, and what was drawn: each pair is computed in another way.
SHAPES = plain((2, 3), values=((0.2, 1.5, 20.0), (30.0, 7.9, 3.0)))
DRAWN = plain((2, 3), values=((0.5, 2.0, 20.5), (60.0, 0.01, 9.0)))
# Shares, concentrations and totals, likewise.
SHARES = plain((2, 3), values=((0.1, 0.95, 0.5), (0.52, 0.3, 0.6)))
ALPHA = plain((2, 3), values=((0.5, 3.0, 9.0), (20.0, 7.0, 2.0)))
TOTAL = plain((2, 3), values=((1.5, 3.5, 18.0), (31.0, 29.0, 7.0)))

CASES = [
    OpCase(
        "_standard_gamma_grad",
        [
            call(SHAPES, DRAWN),
            call(plain((2, 1), low=0.5, high=2.0), plain((3,), low=0.5, high=2.0)),
            call(plain((), low=1.0, high=2.0), plain((), low=1.0, high=2.0)),
            call(plain((0, 3)), plain((0, 3))),
        ],
        gradient=False,
        dtypes=("float32",),
        errors=[
            fails(
                NotImplementedError,
                "\"_standard_gamma_grad_cpu\" not implemented for 'Long'",
                plain((2,), dtype="int64"),
                plain((2,), dtype="int64"),
            ),
            fails(
                RuntimeError,
                "Found dtype Double but expected Float",
                plain((2,), dtype="float32"),
                plain((2,), dtype="float64"),
            ),
        ],
    ),
    OpCase(
        "_dirichlet_grad",
        [
            call(SHARES, ALPHA, TOTAL),
            call(
                plain((3, 1), low=0.1, high=0.9),
                plain((2,), low=0.5, high=1.0),
                plain((), low=2.0, high=3.0),
            ),
        ],
        gradient=False,
        dtypes=("float32",),
    ),
    OpCase(
        "poisson",
        [call(plain((2,), values=(0.0, 0.0)))],
        gradient=False,
        dtypes=("float32", "bfloat16"),
        errors=[
            fails(
                RuntimeError,
                "invalid Poisson rate, expected rate to be non-negative",
                plain((2,), values=(1.0, -1.0)),
            ),
            fails(
                NotImplementedError,
                "\"poisson_cpu\" not implemented for 'Long'",
                plain((2,), dtype="int64"),
            ),
        ],
    ),
    OpCase(
        "binomial",
        [
            call(plain((3,), values=(5.0, 5.0, 0.0)), plain((3,), values=(0.0, 1.0, 0.5))),
            call(plain((2, 1), values=((5.0,), (-5.0,))), plain((3,), values=(0.0, 1.0, 2.0))),
        ],
        gradient=False,
        dtypes=("float32",),
        errors=[
            fails(
                ValueError,
                "binomial only supports floating-point dtypes for count, got: Long",
                plain((2,), dtype="int64"),
                plain((2,)),
            ),
            fails(
                RuntimeError,
                "Found dtype Float but expected Double",
                plain((2,), dtype="float64"),
                plain((2,), dtype="float32"),
            ),
        ],
    ),
    OpCase(
        "_standard_gamma",
        [call(plain((2,), values=(0.0, 0.0)))],
        gradient=False,
        dtypes=("float32",),
        errors=[
            fails(
                NotImplementedError,
                "\"gamma_cpu\" not implemented for 'Half'",
                plain((2,), dtype="float16"),
            )
        ],
    ),
    OpCase(
        "_sample_dirichlet",
        [call(plain((2, 1), low=1.0, high=2.0)), call(plain((2, 0)))],
        gradient=False,
        dtypes=("float32",),
        errors=[
            fails(
                NotImplementedError,
                "\"dirichlet\" not implemented for 'Half'",
                plain((2,), dtype="float16"),
            )
        ],
    ),
    OpCase(
        "Tensor.cauchy_",
        [call(plain((0,)))],
        gradient=False,
        dtypes=("float32",),
        errors=[
            wrong(
                RuntimeError,
                "cauchy_ expects sigma > 0.0, but found sigma=0",
                plain((2,)),
                sigma=0,
            ),
            wrong(RuntimeError, "you specified long int", plain((2,), dtype="int64")),
        ],
    ),
    OpCase(
        "Tensor.log_normal_",
        [call(plain((0,)))],
        gradient=False,
        dtypes=("float32",),
        errors=[
            fails(
                RuntimeError,
                "log_normal_ expects std > 0.0, but found std=0",
                plain((2,)),
                1.0,
                0,
            ),
            fails(
                NotImplementedError,
                "\"log_normal_cpu\" not implemented for 'Long'",
                plain((2,), dtype="int64"),
            ),
        ],
    ),
    OpCase(
        "Tensor.geometric_",
        [call(plain((0,)), 0.5)],
        gradient=False,
        dtypes=("float32", "int64"),
        errors=[
            fails(
                RuntimeError,
                r"geometric_ expects p to be in \(0, 1\), but got p=1",
                plain((2,)),
                1.0,
            ),
            fails(
                NotImplementedError,
                "\"geometric_cpu\" not implemented for 'Bool'",
                plain((2,), dtype="bool"),
                0.5,
            ),
        ],
    ),
]
