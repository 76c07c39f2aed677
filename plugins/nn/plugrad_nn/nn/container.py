"""Modules that hold modules: Sequential, ModuleList, ModuleDict."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, SupportsIndex, overload

from plugrad_nn.nn.module import Module, _indent_after_first


def wrap_index(index: SupportsIndex, size: int) -> int:
    """A position in a sequence, counted from the end below 0."""
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
        return list(self._modules)[wrap_index(index, len(self))]

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
