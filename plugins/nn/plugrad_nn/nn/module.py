"""Module: the base class of layers: registration, calls and printing."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, TypeVar

from plugrad import Tensor
from plugrad.plugins.arguments import explains
from plugrad_nn.nn.calling import ModuleCalls
from plugrad_nn.nn.conversion import ModuleConversion
from plugrad_nn.nn.global_hooks import registered
from plugrad_nn.nn.parameter import Buffer, Parameter
from plugrad_nn.nn.state import ModuleState

T = TypeVar("T", bound="Module")


def _add_fields(fields: dict[str, Any]) -> None:
    """The tables of a new module, by PyTorch's names, which packages look into."""
    fields["training"] = True
    fields["_parameters"] = {}
    fields["_buffers"] = {}
    fields["_non_persistent_buffers_set"] = set()
    fields["_modules"] = {}
    fields["_forward_pre_hooks"] = OrderedDict()
    fields["_forward_pre_hooks_with_kwargs"] = OrderedDict()
    fields["_forward_hooks"] = OrderedDict()
    fields["_forward_hooks_with_kwargs"] = OrderedDict()
    fields["_forward_hooks_always_called"] = OrderedDict()
    fields["_backward_pre_hooks"] = OrderedDict()
    fields["_backward_hooks"] = OrderedDict()
    fields["_is_full_backward_hook"] = None
    fields["_state_hooks"] = {}


