"""Modules that hold modules or parameters: Sequential, ModuleList, ModuleDict and the like."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, KeysView, Mapping
from typing import Any, SupportsIndex, overload

from plugrad import Tensor
from plugrad_nn.nn.module import Module, _indent_after_first
from plugrad_nn.nn.parameter import Parameter


def _wrap_index(index: SupportsIndex, size: int) -> int:
    position = operator.index(index)
    if not -size <= position < size:
        raise IndexError(f"index {position} is out of range")
    return position % size


class _NumberedModules(Module):
    """The base of Sequential and ModuleList: children named "0", "1", ... in order."""

    @overload
    def __getitem__(self, index: slice) -> _NumberedModules: ...
    @overload
    def __getitem__(self, index: int) -> Any: ...
    def __getitem__(self, index: slice | int) -> Any:
        if isinstance(index, slice):
            return type(self)._from_children(list(self._modules.items())[index])
        return self._modules[self._name_at(index)]

    @classmethod
    def _from_children(cls, children: list[tuple[str, Any]]) -> _NumberedModules:
        raise NotImplementedError

    def _name_at(self, index: SupportsIndex) -> str:
        return list(self._modules)[_wrap_index(index, len(self))]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name_at(index), module)

    def __delitem__(self, index: slice | int) -> None:
        names = list(self._modules)
        for name in names[index] if isinstance(index, slice) else [self._name_at(index)]:
            del self._modules[name]
        self._renumber(list(self._modules.values()))

    def _renumber(self, children: list[Any]) -> None:
        self._modules.clear()
        for position, child in enumerate(children):
            self._modules[str(position)] = child

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def append(self, module: Module) -> Any:
        """Adds a module at the end.

        >>> import plugrad
        >>> model = plugrad.nn.Sequential(plugrad.nn.Linear(2, 3)).append(plugrad.nn.ReLU())
        >>> len(model), model[-1]
        (2, ReLU())
        """
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Adds a module before position `index`.

        >>> import plugrad
        >>> layers = plugrad.nn.ModuleList([plugrad.nn.ReLU(), plugrad.nn.Tanh()])
        >>> _ = layers.insert(1, plugrad.nn.GELU())
        >>> [type(layer).__name__ for layer in layers]
        ['ReLU', 'GELU', 'Tanh']
        """
        if not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        children = list(self._modules.values())
        children.insert(index, module)
        self._renumber(children)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Adds several modules at the end.

        >>> import plugrad
        >>> layers = plugrad.nn.ModuleList().extend([plugrad.nn.ReLU(), plugrad.nn.Tanh()])
        >>> len(layers)
        2
        """
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"{type(self).__name__}.extend should be called with an iterable, "
                f"but got {type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def pop(self, index: int = -1) -> Any:
        """Removes and returns the module at `index`.

        >>> import plugrad
        >>> model = plugrad.nn.Sequential(plugrad.nn.ReLU(), plugrad.nn.Tanh())
        >>> model.pop(0), len(model)
        (ReLU(), 1)
        """
        module = self[index]
        del self[index]
        return module


class Sequential(_NumberedModules):
    """Calls its modules one after the other, each on the result of the one before.

    >>> import plugrad
    >>> nn = plugrad.nn
    >>> nn.Sequential(nn.Linear(4, 2), nn.ReLU())
    Sequential(
      (0): Linear(in_features=4, out_features=2, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for position, module in enumerate(args):
                self.add_module(str(position), module)

    @classmethod
    def _from_children(cls, children: list[tuple[str, Any]]) -> Sequential:
        return cls(OrderedDict(children))

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def __add__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(
                "add operator supports only objects of Sequential class, "
                f"but {type(other)} is given."
            )
        return Sequential(*self, *other)

    def __iadd__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(
                "add operator supports only objects of Sequential class, "
                f"but {type(other)} is given."
            )
        return self.extend(list(other))  # type: ignore[no-any-return]  # itself

    def __mul__(self, other: int) -> Sequential:
        """The modules, the same objects, `other` times one after the other."""
        return Sequential(*[*self] * self._checked_factor(other))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Sequential:
        more = [*self] * (self._checked_factor(other) - 1)
        return self.extend(more)  # type: ignore[no-any-return]  # itself

    def _checked_factor(self, factor: object) -> int:
        if not isinstance(factor, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(factor)}")
        if factor <= 0:
            raise ValueError(f"Non-positive multiplication factor {factor} for {type(self)}")
        return factor


class ModuleList(_NumberedModules):
    """A list of modules, registered with the module it is assigned to; it has no `forward`.

    >>> import plugrad
    >>> layers = plugrad.nn.ModuleList([plugrad.nn.Linear(2, 3), plugrad.nn.ReLU()])
    >>> layers.append(plugrad.nn.Linear(3, 1))[-1]
    Linear(in_features=3, out_features=1, bias=True)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    @classmethod
    def _from_children(cls, children: list[tuple[str, Any]]) -> ModuleList:
        return cls(module for _, module in children)

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        self.extend(modules)
        return self

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        """Like any module's, but a run of equal lines is printed once with its count."""
        runs: list[tuple[int, int, str]] = []
        for position, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], position, text)
            else:
                runs.append((position, position, text))
        if not runs:
            return f"{self._get_name()}()"
        lines = [
            _indent_after_first(
                f"({first}): {text}"
                if first == last
                else f"({first}-{last}): {last - first + 1} x {text}"
            )
            for first, last, text in runs
        ]
        body = "\n  ".join(lines)
        return f"{self._get_name()}(\n  {body}\n)"


