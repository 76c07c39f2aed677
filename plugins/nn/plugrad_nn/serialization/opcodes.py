"""Reads a pickle safely: an interpreter of pickle's instructions that runs no code from it.

A `Names` decides what a pickle may name, call and make. No file can make this crash or use much
more memory than the length of the file.
"""

from __future__ import annotations

import pickle
import struct
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any, BinaryIO, Final, Protocol

import plugrad

# Hashing a tuple visits everything in it, without a limit.
DEEPEST_KEY: Final = 20
LARGEST_KEY: Final = 100_000


class NotAllowedError(pickle.UnpicklingError):
    """A pickle names or calls something that is not allowed."""


class Names(Protocol):
    """The names that a pickle may use, and their objects."""

    def find(self, module: str, name: str) -> Any:
        """The object behind a name; NotAllowedError if it is not allowed."""

    def call(self, function: Any, args: tuple[Any, ...]) -> Any:
        """The result of an allowed function or class; NotAllowedError for others."""

    def new(self, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An instance of an allowed class, not yet initialised; NotAllowedError for others."""

    def set_state(self, instance: Any, state: Any) -> None:
        """Gives an object its attributes; NotAllowedError for classes that are not allowed."""

    def is_allowed_type(self, cls: type) -> bool:
        """Whether the user allowed a class."""


_DAMAGE: Final = (
    *(AttributeError, EOFError, IndexError, KeyError, OverflowError, RecursionError, TypeError),
    *(UnicodeError, ValueError, struct.error),
)


class SafeUnpickler:
    """Reads one pickle from a file.

    Args:
        file: its position is the start of the pickle, and afterwards its end.
        length: how many bytes are left in the file.
        names: the allowed names.
        persistent_load: the object for an identifier that the writer chose, which is a storage.
    """

    def __init__(
        self,
        file: BinaryIO,
        length: int,
        names: Names,
        persistent_load: Callable[[Any], Any] | None = None,
    ) -> None:
        self._file = file
        self._left = length
        # Functions must not copy a multiple of the data in the file.
        self._copies_left = 4 * length + 1_000_000
        self._names = names
        self._persistent_load = persistent_load
        self._stack: list[Any] = []
        self._marks: list[list[Any]] = []
        self._memo: dict[int, Any] = {}
        self._protocol = 0
        # Errors of the source of storages are not damage of the pickle.
        self._is_outside = False

    def load(self) -> Any:
        """The object.

        Raises:
            NotAllowedError: the pickle names something that is not allowed.
            pickle.UnpicklingError: it is damaged.
        """
        try:
            while True:
                code = self._read(1)[0]
                if code == _STOP:
                    return self._stack.pop()
                step = _STEPS.get(code)
                if step is None:
                    raise pickle.UnpicklingError(f"Unsupported operand {code}")
                step(self)
        except _DAMAGE as error:
            if self._is_outside:
                raise
            raise pickle.UnpicklingError(
                f"the pickle is damaged: {type(error).__name__}: {error}"
            ) from error

    # Bytes.

    def _read(self, count: int) -> bytes:
        if count > self._left:
            raise EOFError(f"it is cut off: {count} bytes are to follow, there are {self._left}")
        data = self._file.read(count)
        self._left -= len(data)
        if len(data) < count:
            raise EOFError("it is cut off")
        return data

    def _number(self, size: int, signed: bool = False) -> int:
        return int.from_bytes(self._read(size), "little", signed=signed)

    def _line(self) -> str:
        line = self._file.readline(min(self._left, 10_000))
        self._left -= len(line)
        if not line.endswith(b"\n"):
            raise EOFError("it is cut off within a name")
        return line[:-1].decode("utf-8")

    # The stack.

    def _items(self) -> list[Any]:
        """The items on the stack since the last mark."""
        items = self._stack
        self._stack = self._marks.pop()
        return items

    def _mark(self) -> None:
        self._marks.append(self._stack)
        self._stack = []

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    # Containers.

    def _append(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is list:
            target.extend(items)
        elif self._names.is_allowed_type(type(target)):
            for item in items:
                target.append(item)
        else:
            raise TypeError(f"can only append to lists, got {type(target).__name__}")

    def _set_items(self, items: list[Any]) -> None:
        target = self._stack[-1]
        known = type(target) in (dict, OrderedDict, Counter)
        if not known and not self._names.is_allowed_type(type(target)):
            raise TypeError(f"can only set items of dicts, got {type(target).__name__}")
        if len(items) % 2:
            raise ValueError("a key without a value")
        for key, value in zip(items[::2], items[1::2], strict=True):
            check_key(key)
            target[key] = value

    def _add_items(self) -> None:
        items = self._items()
        target = self._stack[-1]
        if type(target) is not set:
            raise TypeError(f"can only add to sets, got {type(target).__name__}")
        for item in items:
            check_key(item)
        target.update(items)

    # Names.

    def _find(self, module: str, name: str) -> None:
        module = {"__builtin__": "builtins", "copy_reg": "copyreg"}.get(module, module)
        self._push(self._names.find(module, name))

    def _stack_global(self) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        if type(name) is not str or type(module) is not str:
            raise TypeError("a name that is no text")
        self._find(module, name)

    def _reduce(self) -> None:
        args, function = self._stack.pop(), self._stack.pop()
        if type(args) is not tuple:
            raise TypeError(f"arguments must be a tuple, got {type(args).__name__}")
        for value in args:
            if isinstance(value, str | bytes | bytearray | list | dict | tuple | set):
                self._copies_left -= len(value)
        if self._copies_left < 0:
            raise ValueError("it copies the same data again and again")
        self._push(self._names.call(function, args))

    def _new(self, kwargs: Any) -> None:
        args, cls = self._stack.pop(), self._stack.pop()
        if type(args) is not tuple or type(kwargs) is not dict:
            raise TypeError("arguments must be a tuple and a dict")
        self._push(self._names.new(cls, args, kwargs))

    def _build(self) -> None:
        state = self._stack.pop()
        self._names.set_state(self._stack[-1], state)

    def _persistent(self) -> None:
        if self._persistent_load is None:
            raise ValueError("there are no storages in this pickle")
        identifier = self._stack.pop()
        self._is_outside = True
        storage = self._persistent_load(identifier)
        self._is_outside = False
        self._push(storage)

    # Rest.

    def _proto(self) -> None:
        self._protocol = self._read(1)[0]
        if self._protocol > pickle.HIGHEST_PROTOCOL:
            raise ValueError(f"unsupported pickle protocol: {self._protocol}")

    def _remember(self, key: int) -> None:
        self._memo[key] = self._stack[-1]

    def _frozen_set(self) -> None:
        items = self._items()
        for item in items:
            check_key(item)
        self._push(frozenset(items))

    def _tuple(self, count: int) -> None:
        if len(self._stack) < count:
            raise IndexError("the stack is empty")
        items = tuple(self._stack[-count:])
        del self._stack[-count:]
        self._push(items)

    def _dict(self) -> None:
        items = self._items()
        self._push({})
        self._set_items(items)


def check_key(key: Any) -> None:
    """Refuse keys that take very long or very much stack to hash.

    Raises:
        TypeError: the key is a list, a dict or the like.
        ValueError: it is too large or nested too deep.
    """
    if isinstance(key, tuple | frozenset):
        _weight(key, 0, {})


def _weight(key: Any, depth: int, known: dict[int, int]) -> int:
    if not isinstance(key, tuple | frozenset) or isinstance(key, plugrad.Size):
        return 1
    if depth > DEEPEST_KEY:
        raise ValueError(f"a key that is nested more than {DEEPEST_KEY} levels deep")
    found = known.get(id(key))
    if found is None:
        found = 1 + sum(_weight(item, depth + 1, known) for item in key)
        known[id(key)] = found
    if found > LARGEST_KEY:
        raise ValueError(f"a key of more than {LARGEST_KEY} elements")
    return found


def _pushing(read: Callable[[SafeUnpickler], Any]) -> Callable[[SafeUnpickler], None]:
    return lambda machine: machine._push(read(machine))


def _text(size: int) -> Callable[[SafeUnpickler], None]:
    return _pushing(lambda m: str(m._read(m._number(size)), "utf-8", "surrogatepass"))


def _binary(size: int) -> Callable[[SafeUnpickler], None]:
    return _pushing(lambda m: m._read(m._number(size)))


def _old_string(size: int) -> Callable[[SafeUnpickler], None]:
    """A string of Python 2, which is text in state dicts."""
    return _pushing(lambda m: str(m._read(m._number(size)), "utf-8"))


def _long(size: int) -> Callable[[SafeUnpickler], None]:
    return _pushing(lambda m: m._number(m._number(size), signed=True))


def _value(value: Any) -> Callable[[SafeUnpickler], None]:
    return lambda machine: machine._push(value)


def _pair(machine: SafeUnpickler) -> list[Any]:
    value, key = machine._stack.pop(), machine._stack.pop()
    return [key, value]


_STOP: Final = pickle.STOP[0]
_STEPS: Final[dict[int, Callable[[SafeUnpickler], Any]]] = {
    code[0]: step
    for code, step in {
        pickle.PROTO: SafeUnpickler._proto,
        pickle.FRAME: lambda m: m._number(8),
        pickle.MARK: SafeUnpickler._mark,
        pickle.POP: lambda m: m._stack.pop() if m._stack else m._items(),
        pickle.POP_MARK: SafeUnpickler._items,
        pickle.DUP: lambda m: m._push(m._stack[-1]),
        pickle.NONE: _value(None),
        pickle.NEWTRUE: _value(True),
        pickle.NEWFALSE: _value(False),
        pickle.BININT: _pushing(lambda m: m._number(4, signed=True)),
        pickle.BININT1: _pushing(lambda m: m._number(1)),
        pickle.BININT2: _pushing(lambda m: m._number(2)),
        pickle.LONG1: _long(1),
        pickle.LONG4: _long(4),
        pickle.BINFLOAT: _pushing(lambda m: struct.unpack(">d", m._read(8))[0]),
        pickle.BINSTRING: _old_string(4),
        pickle.SHORT_BINSTRING: _old_string(1),
        pickle.SHORT_BINUNICODE: _text(1),
        pickle.BINUNICODE: _text(4),
        pickle.BINUNICODE8: _text(8),
        pickle.SHORT_BINBYTES: _binary(1),
        pickle.BINBYTES: _binary(4),
        pickle.BINBYTES8: _binary(8),
        pickle.BYTEARRAY8: _pushing(lambda m: bytearray(m._read(m._number(8)))),
        pickle.EMPTY_TUPLE: _value(()),
        pickle.EMPTY_LIST: _pushing(lambda m: []),
        pickle.EMPTY_DICT: _pushing(lambda m: {}),
        pickle.EMPTY_SET: _pushing(lambda m: set()),
        pickle.TUPLE: _pushing(lambda m: tuple(m._items())),
        pickle.TUPLE1: lambda m: m._tuple(1),
        pickle.TUPLE2: lambda m: m._tuple(2),
        pickle.TUPLE3: lambda m: m._tuple(3),
        pickle.LIST: _pushing(lambda m: m._items()),
        pickle.DICT: SafeUnpickler._dict,
        pickle.FROZENSET: SafeUnpickler._frozen_set,
        pickle.APPEND: lambda m: m._append([m._stack.pop()]),
        pickle.APPENDS: lambda m: m._append(m._items()),
        pickle.SETITEM: lambda m: m._set_items(_pair(m)),
        pickle.SETITEMS: lambda m: m._set_items(m._items()),
        pickle.ADDITEMS: SafeUnpickler._add_items,
        pickle.BINGET: lambda m: m._push(m._memo[m._number(1)]),
        pickle.LONG_BINGET: lambda m: m._push(m._memo[m._number(4)]),
        pickle.BINPUT: lambda m: m._remember(m._number(1)),
        pickle.LONG_BINPUT: lambda m: m._remember(m._number(4)),
        pickle.MEMOIZE: lambda m: m._remember(len(m._memo)),
        pickle.GLOBAL: lambda m: m._find(m._line(), m._line()),
        pickle.STACK_GLOBAL: SafeUnpickler._stack_global,
        pickle.REDUCE: SafeUnpickler._reduce,
        pickle.NEWOBJ: lambda m: m._new({}),
        pickle.NEWOBJ_EX: lambda m: m._new(m._stack.pop()),
        pickle.BUILD: SafeUnpickler._build,
        pickle.BINPERSID: SafeUnpickler._persistent,
    }.items()
}
