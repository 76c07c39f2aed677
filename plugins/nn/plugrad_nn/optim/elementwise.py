"""ElementwiseOptimizer: the base of optimizers that update each parameter separately.

A subclass writes the rule once, for one parameter. The rule also works for a `TensorList`, which is
how `foreach=True` and `fused=True` compute it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, TypeAlias

import plugrad
from plugrad import Tensor
from plugrad.plugins.lists import runs_at_once
from plugrad_nn.nn.parameter import Parameter
from plugrad_nn.optim.optimizer import (
    Closure,
    Optimizer,
    ParamGroup,
    StateDict,
    _get_scalar_dtype,
    _to_scalar,
    _use_grad_for_differentiable,
)
from plugrad_nn.optim.tensor_list import TensorList

# A tensor, or a list of tensors that the same update is for.
Tensors: TypeAlias = Any
# A parameter's state: tensors by name.
State: TypeAlias = dict[str, Any]
# A number, or a tensor of no dimension.
Number: TypeAlias = Any
Pair: TypeAlias = tuple[Tensor, Tensor]
Rule: TypeAlias = Callable[[ParamGroup, Tensors, Tensors, State], None]

_PLAIN = (Tensor, Parameter)

# Options that are missing in state dicts of older versions of PyTorch, and their defaults.
_NEWER_OPTIONS: dict[str, Any] = {
    "amsgrad": False,
    "capturable": False,
    "centered": False,
    "decoupled_weight_decay": False,
    "differentiable": False,
    "foreach": None,
    "fused": None,
    "maximize": False,
    "momentum": 0,
    "nesterov": False,
}


class ElementwiseOptimizer(Optimizer):
    """Base class of optimizers that apply the same rule to every parameter.

    A subclass writes `_start` and `_rule`. This class handles the common options: `maximize`,
    `weight_decay`, complex parameters as pairs of real ones, `foreach`, `fused`, `capturable` and
    `differentiable`, closures, state that follows its parameter to a device.
    """

    capturable_numbers: ClassVar[tuple[str, ...]] = ("lr", "step")
    # The numbers in the state, as 0-dim tensors, on the host unless `capturable`.
    numbers: ClassVar[tuple[str, ...]] = ("step",)
    # Whether the rule treats real and imaginary parts as if they were two parameters.
    splits_complex: ClassVar[bool] = True

    def _start(self, group: ParamGroup, parameter: Tensor, grad: Tensor) -> State:
        """The state before the first step."""
        raise NotImplementedError

    def _rule(self, group: ParamGroup, p: Tensors, g: Tensors, s: State) -> None:
        """Writes the update of `p` for the gradient `g` to `p` and to `s`.

        In `s`, `step` is the number of this step. The rule may put new tensors into `s`. It must
        not write in place to tensors that an earlier operation's gradient needs.
        """
        raise NotImplementedError

    def _check_gradient(self, group: ParamGroup, parameter: Tensor, grad: Tensor) -> None:
        if grad.is_sparse:
            raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")

    def _check_pairs(self, group: ParamGroup, pairs: list[Pair]) -> None:
        for parameter, grad in pairs:
            self._check_gradient(group, parameter, grad)
            if group.get("fused") and not parameter.is_floating_point():
                raise RuntimeError(
                    "`fused=True` requires all the params to be floating point Tensors, but "
                    f"{parameter.dtype} and {parameter.device.type}"
                )

    # Steps

    @_use_grad_for_differentiable
    def step(self, closure: Closure | None = None) -> Any:
        """Updates the parameters once.

        Args:
            closure: evaluates the model again and returns the loss, which `step` returns.
        """
        loss = loss_of(closure)
        for group in self.param_groups:
            pairs = [(p, grad) for p in group["params"] if (grad := p.grad) is not None]
            if not pairs:
                continue
            self._check_pairs(group, pairs)
            recorded = group.get("differentiable", False)
            if not (group.get("foreach") or recorded) and self._step_at_once(group, pairs):
                continue
            if not (group.get("foreach") or group.get("fused")):
                # Not the options of all optimizers, if none is chosen.
                own = type(self)._apply is not ElementwiseOptimizer._apply
                rule = self._apply if own or _has_options(group) else self._rule
                for parameter, grad in pairs:
                    if recorded or (self.splits_complex and parameter.is_complex()):
                        self._update(group, parameter, grad)
                    else:
                        self._update_plainly(group, parameter, grad, rule)
            elif recorded:
                raise AssertionError("_foreach ops don't support autograd")
            else:
                self._update_lists(group, pairs)
        return loss

    def _step_at_once(self, group: ParamGroup, pairs: list[Pair]) -> bool:
        """Updates all parameters by one kernel, with the same result; false if there is none."""
        return False

    def _update_plainly(
        self, group: ParamGroup, parameter: Tensor, grad: Tensor, rule: Rule
    ) -> None:
        """`_update` for a real parameter, unrecorded."""
        state = self._state_of(group, parameter, grad)
        now = self._with_step(group, dict(self._advance(group, state)))
        rule(group, parameter, grad, now)
        for name, value in now.items():
            if name not in state:
                state[name] = value
            elif value is not state[name] and name != "step":
                state[name].copy_(value)

    def _update(self, group: ParamGroup, parameter: Tensor, grad: Tensor) -> None:
        state = self._state_of(group, parameter, grad)
        self._advance(group, state)
        differentiable = group.get("differentiable", False)
        # Earlier steps' records stay unchanged.
        given = {k: _copy(v) for k, v in state.items()} if differentiable else dict(state)
        if parameter.is_complex() and self.splits_complex:
            given = {k: _real(v) for k, v in given.items()}
            p, g = plugrad.view_as_real(parameter), plugrad.view_as_real(grad)
        else:
            p, g = parameter, grad
        now = self._with_step(group, dict(given))
        self._apply(group, p, g, now)
        for name, value in now.items():
            if name == "step":
                continue
            if differentiable:
                state[name] = _like(value, state.get(name))
            elif name not in given:
                state[name] = value
            elif value is not given[name]:
                given[name].copy_(value)

    def _update_lists(self, group: ParamGroup, pairs: list[Pair]) -> None:
        """Updates groups of similar parameters in one call each: those with the same dtype, device
        and step count.
        """
        alike: dict[Any, list[tuple[Tensor, Tensor, State]]] = {}
        for parameter, grad in pairs:
            state = self._state_of(group, parameter, grad)
            self._advance(group, state)
            counts = [value for name, value in state.items() if name in self.numbers]
            if group.get("capturable") or not all(isinstance(count, Tensor) for count in counts):
                # The counts' values are unknown here, so they cannot be compared.
                agree: Any = id(parameter)
            else:
                agree = tuple(count.item() for count in counts)
            key = parameter.dtype, grad.dtype, parameter.device, tuple(state), agree
            alike.setdefault(key, []).append((parameter, grad, state))
        for members in alike.values():
            self._update_list(group, members)

    def _update_list(self, group: ParamGroup, members: list[tuple[Tensor, Tensor, State]]) -> None:
        states = [state for _, _, state in members]
        split = members[0][0].is_complex() and self.splits_complex

        def listed(tensors: Iterable[Tensor]) -> TensorList:
            return TensorList(map(_real, tensors) if split else tensors)

        p = listed(parameter for parameter, _, _ in members)
        g = listed(grad for _, grad, _ in members)
        given: State = {}
        for name, value in states[0].items():
            if isinstance(value, Tensor):
                given[name] = listed(state[name] for state in states)
            else:
                given[name] = value
        now = self._with_step(group, dict(given))
        self._apply(group, p, g, now)
        for name, value in now.items():
            if name == "step":
                continue
            if name not in given:
                for state, tensor in zip(states, value.tensors, strict=True):
                    state[name] = tensor
            elif value is not given[name]:
                given[name].copy_(value)

    def _state_of(self, group: ParamGroup, parameter: Tensor, grad: Tensor) -> State:
        state = self.state[parameter]
        if not state:
            state.update(self._start(group, parameter, grad))
        device = parameter.device
        for value in state.values():
            if isinstance(value, Tensor) and value.device is not device:
                self._follow(state, device)
                break
        return state

    def _follow(self, state: State, device: Any) -> None:
        """Moves a parameter's state to its current device."""
        for name, value in state.items():
            if name not in self.numbers and isinstance(value, Tensor):
                state[name] = value.to(device)

    def _advance(self, group: ParamGroup, state: State) -> State:
        if "step" in state:
            # Updates a tensor in place, and a placeholder for the number during a capture.
            state["step"] += 1
        return state

    def _with_step(self, group: ParamGroup, state: State) -> State:
        if "step" in state:
            state["step"] = value_of(state["step"], group)
        return state

    def _apply(self, group: ParamGroup, p: Tensors, g: Tensors, s: State) -> None:
        """The rule, after the options of all optimizers are applied to the parameter and its
        gradient."""
        if group.get("maximize"):
            g = -g
        weight_decay = group.get("weight_decay", 0)
        if isinstance(weight_decay, Tensor) or weight_decay:
            if group.get("decoupled_weight_decay"):
                p.mul_(1 - _to_scalar(group["lr"]) * weight_decay)
            elif isinstance(weight_decay, Tensor):
                # The gradient of the option needs the parameter as it was.
                g = g.add(p.clone() * weight_decay)
            else:
                g = g.add(p, alpha=weight_decay)
        self._rule(group, p, g, s)

    # State

    def _count(self, group: ParamGroup, parameter: Tensor, value: float = 0.0) -> Tensor:
        """A number for a parameter's state.

        It is on the host, where reading it does not wait for a device; on the device if the whole
        step is to happen there.
        """
        there = group.get("capturable") or group.get("fused")
        return plugrad.tensor(
            value,
            dtype=_get_scalar_dtype(group.get("fused")),
            device=parameter.device if there else "cpu",
        )

    def __setstate__(self, state: StateDict) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name in _NEWER_OPTIONS.keys() & self.defaults:
                group.setdefault(name, _NEWER_OPTIONS[name])
            for parameter in group["params"]:
                own = self.state.get(parameter, {})
                for name in self.numbers:
                    # PyTorch before 1.12 counted steps in Python's numbers.
                    if name in own and not isinstance(own[name], Tensor):
                        own[name] = self._count(group, parameter, float(own[name]))