class ModuleDict(Module):
    """A dictionary of modules that is registered with the module it is assigned to.

    >>> import plugrad
    >>> layers = plugrad.nn.ModuleDict({"relu": plugrad.nn.ReLU(), "tanh": plugrad.nn.Tanh()})
    >>> layers["tanh"], list(layers)
    (Tanh(), ['relu', 'tanh'])
    """

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def keys(self) -> Iterable[str]:
        """The names.

        >>> import plugrad
        >>> list(plugrad.nn.ModuleDict({"relu": plugrad.nn.ReLU()}).keys())
        ['relu']
        """
        return self._modules.keys()

    def values(self) -> Iterable[Any]:
        """The modules.

        >>> import plugrad
        >>> list(plugrad.nn.ModuleDict({"relu": plugrad.nn.ReLU()}).values())
        [ReLU()]
        """
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names and modules.

        >>> import plugrad
        >>> list(plugrad.nn.ModuleDict({"relu": plugrad.nn.ReLU()}).items())
        [('relu', ReLU())]
        """
        return self._modules.items()

    def pop(self, key: str) -> Any:
        """Removes and returns one module.

        >>> import plugrad
        >>> heads = plugrad.nn.ModuleDict({"relu": plugrad.nn.ReLU(), "tanh": plugrad.nn.Tanh()})
        >>> heads.pop("relu"), list(heads)
        (ReLU(), ['tanh'])
        """
        return self._modules.pop(key)

    def clear(self) -> None:
        """Removes all modules.

        >>> import plugrad
        >>> heads = plugrad.nn.ModuleDict({"relu": plugrad.nn.ReLU()})
        >>> heads.clear()
        >>> len(heads)
        0
        """
        self._modules.clear()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Adds or replaces modules.

        >>> import plugrad
        >>> heads = plugrad.nn.ModuleDict({"relu": plugrad.nn.ReLU()})
        >>> heads.update({"tanh": plugrad.nn.Tanh()})
        >>> list(heads)
        ['relu', 'tanh']
        """
        for key, module in dict(modules).items():
            self[key] = module


class ParameterList(Module):
    """A list of parameters that is registered with the module it is assigned to.

    Plain tensors put into it become parameters; anything else stays unchanged, as in PyTorch.

    >>> import plugrad
    >>> weights = plugrad.nn.ParameterList([plugrad.ones(2), plugrad.zeros(3)])
    >>> len(weights), weights[0].requires_grad
    (2, True)
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    @overload
    def __getitem__(self, index: slice) -> ParameterList: ...
    @overload
    def __getitem__(self, index: int) -> Any: ...
    def __getitem__(self, index: slice | int) -> Any:
        if isinstance(index, slice):
            return ParameterList(list(self)[index])
        return getattr(self, str(_wrap_index(index, len(self))))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(_wrap_index(index, len(self))), _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[position] for position in range(len(self))])

    def append(self, value: Any) -> ParameterList:
        """Adds a parameter at the end.

        >>> import plugrad
        >>> weights = plugrad.nn.ParameterList().append(plugrad.ones(2))
        >>> weights[0].requires_grad
        True
        """
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Adds several parameters at the end.

        >>> import plugrad
        >>> len(plugrad.nn.ParameterList().extend([plugrad.ones(2), plugrad.zeros(3)]))
        2
        """
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(
                "ParameterList.extend should be called with an iterable, "
                f"but got {type(values).__name__}"
            )
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def extra_repr(self) -> str:
        return "\n".join(f"  ({at}): {_described(value)}" for at, value in enumerate(self))


