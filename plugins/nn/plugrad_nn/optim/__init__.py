"""plugrad.optim: optimizers and learning rate schedules."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from plugrad.plugins.arguments import explain_constructors
from plugrad_nn.optim.optimizer import Optimizer

if TYPE_CHECKING:
    from plugrad_nn.optim import functional, lr_scheduler, swa_utils
    from plugrad_nn.optim.adadelta import Adadelta
    from plugrad_nn.optim.adafactor import Adafactor
    from plugrad_nn.optim.adagrad import Adagrad
    from plugrad_nn.optim.adam import Adam, AdamW
    from plugrad_nn.optim.adamax import Adamax
    from plugrad_nn.optim.asgd import ASGD
    from plugrad_nn.optim.lbfgs import LBFGS
    from plugrad_nn.optim.muon import Muon
    from plugrad_nn.optim.nadam import NAdam
    from plugrad_nn.optim.radam import RAdam
    from plugrad_nn.optim.rmsprop import RMSprop
    from plugrad_nn.optim.rprop import Rprop
    from plugrad_nn.optim.sgd import SGD
    from plugrad_nn.optim.sparse_adam import SparseAdam
    from plugrad_nn.optim.swapping import swap_in_optimizer_params_and_state

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "functional",
    "lr_scheduler",
    "swa_utils",
    "swap_in_optimizer_params_and_state",
]

_MODULES = {
    "AdamW": "adam",
    "SparseAdam": "sparse_adam",
    "swap_in_optimizer_params_and_state": "swapping",
}

explain_constructors((Optimizer,))


def __getattr__(name: str) -> Any:
    """Loads names at first use: few programs need more than one optimizer."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: Any = import_module(f"{__name__}.{_MODULES.get(name, name.lower())}")
    if name in _MODULES or name != name.lower():
        found = getattr(found, name)
    if isinstance(found, type):
        explain_constructors((found,))
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
