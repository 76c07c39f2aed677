"""State dicts of models and optimizers by names of parameters, whatever wraps the model: a program
with `fully_shard`, or on one process, can read what another wrote with `DistributedDataParallel`.

>>> import plugrad
>>> from plugrad import nn, optim
>>> from plugrad.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
>>> model = nn.Linear(2, 1)
>>> optimizer = optim.Adam(model.parameters())
>>> weights, states = get_state_dict(model, optimizer)
>>> sorted(weights), sorted(states["state"]["weight"])
(['bias', 'weight'], ['exp_avg', 'exp_avg_sq', 'step'])
>>> set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=states)
<All keys matched successfully>
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.data_parallel.distributed import DistributedDataParallel
from plugrad_distributed.distributed.objects import broadcast_object_list
from plugrad_distributed.distributed.queries import get_rank, is_initialized
from plugrad_distributed.tensor.dtensor import DTensor
from plugrad_distributed.tensor.functions import distribute_tensor

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]

StateDict = dict[str, Any]
WRAPPED = "module"


@dataclass
class StateDictOptions:
    """Options for getting and setting state dicts.

    Attributes:
        full_state_dict: gather distributed tensors. All ranks must call, and all get the whole;
            with `cpu_offload` only rank 0 does.
        cpu_offload: copy tensors to the host.
        ignore_frozen_params: leave out parameters without `requires_grad`.
        keep_submodule_prefixes: with `submodules`, names begin at the model rather than at the
            submodule.
        strict: `set_model_state_dict` raises for names that are missing or unknown.
        broadcast_from_rank0: load the full state dict of rank 0; other ranks' are ignored.
        flatten_optimizer_state_dict: the state of optimizers is one dict, with names such as
            ``"state.weight.exp_avg"`` and ``"param_groups.weight.lr"``.

    >>> import plugrad
    >>> from plugrad import nn
    >>> from plugrad.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
    >>> model = nn.Linear(2, 1)
    >>> frozen = model.bias.requires_grad_(False)
    >>> options = StateDictOptions(ignore_frozen_params=True)
    >>> list(get_model_state_dict(model, options=options))
    ['weight']
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False

    def __post_init__(self) -> None:
        if self.broadcast_from_rank0 and not self.full_state_dict:
            raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")


# Names


def _plain_name(model: Any, name: str) -> str:
    """A name without the prefixes that `DistributedDataParallel` adds."""
    kept = []
    module = model
    for part in name.split("."):
        if not (isinstance(module, DistributedDataParallel) and part == WRAPPED):
            kept.append(part)
        module = None if module is None else module._modules.get(part)
    return ".".join(kept)


def _names(model: Any) -> dict[str, str]:
    """The plain name of each name in the model's state dict."""
    return {name: _plain_name(model, name) for name in model.state_dict()}


def _parameter_names(model: Any) -> dict[Tensor, str]:
    return {
        parameter: _plain_name(model, name)
        for name, parameter in model.named_parameters(remove_duplicate=False)
    }


def _chosen(model: Any, submodules: Iterable[Any] | None) -> list[str] | None:
    """The prefixes of the requested names; None for all."""
    if submodules is None:
        return None
    wanted = list(submodules)
    found = [
        _plain_name(model, name) + "." if name else ""
        for name, module in model.named_modules()
        if any(module is one for one in wanted)
    ]
    if len(found) < len(wanted):
        raise ValueError("submodules: all must be submodules of the model")
    return found


# Values


def _prepared(value: Any, options: StateDictOptions) -> Any:
    """A value as the options require, also inside containers."""
    if isinstance(value, Mapping):
        return {key: _prepared(item, options) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_prepared(item, options) for item in value)
    if not isinstance(value, Tensor):
        return value
    if options.full_state_dict and isinstance(value, DTensor):
        value = value.full_tensor()
    return value.detach().cpu() if options.cpu_offload else value


def _given(found: StateDict, options: StateDictOptions) -> StateDict:
    """The caller's result: empty on other ranks than 0 if only rank 0 gets the whole."""
    prepared: StateDict = _prepared(found, options)
    if options.full_state_dict and options.cpu_offload and is_initialized() and get_rank() != 0:
        return {}
    return prepared


def _shared(given: StateDict, options: StateDictOptions) -> StateDict:
    """Rank 0's value, if `broadcast_from_rank0` is set."""
    if not options.broadcast_from_rank0 or not is_initialized():
        return given
    holder: list[Any] = [_prepared(given, StateDictOptions(cpu_offload=True))]
    if get_rank() != 0:
        holder = [None]
    broadcast_object_list(holder, src=0)
    found: StateDict = holder[0]
    return found


def _placed(value: Any, like: Any) -> Any:
    """A whole tensor, distributed like another one of its shape."""
    if (
        isinstance(value, Tensor)
        and isinstance(like, DTensor)
        and not isinstance(value, DTensor)
        and value.shape == like.shape
    ):
        mesh = like.device_mesh
        return distribute_tensor(value.to(mesh.device_type), mesh, like.placements)
    return value


# Models


