"""The names allowed in PyTorch's pickles: tensors, storages, dtypes, plain containers, and names
that the user allowed."""

from __future__ import annotations

import codecs
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any, Final

import plugrad
from plugrad import Tensor
from plugrad.nn.parameter import Parameter
from plugrad.plugins.printing import printed_name
from plugrad_nn.serialization.opcodes import NotAllowedError, check_key
from plugrad_nn.serialization.rebuilding import Rebuilder, rebuild_from_type, refusal, set_state
from plugrad_nn.serialization.safe_globals import BLOCKED_MODULES, allowed
from plugrad_nn.serialization.storage_types import (
    DTYPES,
    OTHER_DTYPES,
    QUANTIZED_STORAGES,
    STORAGES,
)


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    """`_codecs.encode`, by which bytes are written in older protocols."""
    if type(text) is not str or encoding not in ("latin1", "latin-1", "utf-8", "ascii"):
        raise ValueError("expected text, and an encoding of text")
    return bytes(codecs.encode(text, encoding))


def _get_layout(name: Any) -> str:
    """The layout of a name such as ``torch.strided``."""
    if name != "torch.strided":
        refusal(f"the layout {name!r}", "to_dense()")()
    return plugrad.strided


# Names that PyTorch also allows.
TENSOR_NAMES: Final[dict[str, Any]] = {
    **{f"torch.{name}": dtype for name, dtype in DTYPES.items()},
    **{f"torch.{name}": storage for name, storage in STORAGES.items()},
    **{f"torch.cuda.{name}": storage for name, storage in STORAGES.items()},
    **{
        f"torch.{place}{name}": getattr(plugrad, name)
        for place in ("", "cuda.")
        for name in (
            *("FloatTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor", "ByteTensor"),
            *("CharTensor", "ShortTensor", "IntTensor", "LongTensor", "BoolTensor"),
        )
    },
    "torch.Size": plugrad.Size,
    "torch.device": plugrad.device,
    "torch.Tensor": Tensor,
    "torch._tensor.Tensor": Tensor,
    "torch.UntypedStorage": plugrad.UntypedStorage,
    "torch.storage.UntypedStorage": plugrad.UntypedStorage,
    "torch.storage.TypedStorage": plugrad.TypedStorage,
    "torch.nn.parameter.Parameter": Parameter,
    "torch._tensor._rebuild_from_type_v2": rebuild_from_type,
    "torch.serialization._get_layout": _get_layout,
}
_CONTAINERS: Final[dict[str, Any]] = {
    "collections.OrderedDict": OrderedDict,
    "collections.Counter": Counter,
    "builtins.set": set,
    "builtins.complex": complex,
    "builtins.bytearray": bytearray,
    "builtins.bytes": bytes,
    "_codecs.encode": _encode,
}
_NOT_THERE: Final = {
    **{f"torch.{name}": f"a storage of dtype {name}" for name in QUANTIZED_STORAGES},
    **{f"torch.{name}": f"the dtype {name}" for name in OTHER_DTYPES},
}


# The allowed calls, with their arguments.


def _make_size(args: tuple[Any, ...]) -> plugrad.Size:
    fits = len(args) == 1 and isinstance(args[0], tuple | list)
    if not fits or not all(type(n) is int and 0 <= n < 2**63 for n in args[0]):
        raise ValueError("a Size is made of a tuple of lengths")
    return plugrad.Size(args[0])


def _make_device(args: tuple[Any, ...]) -> Any:
    if not 1 <= len(args) <= 2 or type(args[0]) is not str or type(args[-1]) not in (str, int):
        raise ValueError("a device is made of its type and an index")
    return plugrad.device(*args)


def _pairs(items: Any) -> Any:
    """The source of dicts, after a check of its keys."""
    if not isinstance(items, dict | list | tuple):
        raise ValueError("a dict is made of a dict or of pairs")
    for item in items:
        if isinstance(items, dict):
            continue
        if not isinstance(item, list | tuple) or len(item) != 2:
            raise ValueError("a dict is made of pairs")
        check_key(item[0])
    return items


def _make_ordered_dict(args: tuple[Any, ...]) -> OrderedDict[Any, Any]:
    return OrderedDict(*[_pairs(items) for items in args[:1]], *args[1:])


def _make_counter(args: tuple[Any, ...]) -> Counter[Any]:
    if args and not isinstance(args[0], dict):
        raise ValueError("a Counter is made of a dict")
    return Counter(*args)


def _make_set(args: tuple[Any, ...]) -> set[Any]:
    if not args:
        return set()
    (items,) = args
    if not isinstance(items, list | tuple | set):
        raise ValueError("a set is made of a list")
    for item in items:
        check_key(item)
    return set(items)


def _make_complex(args: tuple[Any, ...]) -> complex:
    if not all(type(part) in (int, float) for part in args):
        raise ValueError("a complex is made of numbers")
    return complex(*args)


