"""Optimizers as functions of lists of tensors, for programs that keep the state themselves.

`adam(params, grads, exp_avgs, ...)` makes one step of `Adam`, in place. Functions have
PyTorch's arguments and their order, from the table below.
"""

from __future__ import annotations

import importlib
import inspect
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final

import plugrad
from plugrad import Tensor

# By function: the class; the lists of state, each `argument:name in the state`; the options, those
# without a default only by keyword.
_TABLE: Final[dict[str, tuple[str, str, str]]] = {
    "adadelta": (
        "Adadelta",
        "square_avgs:square_avg acc_deltas:acc_delta state_steps:step",
        "capturable=False foreach=None differentiable=False has_complex=False "
        "lr rho eps weight_decay maximize",
    ),
    "adagrad": (
        "Adagrad",
        "state_sums:sum state_steps:step",
        "fused=None grad_scale=None found_inf=None has_sparse_grad=False foreach=None "
        "differentiable=False has_complex=False lr weight_decay lr_decay eps maximize",
    ),
    "adam": (
        "Adam",
        "exp_avgs:exp_avg exp_avg_sqs:exp_avg_sq max_exp_avg_sqs:max_exp_avg_sq state_steps:step",
        "foreach=None capturable=False differentiable=False fused=None grad_scale=None "
        "found_inf=None has_complex=False decoupled_weight_decay=False "
        "amsgrad beta1 beta2 lr weight_decay eps maximize",
    ),
    "adamax": (
        "Adamax",
        "exp_avgs:exp_avg exp_infs:exp_inf state_steps:step",
        "foreach=None maximize=False differentiable=False capturable=False has_complex=False "
        "eps beta1 beta2 lr weight_decay",
    ),
    "adamw": (
        "AdamW",
        "exp_avgs:exp_avg exp_avg_sqs:exp_avg_sq max_exp_avg_sqs:max_exp_avg_sq state_steps:step",
        "foreach=None capturable=False differentiable=False fused=None grad_scale=None "
        "found_inf=None has_complex=False amsgrad beta1 beta2 lr weight_decay eps maximize",
    ),
    "asgd": (
        "ASGD",
        "axs:ax mus:mu etas:eta state_steps:step",
        "foreach=None maximize=False differentiable=False capturable=False has_complex=False "
        "lambd lr t0 alpha weight_decay",
    ),
    "nadam": (
        "NAdam",
        "exp_avgs:exp_avg exp_avg_sqs:exp_avg_sq mu_products:mu_product state_steps:step",
        "decoupled_weight_decay=False foreach=None capturable=False differentiable=False "
        "has_complex=False maximize=False beta1 beta2 lr weight_decay momentum_decay eps",
    ),
    "radam": (
        "RAdam",
        "exp_avgs:exp_avg exp_avg_sqs:exp_avg_sq state_steps:step",
        "decoupled_weight_decay=False foreach=None differentiable=False capturable=False "
        "has_complex=False maximize=False beta1 beta2 lr weight_decay eps",
    ),
    "rmsprop": (
        "RMSprop",
        "square_avgs:square_avg grad_avgs:grad_avg momentum_buffer_list:momentum_buffer "
        "state_steps:step",
        "foreach=None maximize=False differentiable=False capturable=False has_complex=False "
        "lr alpha eps weight_decay momentum centered",
    ),
    "rprop": (
        "Rprop",
        "prevs:prev step_sizes:step_size state_steps:step",
        "foreach=None capturable=False maximize=False differentiable=False has_complex=False "
        "step_size_min step_size_max etaminus etaplus",
    ),
    "sgd": (
        "SGD",
        "momentum_buffer_list:momentum_buffer",
        "has_sparse_grad=False foreach=None fused=None grad_scale=None found_inf=None "
        "weight_decay momentum lr dampening nesterov maximize",
    ),
}
__all__ = [
    "adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "radam", "rmsprop", "rprop",
    "sgd",
]  # fmt: skip