def get_model_state_dict(
    model: Any,
    *,
    submodules: Iterable[Any] | None = None,
    options: StateDictOptions | None = None,
) -> StateDict:
    """The state dict of a model, by plain names.

    Args:
        submodules: only these parts of the model.

    Raises:
        ValueError: a submodule is not in the model.

    >>> import plugrad
    >>> from plugrad import nn
    >>> from plugrad.distributed.checkpoint.state_dict import get_model_state_dict
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    >>> list(get_model_state_dict(model, submodules=[model[1]]))
    ['1.weight', '1.bias']
    """
    options = options or StateDictOptions()
    prefixes = _chosen(model, submodules)
    frozen = {
        _plain_name(model, name)
        for name, parameter in model.named_parameters(remove_duplicate=False)
        if not parameter.requires_grad
    }
    found: StateDict = {}
    for name, value in model.state_dict().items():
        plain = _plain_name(model, name)
        if options.ignore_frozen_params and plain in frozen:
            continue
        if prefixes is None:
            found[plain] = value
            continue
        prefix = next((one for one in prefixes if plain.startswith(one)), None)
        if prefix is not None:
            found[plain if options.keep_submodule_prefixes else plain[len(prefix) :]] = value
    return _given(found, options)


def set_model_state_dict(
    model: Any,
    model_state_dict: StateDict,
    *,
    options: StateDictOptions | None = None,
) -> Any:
    """Load a state dict of plain names into a model; whole tensors are sharded like the model's.

    Returns:
        Missing and unexpected names, as `load_state_dict` does.

    >>> import plugrad
    >>> from plugrad import nn
    >>> from plugrad.distributed.checkpoint.state_dict import set_model_state_dict
    >>> model = nn.Linear(2, 1)
    >>> state = {"weight": plugrad.ones(1, 2), "bias": plugrad.zeros(1)}
    >>> set_model_state_dict(model, state)
    <All keys matched successfully>
    >>> model(plugrad.ones(2)).item()
    2.0
    """
    options = options or StateDictOptions()
    own = {plain: name for name, plain in _names(model).items()}
    current = model.state_dict()
    shared = _shared(model_state_dict, options)
    state = {
        own.get(plain, plain): _placed(value, current.get(own.get(plain, plain)))
        for plain, value in shared.items()
    }
    return model.load_state_dict(state, strict=options.strict)


# Optimizers


def _optimizers(optimizers: Any) -> list[Any]:
    return list(optimizers) if isinstance(optimizers, Iterable) else [optimizers]


def _begin(optimizer: Any) -> None:
    """Give an optimizer without steps a state, by a step with zero gradients and zero learning
    rate."""
    if optimizer.state:
        return
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if any(parameter.grad is not None for parameter in parameters):
        raise RuntimeError(
            "the state of an optimizer that has made no step is made by one of zero gradients: "
            "call zero_grad() before, or step()"
        )
    lengths = [group.get("lr") for group in optimizer.param_groups]
    try:
        for parameter in parameters:
            if parameter.requires_grad:
                parameter.grad = plugrad.zeros_like(parameter)
        for group in optimizer.param_groups:
            if "lr" in group:
                old = group["lr"]
                group["lr"] = plugrad.zeros_like(old) if isinstance(old, Tensor) else 0.0
        optimizer.step(closure=None)
    finally:
        for group, length in zip(optimizer.param_groups, lengths, strict=True):
            if "lr" in group:
                group["lr"] = length
        optimizer.zero_grad(set_to_none=True)


def get_optimizer_state_dict(
    model: Any,
    optimizers: Any,
    *,
    submodules: Iterable[Any] | None = None,
    options: StateDictOptions | None = None,
) -> StateDict:
    """The state of optimizers, by plain names of parameters.

    An optimizer that has made no step yet first makes one with zero gradients, so that a checkpoint
    can be read into its state.

    Args:
        optimizers: one or several, each with its own parameters.
        submodules: only the state of parameters in these parts of the model.

    Returns:
        ``{"state": {name: {...}}, "param_groups": [{"params": [names], ...}]}``.

    >>> import plugrad
    >>> from plugrad import nn, optim
    >>> from plugrad.distributed.checkpoint.state_dict import get_optimizer_state_dict
    >>> model = nn.Linear(2, 1)
    >>> optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    >>> found = get_optimizer_state_dict(model, optimizer)
    >>> found["state"]["bias"], found["param_groups"][0]["params"]
    ({'momentum_buffer': tensor([0.])}, ['weight', 'bias'])
    """
    options = options or StateDictOptions()
    names = _parameter_names(model)
    prefixes = _chosen(model, submodules)

    def wanted(name: str) -> bool:
        return prefixes is None or name.startswith(tuple(prefixes))

    state: StateDict = {}
    groups: list[StateDict] = []
    for optimizer in _optimizers(optimizers):
        _begin(optimizer)
        for group in optimizer.param_groups:
            own = [name for name in _names_of(group, names) if wanted(name)]
            groups.append({**{k: v for k, v in group.items() if k != "params"}, "params": own})
            for parameter in group["params"]:
                if wanted(names[parameter]) and parameter in optimizer.state:
                    state[names[parameter]] = dict(optimizer.state[parameter])
    found = _given({"state": state, "param_groups": groups}, options)
    return _flat(found) if options.flatten_optimizer_state_dict and found else found


