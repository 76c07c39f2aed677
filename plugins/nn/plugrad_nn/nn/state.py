"""state_dict and load_state_dict: the part of Module that reads and writes its state."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import plugrad
from plugrad import Tensor
from plugrad.autograd.graph import RemovableHandle
from plugrad_nn.nn.hooks import Hook, add_hook
from plugrad_nn.nn.parameter import Parameter, is_lazy

EXTRA_STATE = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """The missing and unexpected keys of a `load_state_dict` call."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"_IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )


class StateDict(OrderedDict[str, Any]):
    """Names and tensors of a module's state; `_metadata` holds each module's layout version."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._metadata: OrderedDict[str, dict[str, Any]] = OrderedDict()


class _Loading:
    """One `load_state_dict` call: the state dict it reads and what went wrong so far."""

    def __init__(self, state_dict: dict[str, Any], assign: bool) -> None:
        self.state_dict = state_dict
        self.metadata: Mapping[str, Any] = getattr(state_dict, "_metadata", {})
        self.assign = assign
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.errors: list[str] = []


class ModuleState:
    """State of a module by name. Fields are set up by `Module.__init__`."""

    _version: ClassVar[int]
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Any]
    _state_hooks: dict[str, OrderedDict[int, Hook]]

    def get_extra_state(self) -> Any:
        """Override together with `set_extra_state` to keep more than tensors in the state dict.

        >>> import plugrad
        >>> class Counting(plugrad.nn.Module):
        ...     calls = 0
        ...     def get_extra_state(self):
        ...         return {"calls": self.calls}
        ...     def set_extra_state(self, state):
        ...         self.calls = state["calls"]
        >>> first, second = Counting(), Counting()
        >>> first.calls = 3
        >>> _ = second.load_state_dict(first.state_dict())
        >>> second.calls
        3
        """
        raise NotImplementedError(f"{type(self).__name__} has no extra state")

    def set_extra_state(self, state: Any) -> None:
        """Receives the result of `get_extra_state`."""
        raise NotImplementedError(f"{type(self).__name__} has no extra state")

    def _has_extra_state(self) -> bool:
        return type(self).get_extra_state is not ModuleState.get_extra_state

    def _persistent_members(self) -> dict[str, Tensor]:
        """The parameters and persistent buffers that are not None, by name."""
        members: dict[str, Tensor | None] = dict(self._parameters)
        members |= {
            name: buffer
            for name, buffer in self._buffers.items()
            if name not in self._non_persistent_buffers_set
        }
        return {name: member for name, member in members.items() if member is not None}

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        """Writes this module's own members, not its children's."""
        for name, member in self._persistent_members().items():
            destination[prefix + name] = member if keep_vars else member.detach()
        if self._has_extra_state():
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """All parameters and persistent buffers by dotted name, as references (not copies).

        By position, arguments are deprecated.

        Args:
            destination: the mapping to write into; a new one by default.
            prefix: put before every name.
            keep_vars: give the parameters themselves instead of detached tensors.

        >>> import plugrad
        >>> model = plugrad.nn.Sequential(plugrad.nn.Linear(2, 3), plugrad.nn.InstanceNorm1d(3))
        >>> list(model.state_dict())
        ['0.weight', '0.bias']
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead.",
                FutureWarning,
                stacklevel=2,
            )
            given = [destination, prefix, keep_vars]
            given[: len(args)] = args
            destination, prefix, keep_vars = given
        result: Any = StateDict() if destination is None else destination
        version = {"version": self._version}
        if hasattr(result, "_metadata"):
            result._metadata[prefix[:-1]] = version
        for hook in self._hooks("state_dict_pre").values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(result, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=result, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for hook in self._hooks("state_dict").values():
            hook(self, result, prefix, version)
        for hook in self._hooks("state_dict_other").values():
            other = hook(self, result, prefix, version)
            result = result if other is None else other
        return result

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copies a state dict into the parameters and buffers.

        Args:
            state_dict: as `state_dict()` gave it.
            strict: raise when a name is missing or unknown.
            assign: take the given tensors themselves instead of copying their values.

        Raises:
            RuntimeError: names do not match (`strict`) or shapes differ (always); lists them all.

        >>> import plugrad
        >>> source, target = plugrad.nn.Linear(2, 3), plugrad.nn.Linear(2, 3)
        >>> target.load_state_dict(source.state_dict())
        <All keys matched successfully>
        >>> target.load_state_dict({"weight": source.weight}, strict=False)
        _IncompatibleKeys(missing_keys=['bias'], unexpected_keys=[])
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        copied = StateDict(state_dict)
        copied._metadata = OrderedDict(getattr(state_dict, "_metadata", {}))
        loading = _Loading(copied, assign)
        self._load_tree(loading, "")

        result = IncompatibleKeys(loading.missing, loading.unexpected)
        for hook in self._hooks("load_state_dict_post").values():
            if hook(self, result) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected "
                    "to return new values, if incompatible_keys need to be modified, it should be "
                    "done inplace."
                )
        errors = loading.errors
        if strict:
            errors = [
                *_key_error("Missing", loading.missing),
                *_key_error("Unexpected", loading.unexpected),
                *errors,
            ]
        if errors:
            listed = "\n\t".join(errors)
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listed}"
            )
        return result

    def _load_tree(self, loading: _Loading, prefix: str) -> None:
        metadata = dict(
            loading.metadata.get(prefix[:-1], {}), assign_to_params_buffers=loading.assign
        )
        self._load_from_state_dict(
            loading.state_dict,
            prefix,
            metadata,
            True,  # mismatches are always listed; `strict` decides whether they are errors
            loading.missing,
            loading.unexpected,
            loading.errors,
        )
        for name, module in self._modules.items():
            if module is not None:
                module._load_tree(loading, f"{prefix}{name}.")

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Loads this module's own members; modules that changed their layout override it."""
        for hook in self._hooks("load_state_dict_pre").values():
            hook(
                self,
                state_dict,
                prefix,
                local_metadata,
                strict,
                missing_keys,
                unexpected_keys,
                error_msgs,
            )
        assign = bool(local_metadata.get("assign_to_params_buffers", False))
        members = self._persistent_members()
        for name, member in members.items():
            key = prefix + name
            if key in state_dict:
                error = self._load_member(name, member, state_dict[key], key, assign)
                error_msgs.extend(error)
            elif strict:
                missing_keys.append(key)
        if self._has_extra_state():
            if prefix + EXTRA_STATE in state_dict:
                self.set_extra_state(state_dict[prefix + EXTRA_STATE])
            elif strict:
                missing_keys.append(prefix + EXTRA_STATE)
        if strict:
            known = {*members, *self._modules}
            if self._has_extra_state():
                known.add(EXTRA_STATE)
            for key in state_dict:
                if not key.startswith(prefix) or key == prefix:
                    continue
                head, dot, _ = key[len(prefix) :].partition(".")
                # A name below a child is that child's to judge; below a member it is wrong here.
                if head not in known or (dot and head in members):
                    unexpected_keys.append(key)

    def _load_member(
        self, name: str, member: Tensor, value: Any, key: str, assign: bool
    ) -> list[str]:
        if not isinstance(value, Tensor):
            return [
                f'While copying the parameter named "{key}", expected plugrad.Tensor or '
                f"Tensor-like object from checkpoint but received {type(value)}"
            ]
        if is_lazy(member):
            # So is the value: lazy modules made memory for any other one before this.
            return []
        if tuple(value.shape) != tuple(member.shape):
            return [
                f"size mismatch for {key}: copying a param with shape {value.shape} from "
                f"checkpoint, the shape in current model is {member.shape}."
            ]
        if not assign:
            with plugrad.no_grad():
                member.copy_(value)
        elif isinstance(member, Parameter):
            given = value if isinstance(value, Parameter) else Parameter(value)
            given.requires_grad_(member.requires_grad)
            self._parameters[name] = given
        else:
            self._buffers[name] = value
        return []

    # Hooks

    def _hooks(self, kind: str) -> OrderedDict[int, Hook]:
        return self._state_hooks.get(kind) or OrderedDict()

    def _add_state_hook(self, kind: str, hook: Hook) -> RemovableHandle:
        return add_hook(self._state_hooks.setdefault(kind, OrderedDict()), hook)

    # PyTorch's names of these tables, which packages look into.

    @property
    def _state_dict_pre_hooks(self) -> OrderedDict[int, Hook]:
        return self._state_hooks.setdefault("state_dict_pre", OrderedDict())

    @property
    def _state_dict_hooks(self) -> OrderedDict[int, Hook]:
        return self._state_hooks.setdefault("state_dict_other", OrderedDict())

    @property
    def _load_state_dict_pre_hooks(self) -> OrderedDict[int, Hook]:
        return self._state_hooks.setdefault("load_state_dict_pre", OrderedDict())

    @property
    def _load_state_dict_post_hooks(self) -> OrderedDict[int, Hook]:
        return self._state_hooks.setdefault("load_state_dict_post", OrderedDict())

    def register_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """`hook(module, prefix, keep_vars)` runs before the module writes its state.

        >>> import plugrad
        >>> layer = plugrad.nn.Linear(2, 1)
        >>> handle = layer.register_state_dict_pre_hook(lambda *_: print("saving"))
        >>> list(layer.state_dict())
        saving
        ['weight', 'bias']
        """
        return self._add_state_hook("state_dict_pre", hook)

    def register_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """`hook(module, state_dict, prefix, local_metadata)` may change the state dict in place.

        >>> import plugrad
        >>> def drop_bias(module, state, prefix, metadata):
        ...     del state[prefix + "bias"]
        >>> layer = plugrad.nn.Linear(2, 1)
        >>> handle = layer.register_state_dict_post_hook(drop_bias)
        >>> list(layer.state_dict())
        ['weight']
        """
        return self._add_state_hook("state_dict", hook)

    def _register_state_dict_hook(self, hook: Hook) -> RemovableHandle:
        """As the hook of `register_state_dict_post_hook`, which may return another state dict."""
        return self._add_state_hook("state_dict_other", hook)

    def _register_load_state_dict_pre_hook(
        self, hook: Hook, with_module: bool = False
    ) -> RemovableHandle:
        """As `register_load_state_dict_pre_hook`, for hooks that take no module."""
        if with_module:
            return self.register_load_state_dict_pre_hook(hook)
        return self.register_load_state_dict_pre_hook(lambda module, *rest: hook(*rest))

    def register_load_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """The hook runs first and gets the module and all that `_load_from_state_dict` gets.

        >>> import plugrad
        >>> def rename(module, state, prefix, *rest):
        ...     state[prefix + "weight"] = state.pop(prefix + "kernel")
        >>> layer = plugrad.nn.Linear(2, 1, bias=False)
        >>> handle = layer.register_load_state_dict_pre_hook(rename)
        >>> layer.load_state_dict({"kernel": plugrad.ones(1, 2)})
        <All keys matched successfully>
        """
        return self._add_state_hook("load_state_dict_pre", hook)

    def register_load_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """`hook(module, incompatible_keys)` may change the lists of missing and unexpected keys.

        >>> import plugrad
        >>> layer = plugrad.nn.Linear(2, 3)
        >>> def show(module, keys):
        ...     print(keys.missing_keys)
        >>> handle = layer.register_load_state_dict_post_hook(show)
        >>> _ = layer.load_state_dict({"weight": plugrad.ones(3, 2)}, strict=False)
        ['bias']
        """
        return self._add_state_hook("load_state_dict_post", hook)


def _key_error(kind: str, keys: list[str]) -> list[str]:
    quoted = ", ".join(f'"{key}"' for key in keys)
    return [f"{kind} key(s) in state_dict: {quoted}. "] if keys else []
