"""Test inputs of the operators, for plugrad's kit and for their own tests.

A row is an operator, the range of each of its tensors, and further details. In these ranges the
function is smooth, so derivatives can be compared with finite differences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from plugrad.testing.cases import OpCase, OpSample, T

REAL = ("float32", "int64")
# Marks the range of a degree: an integer.
DEGREES = "degrees"


@dataclass(frozen=True)
class Row:
    """One operator.

    Attributes:
        ranges: the range of each tensor; a third entry is False for a tensor without a derivative,
            and `DEGREES` for integers.
        first: arguments before the tensors.
        complex: whether it is defined for complex numbers.
        torch: the name in torch.special, if it exists there.
        wider: dtypes for which PyTorch has no kernel.
        last: arguments after the tensors.
    """

    name: str
    ranges: tuple[tuple[Any, ...], ...]
    first: tuple[Any, ...] = ()
    last: tuple[Any, ...] = ()
    complex: bool = False
    torch: bool = False
    wider: tuple[str, ...] = ()

    def tensors(self, *shapes: tuple[int, ...], parameters: str | None = None) -> list[T]:
        """A tensor for each range, with these shapes; the last shape repeats."""
        found: list[T] = []
        for position, entry in enumerate(self.ranges):
            shape = shapes[min(position, len(shapes) - 1)]
            dtype = None if differentiable(entry) else parameters
            if entry[-1] is DEGREES:
                dtype = "int64"
            low, high = entry[:2]
            found.append(T(shape, low, high, dtype=dtype, requires_grad=differentiable(entry)))
        return found

    def samples(self, parameters: str | None = None) -> list[OpSample]:
        shapes: list[tuple[tuple[int, ...], ...]] = [((2, 3),), ((),), ((0, 3),)]
        if len(self.ranges) > 1:
            shapes.append(((2, 1), (3,)))
        return [
            OpSample((*self.first, *self.tensors(*s, parameters=parameters), *self.last))
            for s in shapes
        ]

    def cases(self) -> list[OpCase]:
        """A real range; and a complex one, where parameters stay real."""
        op, torch = f"special::{self.name}", f"special.{self.name}" if self.torch else None
        found = [OpCase(op, self.samples(), torch=torch, dtypes=REAL, wider=self.wider)]
        if self.complex:
            found.append(
                OpCase(
                    op,
                    self.samples("float64"),
                    torch=torch,
                    dtypes=("complex64",),
                    wider=self.wider,
                    grad_dtypes=("complex128",),
                    exact_dtype=all(differentiable(entry) for entry in self.ranges),
                )
            )
        return found


def differentiable(entry: tuple[Any, ...]) -> bool:
    return entry[-1] is not False and entry[-1] is not DEGREES


def of(name: str, *ranges: tuple[Any, ...], **others: Any) -> Row:
    return Row(name, ranges, **others)


# The order of a Bessel function, or the parameter of a hypergeometric one: it has no derivative.
ORDER = (0.5, 2.5, False)
PARAMETER = (0.5, 3.0, False)
DEGREE = (2, 6, DEGREES)

ROWS = (
    # elementary
    of("entr", (0.1, 3.0), torch=True),
    of("rel_entr", (0.1, 3.0), (0.1, 3.0)),
    of("kl_div", (0.1, 3.0), (0.1, 3.0)),
    of("xlog1py", (-2.0, 2.0), (-0.5, 3.0), torch=True, complex=True, wider=("complex64",)),
    of("powm1", (0.5, 3.0), (-2.0, 2.0)),
    of("cbrt", (0.5, 3.0)),
    of("exp10", (-1.0, 1.0)),
    of("exprel", (-2.0, 2.0)),
    of("cosm1", (-2.0, 2.0), complex=True),
    of("log_expit", (-2.0, 2.0)),
    of("boxcox", (0.5, 3.0), (-1.0, 1.0)),
    of("boxcox1p", (-0.5, 3.0), (-1.0, 1.0)),
    of("inv_boxcox", (0.1, 1.0), (-0.5, 1.0)),
    of("inv_boxcox1p", (0.1, 1.0), (-0.5, 1.0)),
    of("lambertw", (0.1, 3.0), complex=True),
    of("lambertw", (-0.3, -0.1), last=(-1,), complex=True),
    of("wrightomega", (-1.0, 3.0), complex=True),
    # gamma
    of("loggamma", (0.5, 4.0), complex=True),
    of("digamma", (0.5, 4.0), torch=True, complex=True, wider=("complex64",)),
    of("psi", (0.5, 4.0), torch=True, complex=True, wider=("complex64",)),
    of("polygamma", (0.5, 4.0), first=(1,), torch=True, complex=True, wider=("complex64",)),
    of("polygamma", (0.5, 4.0), first=(3,), torch=True, complex=True, wider=("complex64",)),
    of("gamma", (0.5, 4.0), complex=True),
    of("rgamma", (-2.2, 4.0), complex=True),
    of("gammasgn", (0.5, 4.0)),
    of("gammainc", PARAMETER, (0.5, 3.0), torch=True, wider=("int64",)),
    of("gammaincc", PARAMETER, (0.5, 3.0), torch=True, wider=("int64",)),
    of("gammaincinv", PARAMETER, (0.2, 0.8)),
    of("gammainccinv", PARAMETER, (0.2, 0.8)),
    of("beta", (0.5, 3.0), (0.5, 3.0)),
    of("betaln", (0.5, 3.0), (0.5, 3.0)),
    of("betainc", PARAMETER, PARAMETER, (0.2, 0.8)),
    of("betaincc", PARAMETER, PARAMETER, (0.2, 0.8)),
    of("betaincinv", PARAMETER, PARAMETER, (0.2, 0.8)),
    of("betainccinv", PARAMETER, PARAMETER, (0.2, 0.8)),
    of("zeta", (1.5, 4.0, False), (0.5, 3.0), torch=True),
    # error
    of("erf", (-2.0, 2.0), complex=True, torch=True, wider=("complex64",)),
    of("erfc", (-2.0, 2.0), complex=True, torch=True, wider=("complex64",)),
    of("erfcx", (-1.0, 2.0), complex=True, torch=True, wider=("complex64",)),
    of("erfi", (-1.0, 1.0), complex=True),
    of("dawsn", (-2.0, 2.0), complex=True),
    of("wofz", (-2.0, 2.0), complex=True),
    of("voigt_profile", (-2.0, 2.0), (0.5, 2.0), (0.5, 2.0)),
    of("erfcinv", (0.2, 1.8)),
    of("ndtr", (-2.0, 2.0), complex=True, torch=True, wider=("complex64",)),
    of("log_ndtr", (-2.0, 2.0), complex=True, torch=True, wider=("complex64",)),
    of("ndtri", (0.2, 0.8), torch=True),
    of("ndtri_exp", (-3.0, -0.3)),
    of("owens_t", (-2.0, 2.0), (-2.0, 2.0)),
    of("fresnel", (-2.0, 2.0), complex=True),
    # integrals
    of("expi", (0.5, 3.0), complex=True),
    of("exp1", (0.5, 3.0), complex=True),
    of("expn", (0.5, 3.0), first=(0,)),
    of("expn", (0.5, 3.0), first=(3,)),
    of("sici", (0.5, 3.0), complex=True),
    of("shichi", (0.5, 3.0), complex=True),
    of("spence", (0.5, 3.0), complex=True),
    # bessel
    *(
        of(name, (0.5, 4.0), torch=True)
        for name in ("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "i0e", "i1e")
    ),
    *(
        of(f"{scaled}modified_bessel_{name}", (0.5, 4.0), torch=True)
        for scaled, name in (
            *(("", name) for name in ("i0", "i1", "k0", "k1")),
            *(("scaled_", name) for name in ("k0", "k1")),
        )
    ),
    *(of(name, (0.5, 4.0)) for name in ("k0", "k0e", "k1", "k1e")),
    *(
        of(name, ORDER, (0.5, 4.0), complex=name != "ive")
        for name in ("jv", "yv", "iv", "ive", "kv", "kve", "hankel1", "hankel2")
    ),
    *(
        of(f"spherical_{name}", (0.5, 4.0), first=(n,), complex=True)
        for name in ("jn", "yn", "in", "kn")
        for n in (0, 2)
    ),
    of("spherical_bessel_j0", (-3.0, 3.0), complex=True, torch=True, wider=("complex64",)),
    of("airy", (-3.0, 2.0), complex=True),
    of("airy_ai", (-3.0, 2.0), complex=True, torch=True, wider=("complex64",)),
    of("struve", ORDER, (0.5, 4.0)),
    of("modstruve", ORDER, (0.5, 4.0)),
    # elliptic
    of("ellipk", (-1.0, 0.8)),
    of("ellipkm1", (0.2, 2.0)),
    of("ellipe", (-1.0, 0.8)),
    of("ellipkinc", (-3.0, 3.0), (0.1, 0.8)),
    of("ellipeinc", (-3.0, 3.0), (0.1, 0.8)),
    of("ellipj", (-3.0, 3.0), (0.1, 0.8)),
    of("elliprc", (0.5, 3.0), (0.5, 3.0), complex=True),
    of("elliprf", (0.5, 3.0), (0.5, 3.0), (0.5, 3.0), complex=True),
    of("elliprd", (0.5, 3.0), (0.5, 3.0), (0.5, 3.0), complex=True),
    of("elliprg", (0.5, 3.0), (0.5, 3.0), (0.5, 3.0), complex=True),
    of("elliprj", (0.5, 3.0), (0.5, 3.0), (0.5, 3.0), (0.5, 3.0), complex=True),
    # hypergeometric
    of("hyp0f1", PARAMETER, (-2.0, 2.0), complex=True),
    of("hyp1f1", PARAMETER, PARAMETER, (-2.0, 2.0), complex=True),
    of("hyp2f1", PARAMETER, PARAMETER, PARAMETER, (-0.6, 0.6), complex=True),
    of("hyperu", PARAMETER, PARAMETER, (0.5, 3.0)),
    of("wright_bessel", PARAMETER, PARAMETER, (0.5, 3.0)),
    # polynomials
    *(
        of(f"{shifted}chebyshev_polynomial_{kind}", (-0.8, 0.8), DEGREE, torch=True)
        for shifted in ("", "shifted_")
        for kind in "tuvw"
    ),
    of("hermite_polynomial_h", (-2.0, 2.0), DEGREE, torch=True),
    of("hermite_polynomial_he", (-2.0, 2.0), DEGREE, torch=True),
    of("laguerre_polynomial_l", (-2.0, 2.0), DEGREE, torch=True),
    of("legendre_polynomial_p", (-0.8, 0.8), DEGREE, torch=True),
    of("eval_gegenbauer", (1.5, 4.5, False), PARAMETER, (-0.8, 0.8)),
    of("eval_jacobi", (1.5, 4.5, False), PARAMETER, PARAMETER, (-0.8, 0.8)),
    of("eval_genlaguerre", (1.5, 4.5, False), PARAMETER, (0.5, 2.0)),
)

CASES = [case for row in ROWS for case in row.cases()]
