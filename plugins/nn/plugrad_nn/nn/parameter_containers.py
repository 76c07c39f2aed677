"""Modules that hold parameters: ParameterList, ParameterDict."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, KeysView, Mapping
from typing import Any, overload

from plugrad import Tensor
from plugrad_nn.nn.container import wrap_index
from plugrad_nn.nn.module import Module
from plugrad_nn.nn.parameter import Parameter


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
        return getattr(self, str(wrap_index(index, len(self))))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(wrap_index(index, len(self))), _as_parameter(value))

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
