"""Kernels on NumPy arrays: SciPy's functions, with PyTorch's dtypes."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import scipy.special as sp

from plugrad_special.kernels.carlson import carlson_integral
from plugrad_special.kernels.complex_polygamma import complex_polygamma
from plugrad_special.kernels.typed import Kernel, table, typed


def quiet(name: str, function: Kernel, *, complex_numbers: bool) -> Kernel:
    """`typed`, without NumPy's warnings: PyTorch returns inf and nan silently."""
    kernel = typed(name, function, complex_numbers=complex_numbers)

    def quiet_kernel(*operands: Any) -> Any:
        with np.errstate(all="ignore"):
            return kernel(*operands)

    return quiet_kernel


def from_ufunc(name: str, ufunc: Any) -> Kernel:
    """The kernel for one of SciPy's ufuncs; its types show which operands may be complex.

    With a complex argument, orders and parameters must be real.
    """
    ufunc = inspect.unwrap(ufunc)  # SciPy wraps ufuncs if SCIPY_ARRAY_API is set
    loops = [loop.partition("->")[0] for loop in ufunc.types]
    complex_loop = next((loop for loop in loops if "D" in loop), None)
    if complex_loop is None:
        return quiet(name, ufunc, complex_numbers=False)
    real = [position for position, letter in enumerate(complex_loop) if letter != "D"]
    if not real:
        return quiet(name, ufunc, complex_numbers=True)

    def with_real_parameters(*operands: Any) -> Any:
        if operands[0].dtype.kind != "c":
            return ufunc(*operands)
        given = list(operands)
        for position in real:
            if np.any(given[position].imag):
                raise NotImplementedError(
                    f"{name}(): argument {position + 1} must be real, got complex numbers"
                )
            given[position] = given[position].real
        return ufunc(*given)

    return quiet(name, with_real_parameters, complex_numbers=True)


# SciPy sums this number of terms.
LARGEST_DEGREE = 1_000_000


def of_integer_degree(name: str, ufunc: Any) -> Kernel:
    """An orthogonal polynomial of (x, n), from SciPy's, which takes integers n first; 0 for n <
    0."""

    def polynomial(x: Any, n: Any) -> Any:
        degree = n.astype(np.int64)
        if degree.size and degree.max() > LARGEST_DEGREE:
            raise NotImplementedError(
                f"{name}(): degrees above {LARGEST_DEGREE} are not supported, got {degree.max()}"
            )
        return np.where(degree < 0, 0.0, ufunc(np.maximum(degree, 0), x.astype(np.float64)))

    return quiet(name, polynomial, complex_numbers=False)


def _chebyshev_difference(sign: int) -> Kernel:
    """V_n (-1) and W_n (+1) from U_n and U_(n-1), DLMF 18.5; stable where those are close."""

    def polynomial(n: Any, x: Any) -> Any:
        return sp.eval_chebyu(n, x) + sign * np.where(
            n == 0, 0.0, sp.eval_chebyu(np.maximum(n - 1, 0), x)
        )

    return polynomial


def _polygamma(n: int, x: Any) -> Any:
    if x.dtype.kind == "c":
        return complex_polygamma(n, x)
    return sp.digamma(x) if n == 0 else sp.polygamma(n, x)


def _lambertw(z: Any, k: int) -> Any:
    result = sp.lambertw(z, k)
    if z.dtype.kind == "c":
        return result
    # SciPy gives nan at the branch point, and an imaginary part from rounding near it.
    branch_point = np.asarray(-np.exp(-1), z.dtype)
    outside = (z < branch_point) | ((z > 0) & (k == -1))
    real = np.where(z == branch_point, -1.0, result.real)
    return np.where(outside, np.nan, real)


def _wofz(z: Any) -> Any:
    return sp.wofz(z if z.dtype.kind == "c" else z.astype(np.complex128))


def _hankel(ufunc: Any) -> Kernel:
    def kernel(v: Any, z: Any) -> Any:
        if np.any(v.imag):
            raise NotImplementedError("the order v must be real, got complex numbers")
        return ufunc(v.real, z.astype(np.complex128))

    return kernel


# SciPy's functions with the same name.
SAME_NAME = (
    "entr", "rel_entr", "kl_div", "xlog1py", "powm1", "cbrt", "exp10", "exprel", "boxcox",
    "boxcox1p", "inv_boxcox", "inv_boxcox1p",
    "wrightomega",
    "loggamma", "digamma", "gamma", "rgamma", "gammasgn", "gammainc", "gammaincc", "gammaincinv",
    "gammainccinv",
    "beta", "betaln", "betainc", "betaincc", "betaincinv", "betainccinv",
    "erfcx", "erfi", "dawsn", "voigt_profile", "erfcinv", "ndtr", "log_ndtr", "ndtri",
    "ndtri_exp", "owens_t", "fresnel",
    "expi", "exp1", "sici", "shichi", "spence",
    "i0e", "i1e", "k0", "k0e", "k1", "k1e", "jv", "yv", "iv", "ive", "kv", "kve",
    "airy", "struve", "modstruve",
    "ellipk", "ellipkm1", "ellipe", "ellipkinc", "ellipeinc", "ellipj", "elliprc", "elliprf",
    "elliprd", "elliprg", "elliprj",
    "hyp0f1", "hyp1f1", "hyp2f1", "hyperu", "wright_bessel",
)  # fmt: skip

UFUNCS: dict[str, Any] = {
    **{name: getattr(sp, name) for name in SAME_NAME},
    "_erf_complex": sp.erf,
    "_erfc_complex": sp.erfc,
    "bessel_j0": sp.j0,
    "bessel_j1": sp.j1,
    "bessel_y0": sp.y0,
    "bessel_y1": sp.y1,
}

POLYNOMIALS: dict[str, Any] = {
    "chebyshev_polynomial_t": sp.eval_chebyt,
    "chebyshev_polynomial_u": sp.eval_chebyu,
    "chebyshev_polynomial_v": _chebyshev_difference(-1),
    "chebyshev_polynomial_w": _chebyshev_difference(+1),
    "hermite_polynomial_h": sp.eval_hermite,
    "hermite_polynomial_he": sp.eval_hermitenorm,
    "laguerre_polynomial_l": sp.eval_laguerre,
    "legendre_polynomial_p": sp.eval_legendre,
}

# Functions that are no ufuncs, or that take their arguments in another form.
REAL: dict[str, Kernel] = {
    "expn": sp.expn,
    "zeta": sp.zeta,
    "eval_gegenbauer": sp.eval_gegenbauer,
    "eval_jacobi": sp.eval_jacobi,
    "eval_genlaguerre": sp.eval_genlaguerre,
}
COMPLEX: dict[str, Kernel] = {
    "polygamma": _polygamma,
    "lambertw": _lambertw,
    "wofz": _wofz,
    "hankel1": _hankel(sp.hankel1),
    "hankel2": _hankel(sp.hankel2),
    "spherical_jn": sp.spherical_jn,
    "spherical_yn": sp.spherical_yn,
    "spherical_in": sp.spherical_in,
    "spherical_kn": sp.spherical_kn,
    "_carlson": carlson_integral,
}

KERNELS = table(
    {
        **{name: from_ufunc(name, ufunc) for name, ufunc in UFUNCS.items()},
        **{name: of_integer_degree(name, function) for name, function in POLYNOMIALS.items()},
        **{name: quiet(name, f, complex_numbers=True) for name, f in COMPLEX.items()},
        **{name: quiet(name, f, complex_numbers=False) for name, f in REAL.items()},
    }
)
