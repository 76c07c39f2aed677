"""Pruning: parameters times masks of zeros and ones, which are chosen by size, norm or chance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, TypeVar

import plugrad
from plugrad import Tensor
from plugrad.plugins.arguments import explains
from plugrad_nn.nn.module import Module
from plugrad_nn.nn.utils.convert_parameters import parameters_to_vector
from plugrad_nn.nn.utils.pruning_methods import (
    BasePruningMethod,
    CustomFromMask,
    Identity,
    L1Unstructured,
    LnStructured,
    PruningContainer,
    RandomStructured,
    RandomUnstructured,
    methods_of,
)

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]

M = TypeVar("M", bound=Module)
# Not only float: the check itself raises PyTorch's errors for wrong amounts.
Amount = float | Real


@explains
def identity(module: M, name: str) -> M:
    """Gives `module.name` a mask of ones.

    Args:
        module: has the parameter.
        name: of the parameter.

    >>> import plugrad
    >>> from plugrad.nn.utils import prune
    >>> layer = plugrad.nn.Linear(2, 2, bias=False)
    >>> _ = plugrad.nn.init.constant_(layer.weight, 3.0)
    >>> prune.identity(layer, "weight").weight_mask
    tensor([[1., 1.],
            [1., 1.]])
    """
    Identity.apply(module, name)
    return module


@explains
def random_unstructured(module: M, name: str, amount: Amount) -> M:
    """Prunes elements of `module.name` at random: `amount` of them, or this share.

    Args:
        module: has the parameter.
        name: of the parameter.
        amount: how many, or as a float in [0, 1] which share.

    >>> import plugrad
    >>> from plugrad.nn.utils import prune
    >>> layer = plugrad.nn.Linear(2, 2, bias=False)
    >>> _ = plugrad.nn.init.constant_(layer.weight, 3.0)
    >>> prune.random_unstructured(layer, "weight", 0.25).weight.count_nonzero().item()
    3
    """
    RandomUnstructured.apply(module, name, amount)
    return module


@explains
def l1_unstructured(
    module: M, name: str, amount: Amount, importance_scores: Tensor | None = None
) -> M:
    """Prunes the `amount` elements of `module.name` of least magnitude, or this share.

    Args:
        module: has the parameter.
        name: of the parameter.
        amount: how many, or as a float in [0, 1] which share.
        importance_scores: replacements of the magnitudes, in the parameter's shape.

    >>> import plugrad
    >>> from plugrad.nn.utils import prune
    >>> layer = plugrad.nn.Linear(4, 1, bias=False)
    >>> layer.load_state_dict({"weight": plugrad.tensor([[3.0, -1.0, 2.0, -4.0]])})
    <All keys matched successfully>
    >>> prune.l1_unstructured(layer, "weight", amount=0.5).weight.tolist()
    [[3.0, -0.0, 0.0, -4.0]]
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


@explains
def random_structured(module: M, name: str, amount: Amount, dim: int) -> M:
    """Prunes channels of `module.name` along `dim` at random: `amount` of them, or this share.

    Args:
        module: has the parameter.
        name: of the parameter.
        amount: how many, or as a float in [0, 1] which share.
        dim: the dimension of the channels.

    >>> import plugrad
    >>> from plugrad.nn.utils import prune
    >>> layer = plugrad.nn.Linear(2, 2, bias=False)
    >>> _ = plugrad.nn.init.constant_(layer.weight, 3.0)
    >>> prune.random_structured(layer, "weight", 1, dim=1).weight.count_nonzero().item()
    2
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


@explains
def ln_structured(
    module: M,
    name: str,
    amount: Amount,
    n: Any,
    dim: int,
    importance_scores: Tensor | None = None,
) -> M:
    """Prunes the `amount` channels of `module.name` along `dim` of least n-norm, or this share.

    Args:
        module: has the parameter.
        name: of the parameter.
        amount: how many, or as a float in [0, 1] which share.
        n: which norm, as for `plugrad.norm`.
        dim: the dimension of the channels.
        importance_scores: a replacement of the parameter, in its shape.

    >>> import plugrad
    >>> from plugrad.nn.utils import prune
    >>> layer = plugrad.nn.Linear(2, 2, bias=False)
    >>> weight = plugrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> _ = layer.load_state_dict({"weight": weight})
    >>> prune.ln_structured(layer, "weight", 1, n=2, dim=0).weight.tolist()
    [[0.0, 0.0], [3.0, 4.0]]
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


