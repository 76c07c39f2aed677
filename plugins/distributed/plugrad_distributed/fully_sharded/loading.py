"""State dicts of sharded modules: they hold DTensors; loading whole tensors cuts them."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.fully_sharded.group import ParameterGroup
from plugrad_distributed.tensor.dtensor import array_of

__all__ = ["watch_state"]


def watch_state(group: ParameterGroup) -> None:
    """Make the modules of a group save sharded parameters, and load whole ones as well."""
    watched: list[Any] = []
    for parameter in group.parameters:
        for place in parameter.places:
            if not any(place.module is one for one in watched):
                watched.append(place.module)
    for module in watched:
        module.register_state_dict_pre_hook(lambda *args: group.hide())
        module.register_load_state_dict_pre_hook(
            lambda module, state, prefix, *args: _cut(group, module, state, prefix)
        )


def _cut(group: ParameterGroup, module: Any, state: dict[str, Any], prefix: str) -> None:
    """Replace whole tensors for a module by this rank's parts."""
    group.hide()
    for parameter in group.parameters:
        for place in parameter.places:
            key = prefix + place.name
            value = state.get(key)
            if place.module is not module or not isinstance(value, Tensor):
                continue
            if array_of(value) is None and tuple(value.shape) == parameter.spec.shape:
                with plugrad.no_grad():
                    state[key] = parameter.part(value.detach())
