"""`torch.ops`: PyTorch's own operators, `torch.ops.aten`, are plugrad's namespace `plugrad`."""

from __future__ import annotations

import functools
import os
from typing import Any, Final, NoReturn

import plugrad
from plugrad_as_torch.layout import torch_operators
from plugrad_as_torch.lookup import not_yet

__all__ = ["aten", "load_library"]

# The packages that requested compiled operators.
_refused: Final[set[str]] = set()


def load_library(path: Any) -> NoReturn:
    """Raises OSError, as PyTorch does for a library that it cannot load: compiled operators are
    built for PyTorch itself. Packages that also have slower operators in Python then use those."""
    _refused.add(os.path.basename(os.path.dirname(os.path.abspath(path))))
    raise OSError(
        f"torch.ops.load_library({str(path)!r}): torch is plugrad in this process, which cannot "
        "load operators that were compiled for PyTorch"
    )


def is_refused(op: str) -> bool:
    """Whether an operator such as `"torchvision::nms"` is missing because a file of its package was
    refused."""
    namespace, _, name = op.partition("::")
    operators = getattr(plugrad.ops, namespace, None)
    return namespace in _refused and not hasattr(operators, name.partition(".")[0])


class _LaterOverload:
    """An overload of an operator that plugrad lacks: a key of tables, which cannot be called."""

    def __init__(self, packet: _LaterOperator | _Operator, overload: str) -> None:
        self.overloadpacket = packet
        self._overload = overload
        self.__name__ = str(self)

    def name(self) -> str:
        """Namespace, name and overload: `"aten::_pin_memory"`."""
        overload = "" if self._overload == "default" else f".{self._overload}"
        return f"aten::{self.overloadpacket.__name__}{overload}"

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(not_yet(f"torch.ops.{self}"))

    def __str__(self) -> str:
        return f"{self.overloadpacket}.{self._overload}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.overloadpacket}', overload='{self._overload}')>"


class _LaterOperator:
    """An operator of PyTorch that plugrad lacks. It exists because packages put such operators into
    tables when they are imported; a call raises NotImplementedError."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
        for overload in self.overloads():
            setattr(self, overload, _LaterOverload(self, overload))

    def overloads(self) -> list[str]:
        """The names of the overloads; an operator without overloads has `default`."""
        return sorted(torch_operators()[self.__name__])

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(not_yet(f"torch.ops.{self}"))

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


# One object for each operator, so that one module finds what another put into a table.
_later = functools.cache(_LaterOperator)


class _Operator:
    """An operator that plugrad has. Overloads that it lacks, such as most with `out`, also exist
    for use in tables."""

    def __init__(self, name: str) -> None:
        self._packet = getattr(plugrad.ops.plugrad, name)
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._packet(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(self._packet, name)
        except AttributeError:
            if name not in torch_operators().get(self.__name__, ()):
                raise
        later = _LaterOverload(self, name)
        setattr(self, name, later)
        return later

    def __eq__(self, other: object) -> bool:
        packet = other._packet if isinstance(other, _Operator) else other
        name = getattr(packet, "_qualified_op_name", None)
        return bool(name == self._packet._qualified_op_name)

    def __hash__(self) -> int:
        return hash(self._packet._qualified_op_name)

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


_there = functools.cache(_Operator)


class _Aten:
    """The operators by PyTorch's names."""

    def __getattr__(self, name: str) -> Any:
        try:
            return _there(name)
        except AttributeError:
            if name not in torch_operators():
                raise
            return _later(name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(plugrad.ops.plugrad), *torch_operators()})

    def __repr__(self) -> str:
        return repr(plugrad.ops.plugrad)


aten: Any = _Aten()