def _make_bytearray(args: tuple[Any, ...]) -> bytearray:
    if not args:
        return bytearray()
    if isinstance(args[0], bytes | bytearray) and len(args) == 1:
        return bytearray(args[0])
    return bytearray(_encode(*args))


_CALLS: Final[list[tuple[Any, Callable[[tuple[Any, ...]], Any]]]] = [
    (OrderedDict, _make_ordered_dict),
    (plugrad.Size, _make_size),
    (plugrad.device, _make_device),
    (set, _make_set),
    (Counter, _make_counter),
    (complex, _make_complex),
    (bytearray, _make_bytearray),
    (bytes, lambda args: bytes(_make_bytearray(args))),
    (_encode, lambda args: _encode(*args)),
    (_get_layout, lambda args: _get_layout(*args)),
]


class KnownNames:
    """The names of the safe unpickler.

    Args:
        rebuilder: makes the tensors.
    """

    def __init__(self, rebuilder: Rebuilder) -> None:
        self._functions = rebuilder.functions()
        self._user = allowed()
        # Bound methods are new objects at every look-up, so the table's own are compared.
        self._rebuilding = [*self._functions.values()]

    def find(self, module: str, name: str) -> Any:
        """The object behind a name.

        Raises:
            NotAllowedError: it is not allowed.
            NotImplementedError: it is a kind of tensor that plugrad does not have.
        """
        full = f"{module}.{name}"
        if module.partition(".")[0] in BLOCKED_MODULES:
            raise NotAllowedError(
                f"Trying to load unsupported GLOBAL {full} whose module {module} is blocked."
            )
        for table in (self._user, self._functions, TENSOR_NAMES, _CONTAINERS):
            if full in table:
                return table[full]
        if full in _NOT_THERE:
            refusal(_NOT_THERE[full], "another dtype")()
        raise NotAllowedError(not_allowed(full))

    def call(self, function: Any, args: tuple[Any, ...]) -> Any:
        """The result of an allowed function or class.

        Raises:
            NotAllowedError: it is not allowed.
        """
        for known in (*self._rebuilding, *self._user.values()):
            if function is known:
                return function(*args)
        if function is rebuild_from_type:
            return self._rebuild_from_type(*args)
        for known, make in _CALLS:
            if function is known:
                return make(args)
        raise NotAllowedError(f"cannot call {_shown(function)}: it was not allowed")

    def new(self, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An instance of a class, not yet initialised.

        Raises:
            NotAllowedError: the class is not allowed.
        """
        if isinstance(cls, type) and self.is_allowed_type(cls):
            return cls.__new__(cls, *args, **kwargs)
        if cls in (OrderedDict, set) and not args and not kwargs:
            return cls()
        raise NotAllowedError(f"cannot make a {_shown(cls)}: it was not allowed")

    def set_state(self, instance: Any, state: Any) -> None:
        """Gives an object its attributes.

        Raises:
            NotAllowedError: its class is not allowed.
        """
        cls = type(instance)
        if cls in (Tensor, Parameter):
            set_state(instance, state)
        elif cls is OrderedDict:
            instance.__dict__.update(_text_keys(state))
        elif self.is_allowed_type(cls):
            set_state_of(instance, state)
        else:
            raise NotAllowedError(f"cannot set attributes of a {cls.__name__}")

    def is_allowed_type(self, cls: type) -> bool:
        """Whether the user allowed a class."""
        return any(cls is known for known in self._user.values())

    def _rebuild_from_type(self, func: Any, cls: Any, args: Any, state: Any) -> Tensor:
        if not any(func is known for known in (*self._rebuilding, *self._user.values())):
            raise NotAllowedError(f"cannot call {_shown(func)}: it was not allowed")
        if cls not in (Tensor, Parameter) and not self.is_allowed_type(cls):
            raise NotAllowedError(f"cannot make a {_shown(cls)}: it was not allowed")
        return rebuild_from_type(func, cls, args, state)


def set_state_of(instance: Any, state: Any) -> None:
    """Sets the state of an object, as pickle does."""
    if hasattr(instance, "__setstate__"):
        instance.__setstate__(state)
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        instance.__dict__.update(_text_keys(state))
    for name, value in _text_keys(slots or {}).items():
        setattr(instance, name, value)


def _text_keys(state: Any) -> dict[str, Any]:
    if not isinstance(state, dict) or not all(type(name) is str for name in state):
        raise ValueError("expected a dict of attributes")
    return state


def not_allowed(full: str) -> str:
    """The message about a name that was not allowed."""
    name = full.removeprefix("builtins.")
    library = printed_name()
    return (
        f"Unsupported global: GLOBAL {name} was not an allowed global by default. Please use "
        f"`{library}.serialization.add_safe_globals([{name}])` or the "
        f"`{library}.serialization.safe_globals([{name}])` context manager to allowlist this "
        "global if you trust this class/function."
    )


def _shown(value: Any) -> str:
    return str(getattr(value, "__qualname__", type(value).__name__))
