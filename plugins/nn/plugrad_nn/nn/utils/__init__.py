"""plugrad.nn.utils: what is done to the gradients, parameters or sequences of a model."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from plugrad_nn.nn.utils.clip_grad import clip_grad_norm_, clip_grad_value_
from plugrad_nn.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters

if TYPE_CHECKING:
    from plugrad_nn.nn.utils import rnn

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "parameters_to_vector",
    "rnn",
    "vector_to_parameters",
]

# Loaded at their first use.
_MODULES: Final = ("rnn",)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'plugrad.nn.utils' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
