"""Parameters of a module on a mesh, by rules on their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from jax.sharding import NamedSharding

import plugrad
from plugrad_jax.sharding.placing import EVERYWHERE
from plugrad_jax.sharding.specs import named_sharding
from plugrad_jax.sharding.tensors import shard

M = TypeVar("M")

Rules = Mapping[str, Any] | Iterable[tuple[str, Any]]


def shard_parameters(module: M, mesh: Any, rules: Rules = ()) -> M:
    """Split the parameters and buffers of a module over a mesh of devices, in place.

    They stay the same tensors, so an optimizer that has them goes on with them. Existing gradients
    move with their parameters. Nothing is changed if an error is raised.

    Args:
        module: a `plugrad.nn.Module`, on any device.
        mesh: a `jax.sharding.Mesh`.
        rules: regular expressions, each with a spec as `shard` takes it: a mapping, or pairs. The
            first expression that is found in a tensor's name (`re.search`) counts; what none is
            found in is replicated.

    Returns:
        the module.

    Raises:
        TypeError: `module` has no parameters, or a rule is something else.
        ValueError: a spec does not fit the tensor; the message names tensor, shape and mesh.

    >>> import jax, plugrad, plugrad_jax
    >>> mesh = jax.sharding.Mesh(jax.devices()[:1], ("model",))
    >>> net = plugrad.nn.Sequential(plugrad.nn.Linear(2, 4), plugrad.nn.Linear(4, 2))
    >>> rules = {r"0\\.weight": ("model", None), r"1\\.weight": (None, "model")}
    >>> _ = plugrad_jax.shard_parameters(net, mesh, rules)
    >>> [tuple(plugrad_jax.sharding_of(parameter).spec) for parameter in net.parameters()]
    [('model', None), (), (None, 'model'), ()]
    """
    found: Any = module
    if not hasattr(found, "named_parameters") or not hasattr(found, "named_buffers"):
        raise TypeError(
            f"shard_parameters(): expected a plugrad.nn.Module, got {type(module).__name__}"
        )
    compiled = _compiled(rules)
    chosen = [
        (tensor, _chosen(name, tensor, mesh, compiled))
        for name, tensor in [*found.named_parameters(), *found.named_buffers()]
    ]
    with plugrad.no_grad():
        for tensor, sharding in chosen:
            grad = tensor.grad
            tensor.data = shard(tensor.detach(), sharding)
            if grad is not None:
                tensor.grad = shard(grad.detach(), sharding)
    return module


def _compiled(rules: Rules) -> list[tuple[re.Pattern[str], Any]]:
    pairs = list(rules.items() if isinstance(rules, Mapping) else rules)
    found: list[tuple[re.Pattern[str], Any]] = []
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[0], str):
            raise TypeError(
                f"shard_parameters(): a rule is a regular expression and a spec, got {pair!r}"
            )
        try:
            found.append((re.compile(pair[0]), pair[1]))
        except re.error as error:
            raise ValueError(
                f"shard_parameters(): {pair[0]!r} is not a regular expression: {error}"
            ) from None
    return found


def _chosen(
    name: str, tensor: Any, mesh: Any, rules: list[tuple[re.Pattern[str], Any]]
) -> NamedSharding:
    spec: Any = EVERYWHERE
    for pattern, wanted in rules:
        if pattern.search(name):
            spec = wanted
            break
    return named_sharding(mesh, spec, tensor.shape, "shard_parameters()", repr(name))
