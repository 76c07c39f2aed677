"""`plugrad.special`: special functions, under the names of torch.special, else of scipy.special.

Every function is an operator in the namespace `special` of `plugrad.ops`, or one of plugrad's own
under the name it has in torch.special. Tensors are broadcast and promoted together, integers to
the default dtype; numbers may stand for all tensors but one. `help(plugrad.special.jv)` says what
it computes, where, and how it is differentiated.
"""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad.plugins import load_operators

# Names of torch.special for what is an operator of plugrad.
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
    """The operators are loaded when the first is used: formulas import this module before."""
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