class Module(ModuleCalls, ModuleState, ModuleConversion):
    """Base class of all layers and models.

    Assigning a `Parameter` or a `Module` as an attribute registers it, as `register_buffer` does
    for other tensors, so that `parameters()`, `state_dict()`, `to()`, `train()` and `repr` find it.

    >>> import plugrad
    >>> class Doubled(plugrad.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.inner = plugrad.nn.Linear(3, 2)
    ...     def forward(self, x):
    ...         return 2 * self.inner(x)
    >>> Doubled()(plugrad.ones(5, 3)).shape[0]
    5
    """

    training: bool
    _version: ClassVar[int] = 1
    # With True, further arguments go on to the next class that a subclass inherits from.
    call_super_init: ClassVar[bool] = False
    dump_patches: ClassVar[bool] = False
    T_destination = TypeVar("T_destination", bound=dict[str, Any])

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if (args or kwargs) and not self.call_super_init:
            given = (
                f"takes 1 positional argument but {len(args) + 1} were given"
                if args
                else f"got an unexpected keyword argument {next(iter(kwargs))!r}"
            )
            raise TypeError(f"{type(self).__name__}.__init__() {given}")
        # Written past __setattr__, which looks these tables up.
        _add_fields(self.__dict__)
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A module that was pickled before there were such fields.
        _add_fields(self.__dict__)
        self.__dict__.update(state)

    def _replicate_for_data_parallel(self) -> Any:
        """A module with the same attributes, and with its own tables of members."""
        replica = copy.copy(self)
        for table in ("_parameters", "_buffers", "_modules"):
            replica.__dict__[table] = dict(self.__dict__[table])
        return replica

    def extra_repr(self) -> str:
        """The part of the printed module between its parentheses.

        >>> import plugrad
        >>> class Scaled(plugrad.nn.Module):
        ...     def extra_repr(self):
        ...         return "factor=2"
        >>> Scaled()
        Scaled(factor=2)
        """
        return ""

    # Registration

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter under `name`; None reserves the name.

        >>> import plugrad
        >>> module = plugrad.nn.Module()
        >>> module.register_parameter("weight", plugrad.nn.Parameter(plugrad.ones(2)))
        >>> [name for name, _ in module.named_parameters()]
        ['weight']
        """
        self._check_name("parameter", name, self.__dict__.get("_parameters"))
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{_type_name(param)}' object to parameter '{name}' "
                "(plugrad.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
                "created explicitly. To express a parameter as a function of another Tensor, "
                "compute the value in the forward() method."
            )
        self._parameters[name] = (
            None if param is None else registered("parameter", self, name, param)
        )

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is state but not trained; `persistent` ones are in `state_dict()`.

        >>> import plugrad
        >>> module = plugrad.nn.Module()
        >>> module.register_buffer("mean", plugrad.zeros(2))
        >>> module.register_buffer("cache", plugrad.zeros(2), persistent=False)
        >>> list(module.state_dict()), len(list(module.parameters()))
        (['mean'], 0)
        """
        self._check_name("buffer", name, self.__dict__.get("_buffers"))
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{_type_name(tensor)}' object to buffer '{name}' "
                "(plugrad Tensor or None required)"
            )
        self._buffers[name] = registered("buffer", self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a child module under `name`.

        >>> import plugrad
        >>> module = plugrad.nn.Module()
        >>> module.add_module("first", plugrad.nn.Linear(2, 3))
        >>> module.first
        Linear(in_features=2, out_features=3, bias=True)
        """
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_type_name(module)} is not a Module subclass")
        self._check_name("module", name, self.__dict__.get("_modules"))
        self._modules[name] = registered("module", self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as `add_module`.

        >>> import plugrad
        >>> module = plugrad.nn.Module()
        >>> module.register_module("first", plugrad.nn.ReLU())
        >>> module
        Module(
          (first): ReLU()
        )
        """
        self.add_module(name, module)

    def _check_name(self, kind: str, name: object, table: dict[str, Any] | None) -> None:
        if table is None:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {_type_name(name)}")
        if "." in name:
            got = f", got: {name}" if kind == "module" else ""
            raise KeyError(f'{kind} name can\'t contain "."{got}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in table and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    def __setattr__(self, name: str, value: Any) -> None:
        fields = self.__dict__
        if isinstance(value, Parameter):
            self._forget(name, keep="_parameters", kind="parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._forget(name, keep="_modules", kind="module")
            fields["_modules"][name] = registered("module", self, name, value)
        elif isinstance(value, Buffer) and name not in fields.get("_parameters", ()):
            self._forget(name, keep="_buffers", kind="buffers")
            self.register_buffer(name, value, value.persistent)
        elif name in fields.get("_parameters", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_type_name(value)}' as parameter '{name}' "
                    "(plugrad.nn.Parameter or None expected)"
                )
            fields["_parameters"][name] = None
        elif name in fields.get("_modules", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_type_name(value)}' as child module '{name}' "
                    "(plugrad.nn.Module or None expected)"
                )
            fields["_modules"][name] = registered("module", self, name, None)
        elif name in fields.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{_type_name(value)}' as buffer '{name}' "
                    "(plugrad.Tensor or None expected)"
                )
            fields["_buffers"][name] = registered("buffer", self, name, value)
        else:
            super().__setattr__(name, value)

    def _forget(self, name: str, keep: str, kind: str) -> None:
        """Removes other members with this name before it is registered in the table `keep`."""
        fields = self.__dict__
        if keep not in fields:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        fields.pop(name, None)
        for table in ("_parameters", "_buffers", "_modules"):
            if table != keep:
                fields[table].pop(name, None)
        fields["_non_persistent_buffers_set"].discard(name)

    def __getattr__(self, name: str) -> Any:
        # Parameters first and without a loop: every forward pass reads them.
        fields = self.__dict__
        parameters = fields.get("_parameters")
        if parameters is not None and name in parameters:
            return parameters[name]
        for table in ("_buffers", "_modules"):
            entries = fields.get(table)
            if entries is not None and name in entries:
                return entries[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = set(super().__dir__()) | set(self._parameters) | set(self._buffers)
        return sorted(name for name in names | set(self._modules) if not name[0].isdigit())

    # Walking the tree

    def named_modules(
        self,
        memo: set[Module] | None = None,
        prefix: str = "",
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it, with their dotted names.

        >>> import plugrad
        >>> model = plugrad.nn.Sequential(plugrad.nn.Linear(2, 2), plugrad.nn.ReLU())
        >>> [name for name, _ in model.named_modules()]
        ['', '0', '1']
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                below = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, below, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all below it; shared ones once, unless `remove_duplicate` is False.

        >>> import plugrad
        >>> model = plugrad.nn.Sequential(plugrad.nn.Linear(2, 2), plugrad.nn.ReLU())
        >>> [type(module).__name__ for module in model.modules()]
        ['Sequential', 'Linear', 'ReLU']
        """
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly below this one, with their names.

        >>> import plugrad
        >>> model = plugrad.nn.Sequential(plugrad.nn.Linear(2, 2), plugrad.nn.ReLU())
        >>> [name for name, _ in model.named_children()]
        ['0', '1']
        """
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules directly below this one.

        >>> import plugrad
        >>> model = plugrad.nn.Sequential(plugrad.nn.Linear(2, 2), plugrad.nn.ReLU())
        >>> list(model.children())
        [Linear(in_features=2, out_features=2, bias=True), ReLU()]
        """
        for _, module in self.named_children():
            yield module

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        places = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else iter([(prefix, self)])
        )
        for place, module in places:
            for name, member in get_members_fn(module):
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield (f"{place}.{name}" if place else name), member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Every parameter with its dotted name; shared ones once.

        >>> import plugrad
        >>> model = plugrad.nn.Sequential(plugrad.nn.Linear(2, 3), plugrad.nn.ReLU())
        >>> [(name, parameter.shape) for name, parameter in model.named_parameters()]
        [('0.weight', plugrad.Size([3, 2])), ('0.bias', plugrad.Size([3]))]
        """
        return self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters, as an optimizer takes them.

        >>> import plugrad
        >>> model = plugrad.nn.Linear(2, 3)
        >>> sum(parameter.numel() for parameter in model.parameters())
        9
        """
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Every buffer with its dotted name.

        >>> import plugrad
        >>> [name for name, _ in plugrad.nn.BatchNorm1d(3).named_buffers()]
        ['running_mean', 'running_var', 'num_batches_tracked']
        """
        return self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Every buffer.

        >>> import plugrad
        >>> [buffer.shape for buffer in plugrad.nn.BatchNorm1d(3).buffers()]
        [plugrad.Size([3]), plugrad.Size([3]), plugrad.Size([])]
        """
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    @explains
    def get_submodule(self, target: str) -> Module:
        """The module at the dotted path `target`; the empty string is this module.

        >>> import plugrad
        >>> model = plugrad.nn.Sequential(plugrad.nn.Sequential(plugrad.nn.Linear(2, 3)))
        >>> model.get_submodule("0.0")
        Linear(in_features=2, out_features=3, bias=True)
        """
        module: Module = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
            found = getattr(module, name)
            if not isinstance(found, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
            module = found
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts `module` at the dotted path `target`; `strict` refuses if there is nothing yet.

        >>> import plugrad
        >>> model = plugrad.nn.Sequential(plugrad.nn.Sequential(plugrad.nn.ReLU()))
        >>> model.set_submodule("0.0", plugrad.nn.GELU())
        >>> model.get_submodule("0.0")
        GELU(approximate='none')
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if hasattr(owner, name):
            if not isinstance(getattr(owner, name), Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        elif strict:
            raise AttributeError(f"{type(owner).__name__} has no attribute `{name}`")
        setattr(owner, name, module)

    @explains
    def get_parameter(self, target: str) -> Parameter:
        """The parameter at the dotted path `target`.

        >>> import plugrad
        >>> model = plugrad.nn.Sequential(plugrad.nn.Linear(2, 3))
        >>> model.get_parameter("0.bias").shape
        plugrad.Size([3])
        """
        owner, name = self._owner_of(target)
        found = getattr(owner, name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    @explains
    def get_buffer(self, target: str) -> Tensor:
        """The buffer at the dotted path `target`.

        >>> import plugrad
        >>> model = plugrad.nn.Sequential(plugrad.nn.BatchNorm1d(3))
        >>> model.get_buffer("0.running_mean")
        tensor([0., 0., 0.])
        """
        owner, name = self._owner_of(target)
        buffer = owner._buffers.get(name)
        if buffer is None:
            raise AttributeError(f"`{name}` is not a buffer")
        return buffer

    def _owner_of(self, target: str) -> tuple[Module, str]:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(f"{type(owner).__name__} has no attribute `{name}`")
        return owner, name

    # Changing the whole tree

    @explains
    def apply(self: T, fn: Callable[[Module], None]) -> T:
        """Calls `fn` on every module below, then on this one.

        >>> import plugrad
        >>> def zero_bias(module):
        ...     if isinstance(module, plugrad.nn.Linear):
        ...         plugrad.nn.init.zeros_(module.bias)
        >>> model = plugrad.nn.Sequential(plugrad.nn.Linear(2, 3), plugrad.nn.ReLU())
        >>> _ = model.apply(zero_bias)
        >>> model[0].bias.tolist()
        [0.0, 0.0, 0.0]
        """
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def train(self: T, mode: bool = True) -> T:
        """Sets training mode, which Dropout and BatchNorm look at.

        >>> import plugrad
        >>> model = plugrad.nn.Sequential(plugrad.nn.Dropout(0.5))
        >>> model.train(False)[0].training, model.train()[0].training
        (False, True)
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self: T) -> T:
        """Sets evaluation mode: the same as `train(False)`.

        >>> import plugrad
        >>> dropout = plugrad.nn.Dropout(0.5).eval()
        >>> dropout(plugrad.ones(3))
        tensor([1., 1., 1.])
        """
        return self.train(False)

    def requires_grad_(self: T, requires_grad: bool = True) -> T:
        """Freezes (False) or thaws all parameters.

        >>> import plugrad
        >>> frozen = plugrad.nn.Linear(2, 3).requires_grad_(False)
        >>> frozen(plugrad.ones(1, 2)).requires_grad
        False
        """
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients of all parameters, or fills them with zeros.

        >>> import plugrad
        >>> model = plugrad.nn.Linear(2, 1)
        >>> model(plugrad.ones(1, 2)).sum().backward()
        >>> model.zero_grad()
        >>> model.bias.grad is None
        True
        """
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                parameter.grad = parameter.grad.detach()
                parameter.grad.zero_()

    # Printing

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [
            f"({name}): {_indent_after_first(repr(module))}"
            for name, module in self._modules.items()
        ]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({extra})"
        if not lines and not children:
            return f"{self._get_name()}()"
        body = "\n  ".join(lines + children)
        return f"{self._get_name()}(\n  {body}\n)"

    def _repr_html_(self) -> str:
        from plugrad_nn.nn.html import module_html  # only notebooks need it

        return module_html(self)


def _indent_after_first(text: str) -> str:
    return text.replace("\n", "\n  ")


def _type_name(value: object) -> str:
    return "plugrad.Tensor" if type(value) is Tensor else type(value).__name__
