"""Kernels on JAX arrays: the functions of jax.scipy.special."""

from __future__ import annotations

import jax.numpy as jnp
import jax.scipy.special as sp

from plugrad_special.kernels.typed import Kernel, table, typed

# Functions with the same name; older versions of JAX lack some.
SAME_NAME = (
    "entr", "rel_entr", "kl_div", "xlog1py", "boxcox", "boxcox1p",
    "digamma", "polygamma", "gamma", "gammasgn", "gammainc", "gammaincc", "beta",
    "betaln", "betainc", "zeta",
    "erfcx", "ndtr", "log_ndtr", "ndtri", "owens_t", "dawsn", "fresnel",
    "expi", "exp1", "expn", "sici", "spence",
    "i0e", "i1e",
    "hyp1f1", "hyp2f1",
)  # fmt: skip

COMPLEX = ("loggamma", "wofz")


def _kernels() -> dict[str, Kernel]:
    found = {
        name: typed(name, getattr(sp, name), complex_numbers=name in COMPLEX)
        for name in (*SAME_NAME, *COMPLEX)
        if hasattr(sp, name)
    }
    found["cbrt"] = typed("cbrt", jnp.cbrt)
    return found


KERNELS = table(_kernels())
