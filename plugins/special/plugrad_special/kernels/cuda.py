"""Kernels on CuPy arrays: the functions of cupyx.scipy.special."""

from __future__ import annotations

from typing import Any

import cupyx.scipy.special as sp

from plugrad_special.kernels.typed import Kernel, table, typed

# Functions with the same name; older versions of CuPy lack some.
SAME_NAME = (
    "entr", "rel_entr", "kl_div", "cbrt", "exp10", "exprel", "boxcox", "boxcox1p", "inv_boxcox",
    "inv_boxcox1p",
    "gammasgn", "gammainc", "gammaincc", "gammaincinv", "gammainccinv", "beta",
    "betaln", "betainc", "betaincinv",
    "polygamma", "zeta",
    "erfcx", "erfcinv", "ndtr", "log_ndtr", "ndtri",
    "expi", "exp1", "expn", "sici", "shichi",
    "i0e", "i1e", "k0", "k0e", "k1", "k1e", "spherical_yn",
    "ellipk", "ellipkm1", "ellipkinc", "ellipeinc", "ellipj",
    "wright_bessel",
)  # fmt: skip

# Functions that also take complex numbers.
COMPLEX = ("xlog1py", "loggamma", "digamma", "gamma", "rgamma")

OTHER_NAMES = {"bessel_j0": "j0", "bessel_j1": "j1", "bessel_y0": "y0", "bessel_y1": "y1"}


def _lambertw(z: Any, k: int) -> Any:
    result = sp.lambertw(z, k)
    if z.dtype.kind == "c":
        return result
    outside = (z < -0.36787944117144233) | ((z > 0) & (k == -1))
    real = result.real
    real[outside] = float("nan")
    return real


def _kernels() -> dict[str, Kernel]:
    names = {**{name: name for name in (*SAME_NAME, *COMPLEX)}, **OTHER_NAMES}
    found = {
        name: typed(name, getattr(sp, theirs), complex_numbers=name in COMPLEX)
        for name, theirs in names.items()
        if hasattr(sp, theirs)
    }
    if hasattr(sp, "lambertw"):
        found["lambertw"] = typed("lambertw", _lambertw, complex_numbers=True)
    return found


KERNELS = table(_kernels())
