"""Optimizer: parameter groups, state, hooks and state dicts, common to all optimizers."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, ClassVar, TypeAlias
from weakref import WeakKeyDictionary

import plugrad
from plugrad import Tensor
from plugrad.autograd.graph import RemovableHandle
from plugrad.autograd.profiler import record_function
from plugrad.plugins.arguments import explains
from plugrad_nn.nn.hooks import Hook, add_hook

__all__ = [
    "Optimizer",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
]

ParamGroup: TypeAlias = dict[str, Any]
StateDict: TypeAlias = dict[str, Any]
ParamsT: TypeAlias = (
    Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]] | Iterable[Any]
)
Closure: TypeAlias = Callable[[], Any]
Step: TypeAlias = Callable[..., Any]


class _RequiredParameter:
    """The value of an option in `defaults` that every group must set."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()

_global_optimizer_pre_hooks: OrderedDict[int, Hook] = OrderedDict()
_global_optimizer_post_hooks: OrderedDict[int, Hook] = OrderedDict()
# Optimizers that have schedules, and whether a step was taken since. This is stored outside of
# them, because a captured step may change only numbers of an optimizer.
stepped: WeakKeyDictionary[Optimizer, bool] = WeakKeyDictionary()
_HOOKS = (
    *("step_pre", "step_post", "state_dict_pre", "state_dict_post"),
    *("load_state_dict_pre", "load_state_dict_post"),
)


def register_optimizer_step_pre_hook(hook: Hook) -> RemovableHandle:
    """`hook(optimizer, args, kwargs)` runs before every step of every optimizer."""
    return add_hook(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Hook) -> RemovableHandle:
    """`hook(optimizer, args, kwargs)` runs after every step of every optimizer."""
    return add_hook(_global_optimizer_post_hooks, hook)