# Options of classes that are pairs, and the arguments of functions for them.
_PAIRS: Final = {
    "betas": ("beta1", "beta2"),
    "etas": ("etaminus", "etaplus"),
    "step_sizes": ("step_size_min", "step_size_max"),
}
_DEFAULTS: Final[dict[str, Any]] = {"None": None, "False": False}


def _signature(name: str) -> inspect.Signature:
    _, lists, options = _TABLE[name]
    gradients = "d_p_list" if name == "sgd" else "grads"
    kinds = inspect.Parameter
    found = [
        kinds(argument, kinds.POSITIONAL_OR_KEYWORD)
        for argument in ["params", gradients, *(pair.split(":")[0] for pair in lists.split())]
    ]
    for option in options.split():
        argument, equals, default = option.partition("=")
        if equals:
            kind, value = kinds.POSITIONAL_OR_KEYWORD, _DEFAULTS[default]
            found.append(kinds(argument, kind, default=value))
        else:
            found.append(kinds(argument, kinds.KEYWORD_ONLY))
    return inspect.Signature(found)


def _function(name: str) -> Callable[..., None]:
    kind, lists, _ = _TABLE[name]
    signature = _signature(name)
    names = dict(pair.split(":") for pair in lists.split())

    def step(*args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        params = given.pop("params")
        grads = given.pop("d_p_list" if name == "sgd" else "grads")
        if given.pop("grad_scale", None) is not None or given.pop("found_inf", None) is not None:
            raise AssertionError(f"{name}: Expected grad_scale and found_inf to be None")
        given.pop("found_inf", None)
        states = {key: given.pop(argument) for argument, key in names.items()}
        if not all(isinstance(count, Tensor) for count in states.get("step", ())):
            raise RuntimeError(
                "API has changed, `state_steps` argument must contain a list of singleton tensors"
            )
        for option, parts in _PAIRS.items():
            if parts[0] in given:
                given[option] = tuple(given.pop(part) for part in parts)
        if name == "adamw":
            given["decoupled_weight_decay"] = True
        optimizer_class = getattr(importlib.import_module("plugrad_nn.optim"), kind)
        _run(optimizer_class, given, params, grads, states)

    step.__name__ = step.__qualname__ = name
    step.__doc__ = (
        f"One step of `{kind}` in place, whose docstring describes the options.\n\n"
        f"`params` and `{'d_p_list' if name == 'sgd' else 'grads'}` are lists of tensors, and "
        f"so are {', '.join(f'`{argument}`' for argument in names)}: the state of each parameter."
    )
    step.__signature__ = signature  # type: ignore[attr-defined]  # what inspect.signature reads
    return step


def _run(
    kind: Any,
    group: dict[str, Any],
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    lists: dict[str, list[Any]],
) -> None:
    optimizer: Any = kind.__new__(kind)
    optimizer.state = defaultdict(dict)
    optimizer.defaults = {}
    pairs = list(zip(params, grads, strict=True))
    for place, (parameter, _) in enumerate(pairs):
        # In PyTorch's order; the step comes first.
        optimizer.state[parameter] = {
            key: tensors[place]
            for key, tensors in reversed(lists.items())
            if place < len(tensors) and tensors[place] is not None
        }
    with plugrad.set_grad_enabled(bool(group.get("differentiable"))):
        if group.get("foreach") or group.get("fused"):
            optimizer._update_lists(group, pairs)
        else:
            for parameter, grad in pairs:
                optimizer._update(group, parameter, grad)
    for key, tensors in lists.items():
        for place, (parameter, _) in enumerate(pairs):
            if place < len(tensors):
                tensors[place] = optimizer.state[parameter].get(key, tensors[place])


# For type checkers; the signatures are made from the table.
adadelta: Callable[..., None]
adagrad: Callable[..., None]
adam: Callable[..., None]
adamax: Callable[..., None]
adamw: Callable[..., None]
asgd: Callable[..., None]
nadam: Callable[..., None]
radam: Callable[..., None]
rmsprop: Callable[..., None]
rprop: Callable[..., None]
sgd: Callable[..., None]

globals().update({name: _function(name) for name in _TABLE})
