"""`plugrad.special`: special functions, under the names of torch.special, else of scipy.special.

Every function is an operator in the namespace `special` of `plugrad.ops`, or one of plugrad's own
operators under its name in torch.special. Tensors are broadcast and promoted together, integers to
the default dtype; all tensors but one may be numbers. `help(plugrad.special.jv)` shows what it
computes, on which backends, and how it is differentiated.
"""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad.plugins import load_operators

# Names of torch.special for operators of plugrad.
ALIASES = {
    "erfinv": "erfinv",
    "exp2": "exp2",
    "expit": "sigmoid",
    "expm1": "expm1",
    "gammaln": "lgamma",
    "i0": "i0",
    "i1": "special_i1",
    "log1p": "log1p",
    "log_softmax": "log_softmax",
    "logit": "logit",
    "logsumexp": "logsumexp",
    "multigammaln": "mvlgamma",
    "round": "round",
    "sinc": "sinc",
    "softmax": "softmax",
    "xlogy": "xlogy",
}


def __getattr__(name: str) -> Any:
    """The operators are loaded at the first use, because formulas import this module earlier."""
    if name.startswith("__") and name != "__all__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = {alias: getattr(plugrad, real) for alias, real in ALIASES.items()}
    operators = load_operators("special")
    found |= {key: getattr(operators, key) for key in operators.__all__}
    found["__all__"] = sorted(key for key in found if not key.startswith("_"))
    globals().update(found)
    if name not in found:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found[name]


def __dir__() -> list[str]:
    return list(__getattr__("__all__"))
