"""Modules as functions of their parameters: `functional_call` and `stack_module_state`.

A module is whatever keeps parameters, buffers and submodules in `_parameters`, `_buffers` and
`_modules`, as `plugrad.nn.Module` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from plugrad._generated import functions as F
from plugrad.dispatch.scope import Scope, SwappedItems
from plugrad.tensor.base import TensorBase, needs_grad
from plugrad.tensor.calls.annotations import explains
from plugrad.tensor.calls.arguments import raise_argument_error, type_name

_TABLES = ("_parameters", "_buffers")


@explains
def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in the place of its parameters and buffers.

    Args:
        parameter_and_buffer_dicts: tensors by dotted names, or a sequence of such dicts. What they
            do not name keeps its value. What the call writes to a buffer is written to the tensor
            that is given for it.
        args, kwargs: what the module is called with; something else than a tuple is one argument.
        tie_weights: whether a tensor given for a parameter counts for all names that it has in the
            module.
        strict: whether every parameter and buffer must be named, and nothing else.

    Raises:
        ValueError: no dicts are given, or a name is in two of them, or two different tensors for
            one tied parameter.
        RuntimeError: `strict` is not kept.

    >>> import plugrad
    >>> from plugrad.func import functional_call, grad
    >>> layer = plugrad.nn.Linear(2, 1)
    >>> weights = {"weight": plugrad.ones(1, 2), "bias": plugrad.zeros(1)}
    >>> functional_call(layer, weights, (plugrad.tensor([1., 2.]),))
    tensor([3.])
    >>> grad(lambda w: functional_call(layer, w, (plugrad.ones(2),)).sum())(weights)["weight"]
    tensor([[1., 1.]])
    """
    given = _merged(parameter_and_buffer_dicts)
    if not hasattr(module, "named_modules"):
        raise TypeError(
            "functional_call(): argument 'module' (position 1) must be Module, not "
            f"{type_name(module)}"
        )
    for value in given.values():
        if value is not None and not isinstance(value, TensorBase):
            raise TypeError(f"{value!r} is not an instance of plugrad.Tensor")
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, given, tie_weights, strict):
        return module(*positional, **(kwargs or {}))


def _merged(dicts: Any) -> dict[str, Any]:
    if isinstance(dicts, Mapping):
        return dict(dicts)
    if not isinstance(dicts, Sequence) or not all(isinstance(item, Mapping) for item in dicts):
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(dicts)}"
        )
    merged: dict[str, Any] = {}
    for item in dicts:
        repeated = [name for name in item if name in merged]
        if repeated:
            raise ValueError(
                f"{repeated} appeared in multiple dictionaries; behavior of functional call is "
                "ambiguous"
            )
        merged.update(item)
    return merged


def _places(module: Any) -> dict[str, tuple[dict[str, Any], str]]:
    """The place of every parameter and buffer, by all its dotted names."""
    found: dict[str, tuple[dict[str, Any], str]] = {}
    for prefix, part in module.named_modules(remove_duplicate=False):
        for table in _TABLES:
            tensors = getattr(part, table)
            for name in tensors:
                found[f"{prefix}.{name}" if prefix else name] = (tensors, name)
    return found


def _replaced(module: Any, given: dict[str, Any], tie_weights: bool, strict: bool) -> Scope:
    """Context manager: the module has the given tensors."""
    places = _places(module)
    if strict:
        _check_names(module, given, places)
    chosen: dict[str, Any] = {name: value for name, value in given.items() if name in places}
    if tie_weights:
        chosen = _tied(chosen, places)
    return SwappedItems([(*places[name], value) for name, value in chosen.items()])


def _check_names(module: Any, given: dict[str, Any], places: Mapping[str, Any]) -> None:
    tensors = {name for name, (table, key) in places.items() if table[key] is not None}
    missing = [repr(name) for name in places if name in tensors and name not in given]
    unexpected = [repr(name) for name in given if name not in places]
    problems = []
    if unexpected:
        problems.append(f"Unexpected key(s): {', '.join(unexpected)}.")
    if missing:
        problems.append(f"Missing key(s): {', '.join(missing)}.")
    if problems:
        text = "\n\t".join(problems)
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t{text}")


