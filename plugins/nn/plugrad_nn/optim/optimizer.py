"""Optimizer: parameter groups, state and the step protocol that SGD, Adam and AdamW share."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, ClassVar

import plugrad
from plugrad import Tensor
from plugrad.autograd.graph import RemovableHandle
from plugrad.plugins.arguments import explains
from plugrad_nn.nn.hooks import Hook, add_hook

ParamGroup = dict[str, Any]
Closure = Callable[[], Any]


class Optimizer:
    """Base class of optimizers.

    Args:
        params: tensors, (name, tensor) pairs, or dicts with "params" and options of their own.
        defaults: the options of groups that do not give them.

    A subclass writes `_update(group, pairs)`, which is called under `no_grad` with the parameters
    of one group that have a gradient, and those gradients. `state[parameter]` is a dict of its own.

    Attributes:
        capturable_numbers: names of options, and of counts in a parameter's state, that `_update`
            takes as 0-dim tensors, too. Where a step is captured as one program, these numbers are
            inputs of it; a program has every other number as it was, and is made anew for another.
    """

    capturable_numbers: ClassVar[tuple[str, ...]] = ()

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got plugrad.{type(params).__name__}"
            )
        self.defaults = defaults
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[ParamGroup] = []
        self._step_pre_hooks: OrderedDict[int, Hook] = OrderedDict()
        self._step_post_hooks: OrderedDict[int, Hook] = OrderedDict()
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": params if isinstance(params, set) else groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: ParamGroup) -> None:
        """Adds parameters with options of their own, say a layer that is thawed during training."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        group = dict(param_group)
        params = group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead."
            )
        group["params"] = list(params)
        if group["params"] and isinstance(group["params"][0], tuple):
            group["param_names"] = [name for name, _ in group["params"]]
            group["params"] = [parameter for _, parameter in group["params"]]
        known = {id(p) for p in chain.from_iterable(g["params"] for g in self.param_groups)}
        for parameter in group["params"]:
            if not isinstance(parameter, Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is "
                    f"{type(parameter).__name__}"
                )
            if not (parameter.is_leaf or getattr(parameter, "retains_grad", False)):
                raise ValueError("can't optimize a non-leaf Tensor")
            if id(parameter) in known:
                raise ValueError("some parameters appear in more than one parameter group")
        for name, default in self.defaults.items():
            group.setdefault(name, default)
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients of all parameters, or fills them with zeros."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                if set_to_none:
                    parameter.grad = None
                else:
                    parameter.grad = parameter.grad.detach()
                    parameter.grad.zero_()

    def step(self, closure: Closure | None = None) -> Any:
        """Updates the parameters once.

        Args:
            closure: evaluates the model again and returns the loss, which `step` returns.
        """
        for hook in (*_global_pre_hooks.values(), *self._step_pre_hooks.values()):
            hook(self, (closure,), {})
        loss = None
        if closure is not None:
            with plugrad.enable_grad():
                loss = closure()
        with plugrad.no_grad():
            for group in self.param_groups:
                pairs = [(p, grad) for p in group["params"] if (grad := p.grad) is not None]
                if pairs:
                    self._update(group, pairs)
        for hook in self._step_post_hooks.values():
            hook(self, (closure,), {})
        return loss

    def _update(self, group: ParamGroup, pairs: list[tuple[Tensor, Tensor]]) -> None:
        raise NotImplementedError

    def _follow(self, parameter: Tensor) -> dict[str, Any]:
        """The parameter's state, moved to where the parameter is now."""
        state = self.state[parameter]
        for key, value in state.items():
            if isinstance(value, Tensor):
                state[key] = value.to(parameter.device)
        return state

    def register_step_pre_hook(self, hook: Hook) -> RemovableHandle:
        """`hook(optimizer, args, kwargs)` runs before every step."""
        return add_hook(self._step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Hook) -> RemovableHandle:
        """`hook(optimizer, args, kwargs)` runs after every step."""
        return add_hook(self._step_post_hooks, hook)

    # State

    def state_dict(self) -> dict[str, Any]:
        """{"state": ..., "param_groups": ...}, with the parameters numbered in order."""
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for parameter in group["params"]:
                numbers.setdefault(id(parameter), len(numbers))
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [numbers[id(parameter)] for parameter in group["params"]]
            groups.append(packed)
        state = {numbers[id(parameter)]: values for parameter, values in self.state.items()}
        return {"state": state, "param_groups": groups}

    @explains
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over options and state; parameters are matched by their order.

        Raises:
            ValueError: another number of groups, or of parameters in a group.
        """
        saved_groups = deepcopy(state_dict["param_groups"])
        if len(saved_groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        by_number: dict[int, Tensor] = {}
        for saved, group in zip(saved_groups, self.param_groups, strict=True):
            if len(saved["params"]) != len(group["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of "
                    "optimizer's group"
                )
            by_number.update(zip(saved["params"], group["params"], strict=True))
        state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        for number, values in state_dict["state"].items():
            parameter = by_number[number]
            state[parameter] = {key: self._fit(value, parameter) for key, value in values.items()}
        self.state = state
        for saved, group in zip(saved_groups, self.param_groups, strict=True):
            group.update({key: value for key, value in saved.items() if key != "params"})

    def _fit(self, value: Any, parameter: Tensor) -> Any:
        """A copy of a state value, with the dtype and device of the parameter it belongs to."""
        if not isinstance(value, Tensor):
            return deepcopy(value)
        if value.ndim == 0 and parameter.ndim > 0:
            # PyTorch keeps step counts as tensors.
            return value.item()
        return value.detach().clone().to(parameter.device, parameter.dtype)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])


_global_pre_hooks: OrderedDict[int, Hook] = OrderedDict()


def register_optimizer_step_pre_hook(hook: Hook) -> RemovableHandle:
    """`hook(optimizer, args, kwargs)` runs before every step of every optimizer."""
    return add_hook(_global_pre_hooks, hook)


def as_number(name: str, value: float | Tensor) -> float:
    """An option that may come as a tensor of one element.

    Raises:
        ValueError: the tensor has more.
        TypeError: its element is complex.
    """
    if not isinstance(value, Tensor):
        return value
    if value.numel() != 1:
        raise ValueError(f"Tensor {name} must be 1-element")
    if value.is_complex():
        raise TypeError(f"Tensor {name} must be real, not {value.dtype}")
    return float(value)


def check_switches(*, foreach: bool | None, differentiable: bool, fused: bool | None) -> None:
    """What PyTorch's switches may be: those for speed change nothing here.

    Raises:
        RuntimeError: switches that exclude each other.
        NotImplementedError: a step that autograd records.
    """
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    if differentiable:
        raise NotImplementedError(
            "differentiable=True is not supported: write the update with operators that are not "
            "in-place instead"
        )


def require_not_negative(**options: float) -> None:
    """Raises PyTorch's ValueError for the first option below zero."""
    words = {"lr": "learning rate", "eps": "epsilon value"}
    for name, value in options.items():
        if value < 0.0:
            raise ValueError(f"Invalid {words.get(name, f'{name} value')}: {value}")