@explains
def custom_from_mask(module: M, name: str, mask: Tensor) -> M:
    """Prunes `module.name` by a given mask.

    Args:
        module: has the parameter.
        name: of the parameter.
        mask: ones and zeros, in the shape of the parameter.

    >>> import plugrad
    >>> from plugrad.nn.utils import prune
    >>> layer = plugrad.nn.Linear(2, 2, bias=False)
    >>> weight = plugrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> _ = layer.load_state_dict({"weight": weight})
    >>> prune.custom_from_mask(layer, "weight", plugrad.eye(2)).weight.tolist()
    [[1.0, 0.0], [0.0, 4.0]]
    """
    CustomFromMask.apply(module, name, mask)
    return module


@explains
def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: Any,
    importance_scores: Mapping[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prunes several parameters as if they were one.

    Args:
        parameters: pairs of a module and a name.
        pruning_method: an unstructured one, such as `L1Unstructured`.
        importance_scores: by pair, the importance of the elements.
        kwargs: arguments of the method, such as `amount`.

    >>> import plugrad
    >>> from plugrad.nn.utils import prune
    >>> layer = plugrad.nn.Linear(2, 2, bias=False)
    >>> weight = plugrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> _ = layer.load_state_dict({"weight": weight})
    >>> prune.global_unstructured([(layer, "weight")], prune.L1Unstructured, amount=2)
    >>> layer.weight.tolist()
    [[0.0, 0.0], [3.0, 4.0]]
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    given = {} if importance_scores is None else importance_scores
    if not isinstance(given, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs: Sequence[tuple[Module, str]] = list(parameters)
    for place, pair in enumerate(pairs):
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            raise TypeError(
                "global_unstructured(): argument 'parameters' (position 1) must be tuple of pairs "
                f"of a Module and a name, but found element of type {type(pair).__name__} at pos "
                f"{place}"
            )
    scores = [given.get(pair, getattr(*pair)) for pair in pairs]
    masks = [
        getattr(module, f"{name}_mask", plugrad.ones_like(getattr(module, name)))
        for module, name in pairs
    ]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    with plugrad.no_grad():
        mask = PruningContainer(method).compute_mask(
            parameters_to_vector(scores), default_mask=parameters_to_vector(masks)
        )
    parts = mask.split([score.numel() for score in scores])
    for (module, name), part in zip(pairs, parts, strict=True):
        custom_from_mask(module, name, part.reshape(getattr(module, name).shape))


@explains
def remove(module: M, name: str) -> M:
    """Makes the pruned tensor the parameter `name` again, for good.

    Args:
        module: has the parameter.
        name: of the parameter.

    >>> import plugrad
    >>> from plugrad.nn.utils import prune
    >>> layer = plugrad.nn.Linear(2, 2, bias=False)
    >>> weight = plugrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> _ = layer.load_state_dict({"weight": weight})
    >>> _ = prune.l1_unstructured(layer, "weight", 1)
    >>> sorted(prune.remove(layer, "weight").state_dict())
    ['weight']
    """
    for key, method in methods_of(module):
        if method._tensor_name == name:
            method.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(
        f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
    )


@explains
def is_pruned(module: Module) -> bool:
    """Whether a parameter of the module, or of one below it, is pruned.

    Args:
        module: which is looked through.

    >>> import plugrad
    >>> from plugrad.nn.utils import prune
    >>> layer = plugrad.nn.Linear(2, 2, bias=False)
    >>> _ = plugrad.nn.init.constant_(layer.weight, 3.0)
    >>> prune.is_pruned(layer), prune.is_pruned(prune.identity(layer, "weight"))
    (False, True)
    """
    return any(True for below in module.modules() for _ in methods_of(below))