def _names_of(group: Mapping[str, Any], names: Mapping[Tensor, str]) -> list[str]:
    for parameter in group["params"]:
        if parameter not in names:
            raise ValueError("an optimizer has a parameter that is not one of the model")
    return [names[parameter] for parameter in group["params"]]


def _flat(nested: StateDict) -> StateDict:
    flat = {
        f"state.{name}.{key}": value
        for name, values in nested["state"].items()
        for key, value in values.items()
    }
    for group in nested["param_groups"]:
        for name in group["params"]:
            for key, value in group.items():
                if key != "params":
                    flat[f"param_groups.{name}.{key}"] = value
    return flat


def _nested(flat: StateDict, optimizers: list[Any], names: Mapping[Tensor, str]) -> StateDict:
    """The inverse of `_flat`, for these optimizers' groups."""
    state: StateDict = {}
    groups: list[StateDict] = []
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            own = _names_of(group, names)
            for name in own:
                start = f"state.{name}."
                found = {k[len(start) :]: v for k, v in flat.items() if k.startswith(start)}
                if found:
                    state[name] = found
            start = f"param_groups.{own[0]}." if own else "param_groups."
            options = {k[len(start) :]: v for k, v in flat.items() if k.startswith(start)}
            groups.append({**options, "params": own})
    return {"state": state, "param_groups": groups}


def set_optimizer_state_dict(
    model: Any,
    optimizers: Any,
    optim_state_dict: StateDict,
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Load a state from `get_optimizer_state_dict` into optimizers.

    Raises:
        ValueError: the state dict has no group for a parameter of an optimizer.

    >>> import plugrad
    >>> from plugrad import nn, optim
    >>> from plugrad.distributed.checkpoint import state_dict as states
    >>> model = nn.Linear(2, 1)
    >>> before = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    >>> after = optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    >>> found = states.get_optimizer_state_dict(model, before)
    >>> states.set_optimizer_state_dict(model, after, found)
    >>> after.param_groups[0]["lr"]
    0.1
    """
    options = options or StateDictOptions()
    names = _parameter_names(model)
    several = _optimizers(optimizers)
    given = _shared(optim_state_dict, options)
    if "state" not in given or "param_groups" not in given:
        given = _nested(given, several, names)
    by_name = {name: group for group in given["param_groups"] for name in group["params"]}
    for optimizer in several:
        state: dict[int, Any] = {}
        groups: list[StateDict] = []
        count = 0
        for group in optimizer.param_groups:
            own = _names_of(group, names)
            missing = [name for name in own if name not in by_name]
            if missing:
                raise ValueError(
                    f"optim_state_dict: no parameter group has {missing[0]!r}, which the optimizer "
                    "has"
                )
            for number, (name, parameter) in enumerate(
                zip(own, group["params"], strict=True), count
            ):
                if name in given["state"]:
                    state[number] = {
                        key: _placed(value, parameter)
                        for key, value in given["state"][name].items()
                    }
            options_of = by_name[own[0]] if own else group
            numbers = list(range(count, count + len(own)))
            groups.append(
                {**{k: v for k, v in options_of.items() if k != "params"}, "params": numbers}
            )
            count += len(own)
        optimizer.load_state_dict({"state": state, "param_groups": groups})


# Both


def get_state_dict(
    model: Any,
    optimizers: Any,
    *,
    submodules: Iterable[Any] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[StateDict, StateDict]:
    """`get_model_state_dict` and `get_optimizer_state_dict`.

    >>> import plugrad
    >>> from plugrad import nn, optim
    >>> from plugrad.distributed.checkpoint.state_dict import get_state_dict
    >>> model = nn.Linear(2, 1)
    >>> weights, states = get_state_dict(model, optim.SGD(model.parameters(), lr=0.1))
    >>> list(weights), list(states)
    (['weight', 'bias'], ['state', 'param_groups'])
    """
    weights = get_model_state_dict(model, submodules=submodules, options=options)
    states = get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options)
    return weights, states


def set_state_dict(
    model: Any,
    optimizers: Any,
    *,
    model_state_dict: StateDict,
    optim_state_dict: StateDict,
    options: StateDictOptions | None = None,
) -> Any:
    """`set_model_state_dict` and `set_optimizer_state_dict`; returns the result of the first.

    >>> import plugrad
    >>> from plugrad import nn, optim
    >>> from plugrad.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    >>> trained, model = nn.Linear(2, 1), nn.Linear(2, 1)
    >>> weights, states = get_state_dict(trained, optim.SGD(trained.parameters(), lr=0.1))
    >>> optimizer = optim.SGD(model.parameters(), lr=0.5)
    >>> set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=states)
    <All keys matched successfully>
    >>> bool((model.weight == trained.weight).all()), optimizer.param_groups[0]["lr"]
    (True, 0.1)
    """
    found = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return found