def _tied(chosen: dict[str, Any], places: dict[str, tuple[dict[str, Any], str]]) -> dict[str, Any]:
    """The given values, under all names of the tensors that they replace."""
    names: dict[int, list[str]] = {}
    for name, (table, key) in places.items():
        if table[key] is not None:
            names.setdefault(id(table[key]), []).append(name)
    found = dict(chosen)
    for name, value in chosen.items():
        table, key = places[name]
        for other in names.get(id(table[key]), ()):
            if found.setdefault(other, value) is not value:
                raise ValueError(
                    f"functional_call got multiple values for keys {sorted((name, other))}, which "
                    "are tied. Consider using tie_weights=False"
                )
    return found


@explains
def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of several modules of one kind, stacked, for an ensemble.

    Args:
        models: modules of one class, with parameters of equal shapes.

    Returns:
        Two dicts by dotted name: the parameters and the buffers, each of shape
        ``(len(models), *shape)``. Stacked parameters are leaves that require grad as the models'.

    Raises:
        RuntimeError: there are no models, they are of different classes or modes, or some of the
            tensors of one name require grad and others do not.

    >>> import plugrad
    >>> from plugrad.func import functional_call, stack_module_state, vmap
    >>> models = [plugrad.nn.Linear(2, 3) for _ in range(4)]
    >>> params, buffers = stack_module_state(models)
    >>> call = lambda p, b, x: functional_call(models[0], (p, b), (x,))
    >>> vmap(call, in_dims=(0, 0, None))(params, buffers, plugrad.ones(5, 2)).shape
    plugrad.Size([4, 5, 3])
    """
    if not hasattr(models, "__len__") or not all(
        hasattr(model, "named_parameters") for model in models
    ):
        raise TypeError(
            "stack_module_state(): argument 'models' (position 1) must be list of modules, not "
            f"{type_name(models)}"
        )
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    first = models[0]
    if not all(model.training == first.training for model in models):
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if not all(type(model) is type(first) for model in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = _stacked([dict(model.named_parameters()) for model in models])
    buffers = _stacked([dict(model.named_buffers()) for model in models])
    return parameters, buffers


def _stacked(states: list[dict[str, TensorBase]]) -> dict[str, Any]:
    return {name: _stack([state[name] for state in states]) for name in states[0]}


def _stack(tensors: list[Any]) -> Any:
    wanting = [needs_grad(tensor) for tensor in tensors]
    if any(wanting) and not all(wanting):
        raise RuntimeError(
            "Expected tensors from each model to have the same .requires_grad. Got "
            f"{wanting.count(True)} tensor(s) that require grad and {wanting.count(False)} that "
            "do not"
        )
    if all(tensor.is_leaf for tensor in tensors):
        stacked: Any = F.stack([tensor.detach() for tensor in tensors])
        return stacked.requires_grad_(wanting[0])
    return F.stack(tensors)


@explains
def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Have all batch norms of a module use the batch's own statistics, and keep none: in place.

    `vmap` over one sample, or with the statistics shared, could not write to them.

    >>> import plugrad
    >>> from plugrad.func import replace_all_batch_norm_modules_
    >>> model = plugrad.nn.Sequential(plugrad.nn.BatchNorm1d(3))
    >>> replace_all_batch_norm_modules_(model)[0].track_running_stats
    False
    """
    if not hasattr(root, "modules"):
        raise_argument_error("replace_all_batch_norm_modules_", "root", 1, "Module", root)
    for module in root.modules():
        if type(module).__name__.startswith("BatchNorm"):
            module.running_mean = None
            module.running_var = None
            module.num_batches_tracked = None
            module.track_running_stats = False
    return root