class ParameterDict(Module):
    """A dictionary of parameters that is registered with the module it is assigned to.

    Plain tensors put into it become parameters; anything else stays what it is.

    >>> import plugrad
    >>> plugrad.nn.ParameterDict({"scale": plugrad.ones(2)})["scale"].requires_grad
    True
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, _text_key(key))

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, _text_key(key), _as_parameter(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def keys(self) -> KeysView[str]:
        """The names.

        >>> import plugrad
        >>> list(plugrad.nn.ParameterDict({"scale": plugrad.ones(1)}).keys())
        ['scale']
        """
        return self._keys.keys()

    def values(self) -> Iterable[Any]:
        """The parameters.

        >>> import plugrad
        >>> [value.shape for value in plugrad.nn.ParameterDict({"scale": plugrad.ones(1)}).values()]
        [plugrad.Size([1])]
        """
        return (self[key] for key in self._keys)

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names and parameters.

        >>> import plugrad
        >>> weights = plugrad.nn.ParameterDict({"scale": plugrad.ones(1)})
        >>> [(name, weight.tolist()) for name, weight in weights.items()]
        [('scale', [1.0])]
        """
        return ((key, self[key]) for key in self._keys)

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter under a name, or `default`.

        >>> import plugrad
        >>> plugrad.nn.ParameterDict({"scale": plugrad.ones(1)}).get("shift", "none")
        'none'
        """
        return getattr(self, key) if key in self else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The parameter under a name, which is `default` if there was none.

        >>> import plugrad
        >>> weights = plugrad.nn.ParameterDict()
        >>> weights.setdefault("scale", plugrad.ones(1)).requires_grad, list(weights)
        (True, ['scale'])
        """
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Removes and returns one parameter.

        >>> import plugrad
        >>> weights = plugrad.nn.ParameterDict({"scale": plugrad.ones(1)})
        >>> weights.pop("scale").tolist(), len(weights)
        ([1.0], 0)
        """
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Removes and returns the last name and parameter.

        >>> import plugrad
        >>> weights = plugrad.nn.ParameterDict({"scale": plugrad.ones(1)})
        >>> weights["shift"] = plugrad.zeros(1)
        >>> weights.popitem()[0]
        'shift'
        """
        if not self._keys:
            raise KeyError("popitem(): dictionary is empty")
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def clear(self) -> None:
        """Removes all parameters.

        >>> import plugrad
        >>> weights = plugrad.nn.ParameterDict({"scale": plugrad.ones(1)})
        >>> weights.clear()
        >>> len(weights)
        0
        """
        for key in list(self._keys):
            del self[key]

    def copy(self) -> ParameterDict:
        """Another dictionary of the same parameters.

        >>> import plugrad
        >>> weights = plugrad.nn.ParameterDict({"scale": plugrad.ones(1)})
        >>> weights.copy()["scale"] is weights["scale"]
        True
        """
        return ParameterDict(OrderedDict(self.items()))

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Another dictionary, with `default` under each of the names.

        >>> import plugrad
        >>> made = plugrad.nn.ParameterDict().fromkeys(["scale", "shift"], plugrad.ones(1))
        >>> list(made)
        ['scale', 'shift']
        """
        return ParameterDict((key, default) for key in keys)

    def update(self, parameters: Any) -> None:
        """Adds or replaces parameters; a plain dict's are sorted by name.

        >>> import plugrad
        >>> weights = plugrad.nn.ParameterDict({"scale": plugrad.ones(1)})
        >>> weights.update({"shift": plugrad.zeros(1)})
        >>> list(weights)
        ['scale', 'shift']
        """
        if not isinstance(parameters, Iterable):
            raise TypeError(
                "ParametersDict.update should be called with an iterable of key/value pairs, but "
                f"got {type(parameters).__name__}"
            )
        pairs: Iterable[Any] = parameters
        if isinstance(parameters, OrderedDict | ParameterDict):
            pairs = list(parameters.items())
        elif isinstance(parameters, Mapping):
            pairs = sorted(parameters.items())
        for place, pair in enumerate(pairs):
            if not isinstance(pair, Iterable):
                raise TypeError(
                    f"ParameterDict update sequence element #{place} should be Iterable; is"
                    f"{type(pair).__name__}"
                )
            key, *values = pair
            if len(values) != 1:
                raise ValueError(
                    f"ParameterDict update sequence element #{place} has length "
                    f"{len(values) + 1}; 2 is required"
                )
            self[key] = values[0]

    def __or__(self, other: ParameterDict) -> ParameterDict:
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        made = other.copy()
        made.update(self)
        return made

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other)
        return self

    def extra_repr(self) -> str:
        # Lists print the dtype, dictionaries the type: so does PyTorch.
        return "\n".join(
            f"  ({key}): {_described(value, by_type=True)}" for key, value in self.items()
        )


def _text_key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(
            "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
            f"'{type(key).__name__}'). Open an issue on github if you need non-string keys."
        )
    return key


def _as_parameter(value: Any) -> Any:
    plain = isinstance(value, Tensor) and not isinstance(value, Parameter)
    return Parameter(value) if plain else value


def _described(value: Any, by_type: bool = False) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    kind = value.type() if by_type else value.dtype
    sizes = "x".join(str(size) for size in value.shape)
    return f"Parameter containing: [{kind} of size {sizes}]"