def _has_options(group: ParamGroup) -> bool:
    """Whether `_apply` would do something before the rule."""
    weight_decay = group.get("weight_decay", 0)
    return bool(group.get("maximize") or isinstance(weight_decay, Tensor) or weight_decay)


def at_once(operator: str, *lists: Sequence[Tensor]) -> bool:
    """Whether a backend has a kernel for a whole step and accepts these tensors, which must not
    override methods."""
    plain = all(type(each) in _PLAIN for tensors in lists for each in tensors)
    return plain and runs_at_once(operator, lists)


def _real(value: Any) -> Any:
    """A complex tensor as a real one with one more dimension; anything else unchanged."""
    if isinstance(value, Tensor) and value.is_complex():
        return plugrad.view_as_real(value)
    return value


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def _like(value: Tensor, former: Tensor | None) -> Tensor:
    """A part of the state after a step, complex again if it was."""
    if former is not None and former.is_complex() and not value.is_complex():
        return plugrad.view_as_complex(value)
    return value


def loss_of(closure: Callable[[], Any] | None) -> Any:
    """The loss that a closure gives, with gradients recorded; None without a closure."""
    if closure is None:
        return None
    with plugrad.enable_grad():
        return closure()


def value_of(number: Any, group: ParamGroup) -> Number:
    """A number in a state: its value, or a tensor if it must stay on the device."""
    if isinstance(number, TensorList):
        number = number.tensors[0]
    if not isinstance(number, Tensor) or group.get("capturable"):
        return number
    return number.item()


def at_hand(number: Number, group: ParamGroup) -> Number:
    """A rate as a Python number, if that does not wait for a device or lose a gradient. A tensor if
    the step is captured, because its value differs between runs."""
    if not isinstance(number, Tensor) or group.get("capturable") or number.requires_grad:
        return number
    return number.item() if number.device.type == "cpu" else number


def step_along(p: Tensors, direction: Tensors, rate: Number, group: ParamGroup) -> None:
    """p -= rate * direction"""
    if isinstance(rate, Tensor) and isinstance(rate := at_hand(rate, group), Tensor):
        p.sub_(direction * rate)
    else:
        p.add_(direction, alpha=-rate)


def step_along_ratio(
    p: Tensors, above: Tensors, below: Tensors, rate: Number, group: ParamGroup
) -> None:
    """p -= rate * above / below"""
    if isinstance(rate, Tensor) and isinstance(rate := at_hand(rate, group), Tensor):
        p.sub_(above * rate / below)
    else:
        p.addcdiv_(above, below, value=-rate)