def _use_grad_for_differentiable(function: Step) -> Step:
    """Decorates `step`: autograd records it only with the option `differentiable`."""

    @functools.wraps(function)
    def step(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        with plugrad.set_grad_enabled(bool(self.defaults.get("differentiable"))):
            return function(self, *args, **kwargs)

    return step


def _hooks_of(first: OrderedDict[int, Hook], second: OrderedDict[int, Hook]) -> Iterable[Hook]:
    """The hooks of two dicts, in their order; most often there is none."""
    return chain(first.values(), second.values()) if first or second else ()


class Optimizer:
    """Base class of optimizers.

    A subclass calls `super().__init__(params, defaults)` and defines `step(closure=None)`, which
    reads `param_groups` and keeps the state of a parameter in `state[parameter]`, a dict. Every
    class's `step` runs its hooks, and is one range of the profiler.

    Args:
        params: tensors, (name, tensor) pairs, or dicts with "params" and their own options.
        defaults: the options of groups that do not give them.

    Raises:
        TypeError: `params` is a tensor, or contains anything but tensors.
        ValueError: there are no parameters, one is not a leaf, or one is in two groups.

    Attributes:
        capturable_numbers: names of options, and of counts in a parameter's state, that `step`
            accepts as 0-dim tensors, too. If a step is captured as one program, these numbers are
            its inputs; all other numbers are constants, and changing them needs a new program.

    >>> import plugrad
    >>> class Signs(plugrad.optim.Optimizer):
    ...     def __init__(self, params, lr=0.1):
    ...         super().__init__(params, {"lr": lr})
    ...
    ...     @plugrad.no_grad()
    ...     def step(self, closure=None):
    ...         for group in self.param_groups:
    ...             for p in group["params"]:
    ...                 p.sub_(p.grad.sign(), alpha=group["lr"])
    >>> p = plugrad.nn.Parameter(plugrad.tensor([1.0, -1.0]))
    >>> (p * p).sum().backward()
    >>> Signs([p]).step()
    >>> p.tolist()
    [0.8999999761581421, -0.8999999761581421]
    """

    capturable_numbers: ClassVar[tuple[str, ...]] = ()

    _optimizer_step_pre_hooks: OrderedDict[int, Hook]
    _optimizer_step_post_hooks: OrderedDict[int, Hook]
    _optimizer_state_dict_pre_hooks: OrderedDict[int, Hook]
    _optimizer_state_dict_post_hooks: OrderedDict[int, Hook]
    _optimizer_load_state_dict_pre_hooks: OrderedDict[int, Hook]
    _optimizer_load_state_dict_post_hooks: OrderedDict[int, Hook]

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._make_hooks()
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got plugrad.{type(params).__name__}"
            )
        self.state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[ParamGroup] = []
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": params if isinstance(params, set) else groups}]
        for group in groups:
            self.add_param_group(group)

    def _make_hooks(self) -> None:
        for kind in _HOOKS:
            self.__dict__.setdefault(f"_optimizer_{kind}_hooks", OrderedDict())

    # Pickles and copies

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_hooks()
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])

    # Parameters

    def add_param_group(self, param_group: ParamGroup) -> None:
        """Adds parameters with their own options, for example a layer unfrozen during training.

        >>> import plugrad
        >>> body, head = plugrad.nn.Linear(2, 2), plugrad.nn.Linear(2, 1)
        >>> optimizer = plugrad.optim.SGD(head.parameters(), lr=0.1)
        >>> optimizer.add_param_group({"params": body.parameters(), "lr": 0.01})
        >>> [group["lr"] for group in optimizer.param_groups]
        [0.1, 0.01]
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead."
            )
        params = list(params)
        names = [item[0] for item in params if isinstance(item, tuple)]
        params = [item[1] if isinstance(item, tuple) else item for item in params]
        if names and len(names) != len(params):
            raise ValueError(
                "all optimizer params should be with/without names. Some param names are missing"
            )
        param_group["params"] = params
        if names:
            param_group["param_names"] = names
        for parameter in params:
            self._check_parameter(parameter)
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization parameter "
                    f"{name}"
                )
            param_group.setdefault(name, default)
        self._check_group(param_group)
        self.param_groups.append(param_group)

    def _check_parameter(self, parameter: Any) -> None:
        if not isinstance(parameter, Tensor):
            raise TypeError(
                "optimizer can only optimize Tensors, but one of the params is "
                f"{type(parameter).__name__}"
            )
        if not self.defaults.get("differentiable") and not (
            parameter.is_leaf or getattr(parameter, "retains_grad", False)
        ):
            raise ValueError("can't optimize a non-leaf Tensor")

    def _check_group(self, added: ParamGroup) -> None:
        new = {id(parameter) for parameter in added["params"]}
        if len(new) != len(added["params"]):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; "
                "in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=4,
            )
        for group in self.param_groups:
            if ("param_names" in added) != ("param_names" in group):
                kind = "with" if "param_names" in added else "without"
                raise ValueError(
                    "all optimizer param groups should be with/without names. "
                    f"cannot add param group {kind} names to the optimizer"
                )
        known = {id(p) for p in chain.from_iterable(g["params"] for g in self.param_groups)}
        if new & known:
            raise ValueError("some parameters appear in more than one parameter group")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients of all parameters, or fills them with zeros.

        >>> import plugrad
        >>> weight = plugrad.nn.Parameter(plugrad.ones(2))
        >>> optimizer = plugrad.optim.SGD([weight], lr=0.1)
        >>> weight.sum().backward()
        >>> optimizer.zero_grad()
        >>> weight.grad is None
        True
        """
        with record_function(self._zero_grad_profile_name):
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is None:
                        continue
                    if set_to_none:
                        parameter.grad = None
                    else:
                        if parameter.grad.grad_fn is not None:
                            parameter.grad = parameter.grad.detach()
                        else:
                            parameter.grad.requires_grad_(False)
                        parameter.grad.zero_()

    # Steps

    def step(self, closure: Closure | None = None) -> Any:
        """Updates the parameters once.

        Args:
            closure: evaluates the model again and returns the loss, which `step` returns.

        >>> import plugrad
        >>> weight = plugrad.nn.Parameter(plugrad.ones(2))
        >>> optimizer = plugrad.optim.SGD([weight], lr=0.5)
        >>> (weight * weight).sum().backward()
        >>> optimizer.step()
        >>> weight.tolist()
        [0.0, 0.0]
        """
        raise NotImplementedError

    def _optimizer_step_code(self) -> None:
        """Runs after each step: a place for programs that watch steps to hook into."""

    @staticmethod
    def profile_hook_step(func: Step) -> Step:
        """`func`, a `step`, with its hooks and as a range of the profiler.

        >>> import plugrad
        >>> from plugrad.profiler import profile
        >>> weight = plugrad.nn.Parameter(plugrad.ones(1))
        >>> optimizer = plugrad.optim.SGD([weight], lr=0.5)
        >>> weight.sum().backward()
        >>> with profile() as prof:
        ...     optimizer.step()
        >>> [event.name for event in prof.events() if event.name.startswith("Optimizer")]
        ['Optimizer.step#SGD.step']
        """

        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            self: Optimizer = args[0]
            with record_function(self._step_profile_name):
                for hook in _hooks_of(_global_optimizer_pre_hooks, self._optimizer_step_pre_hooks):
                    result = hook(self, args, kwargs)
                    if result is None:
                        continue
                    if not (isinstance(result, tuple) and len(result) == 2):
                        raise RuntimeError(
                            f"{func} must return None or a tuple of (new_args, new_kwargs), but "
                            f"got {result}."
                        )
                    args, kwargs = result
                out = func(*args, **kwargs)
                if stepped and self in stepped:
                    stepped[self] = True
                self._optimizer_step_code()
                for hook in _hooks_of(
                    self._optimizer_step_post_hooks, _global_optimizer_post_hooks
                ):
                    hook(self, args, kwargs)
                return out

        return wrapper

    def _patch_step_function(self) -> None:
        """Puts hooks around the `step` of the object's class, once."""
        cls: Any = type(self)
        self._zero_grad_profile_name = f"Optimizer.zero_grad#{cls.__name__}.zero_grad"
        self._step_profile_name = f"Optimizer.step#{cls.__name__}.step"
        if not getattr(cls.step, "hooked", False):
            cls.step = self.profile_hook_step(cls.step)
            cls.step.hooked = True

    # Hooks

    def register_step_pre_hook(self, hook: Hook) -> RemovableHandle:
        """`hook(optimizer, args, kwargs)` runs before every step, and may return others.

        >>> import plugrad
        >>> weight = plugrad.nn.Parameter(plugrad.ones(1))
        >>> optimizer = plugrad.optim.SGD([weight], lr=0.5)
        >>> def clip(optimizer, args, kwargs):
        ...     plugrad.nn.utils.clip_grad_norm_([weight], 1.0)
        >>> handle = optimizer.register_step_pre_hook(clip)
        >>> (weight * 100).sum().backward()
        >>> optimizer.step()
        >>> weight.tolist()
        [0.5]
        """
        return add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Hook) -> RemovableHandle:
        """`hook(optimizer, args, kwargs)` runs after every step.

        >>> import plugrad
        >>> weight = plugrad.nn.Parameter(plugrad.ones(1))
        >>> optimizer = plugrad.optim.SGD([weight], lr=0.5)
        >>> handle = optimizer.register_step_post_hook(lambda *_: print(weight.tolist()))
        >>> weight.sum().backward()
        >>> optimizer.step()
        [0.5]
        """
        return add_hook(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """`hook(optimizer)` runs before `state_dict`.

        >>> import plugrad
        >>> optimizer = plugrad.optim.SGD([plugrad.nn.Parameter(plugrad.ones(1))], lr=0.5)
        >>> handle = optimizer.register_state_dict_pre_hook(lambda optimizer: print("saving"))
        >>> sorted(optimizer.state_dict())
        saving
        ['param_groups', 'state']
        """
        return add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """`hook(optimizer, state_dict)` may change the state dict, or return another.

        >>> import plugrad
        >>> optimizer = plugrad.optim.SGD([plugrad.nn.Parameter(plugrad.ones(1))], lr=0.5)
        >>> handle = optimizer.register_state_dict_post_hook(lambda _, state: {**state, "epoch": 3})
        >>> optimizer.state_dict()["epoch"]
        3
        """
        return add_hook(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Hook, prepend: bool = False
    ) -> RemovableHandle:
        """`hook(optimizer, state_dict)` gets a shallow copy; it may change it or return another.

        >>> import plugrad
        >>> optimizer = plugrad.optim.SGD([plugrad.nn.Parameter(plugrad.ones(1))], lr=0.5)
        >>> def slower(optimizer, state):
        ...     state["param_groups"][0]["lr"] = 0.1
        >>> handle = optimizer.register_load_state_dict_pre_hook(slower)
        >>> optimizer.load_state_dict(optimizer.state_dict())
        >>> optimizer.param_groups[0]["lr"]
        0.1
        """
        return add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Hook, prepend: bool = False
    ) -> RemovableHandle:
        """`hook(optimizer)` runs after `load_state_dict`.

        >>> import plugrad
        >>> optimizer = plugrad.optim.SGD([plugrad.nn.Parameter(plugrad.ones(1))], lr=0.5)
        >>> handle = optimizer.register_load_state_dict_post_hook(lambda _: print("loaded"))
        >>> optimizer.load_state_dict(optimizer.state_dict())
        loaded
        """
        return add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # State

    def state_dict(self) -> StateDict:
        """{"state": ..., "param_groups": ...}, with the parameters numbered in order.

        >>> import plugrad
        >>> weight = plugrad.nn.Parameter(plugrad.ones(1))
        >>> optimizer = plugrad.optim.SGD([weight], lr=0.5, momentum=0.9)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> state = optimizer.state_dict()
        >>> state["state"], state["param_groups"][0]["params"]
        ({0: {'momentum_buffer': tensor([1.])}}, [0])
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        start = 0
        for group in self.param_groups:
            for number, parameter in enumerate(group["params"], start):
                numbers.setdefault(id(parameter), number)
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [numbers[id(parameter)] for parameter in group["params"]]
            start += len(packed["params"])
            groups.append(packed)
        state = {
            numbers[id(key)] if isinstance(key, Tensor) else key: values
            for key, values in self.state.items()
        }
        state_dict: StateDict = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            result = hook(self, state_dict)
            if result is not None:
                state_dict = result
        return state_dict

    @explains
    def load_state_dict(self, state_dict: StateDict) -> None:
        """Loads options and state; parameters are matched by their order.

        The state is copied, to the dtype and device of its parameter. Create schedules before,
        because they set learning rates when they are created.

        Raises:
            TypeError: it is not a dict.
            ValueError: another number of groups, or of parameters in a group.

        >>> import plugrad
        >>> weight = plugrad.nn.Parameter(plugrad.ones(1))
        >>> first = plugrad.optim.SGD([weight], lr=0.5)
        >>> second = plugrad.optim.SGD([weight], lr=0.1)
        >>> second.load_state_dict(first.state_dict())
        >>> second.param_groups[0]["lr"]
        0.5
        """
        if not isinstance(state_dict, dict):
            raise TypeError(
                f"{type(self).__name__}.load_state_dict(): argument 'state_dict' (position 1) must "
                f"be dict, not {type(state_dict).__name__}"
            )
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            result = hook(self, state_dict)
            if result is not None:
                state_dict = result
        saved_groups = deepcopy(state_dict["param_groups"])
        if len(saved_groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        by_number: dict[Any, tuple[Tensor, ParamGroup]] = {}
        for saved, group in zip(saved_groups, self.param_groups, strict=True):
            if len(saved["params"]) != len(group["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of "
                    "optimizer's group"
                )
            for number, parameter in zip(saved["params"], group["params"], strict=True):
                by_number[number] = parameter, saved
        state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        for number, values in state_dict["state"].items():
            if number in by_number:
                parameter, saved = by_number[number]
                state[parameter] = _fit(values, parameter, saved)
            else:
                state[number] = values
        for saved, group in zip(saved_groups, self.param_groups, strict=True):
            saved["params"] = group["params"]
            if "param_names" in group:
                saved.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": saved_groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)


def _fit(value: Any, parameter: Tensor, group: ParamGroup, key: object = None) -> Any:
    """A copy of a part of a parameter's state, with the parameter's dtype and device.

    A count of steps keeps its dtype: 16 bits could not count far. It is on the host, unless the
    group's options require that the whole step runs on the device.
    """
    if isinstance(value, Tensor):
        copy = value.detach().clone()
        if key == "step":
            if group.get("capturable") or group.get("fused"):
                return copy.to(parameter.device, plugrad.float32)
            return copy
        if parameter.is_floating_point():
            return copy.to(parameter.device, parameter.dtype)
        return copy.to(parameter.device)
    if isinstance(value, dict):
        return {name: _fit(item, parameter, group, name) for name, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return type(value)(_fit(item, parameter, group) for item in value)
    return deepcopy(value)


# Names that third-party optimizers import from `torch.optim.optimizer`.


def _get_value(x: Any) -> Any:
    """The number in a 0-dim tensor; anything else unchanged."""
    return x.item() if isinstance(x, Tensor) else x


def _get_scalar_dtype(is_fused: bool | None = None) -> Any:
    """The dtype of step counts."""
    if not is_fused and plugrad.get_default_dtype() == plugrad.float64:
        return plugrad.float64
    return plugrad.float32


def _to_scalar(x: Any) -> Any:
    """A tensor of one element without its dimensions; anything else unchanged."""
    return x.squeeze() if isinstance(x, Tensor) and x.ndim else x


def _view_as_real(params: list[Any], *state_and_grads: list[Any]) -> None:
    """Replaces complex parameters, and their counterparts in the other lists, by real views."""
    for number, parameter in enumerate(params):
        if plugrad.is_complex(parameter):
            for tensors in (params, *state_and_grads):
                tensors[number] = plugrad.view_as_real(tensors[number])


def _default_to_fused_or_foreach(
    params: list[Any], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """(fused, foreach) where the user chose neither: one tensor after the other."""
    return False, False
