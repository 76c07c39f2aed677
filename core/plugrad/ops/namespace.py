"""`plugrad.ops.<namespace>.<name>.<overload>`: operators as attributes, found on first access."""

from __future__ import annotations

# Interpreted: it runs seldom, and classes have a __getattr__.
import inspect
import weakref
from typing import Any, Final

from plugrad.dispatch.backends.active import find_key
from plugrad.dispatch.binding import default_of
from plugrad.dispatch.families import load_family_of
from plugrad.dispatch.keys import DispatchKey
from plugrad.dispatch.operator import Operator, all_operators, declared_operators, find_operator
from plugrad.dispatch.plugin_hooks import load_operators
from plugrad.dispatch.schema import Argument, FunctionSchema
from plugrad.ops.arguments import (
    ArgumentMismatch,
    call_with_numbers,
    checked_arguments,
    fit_arguments,
)

# One object for each operator and for each name, as long as it is referenced: programs compare
# them by identity.
_overloads: Final[weakref.WeakValueDictionary[Operator, OpOverload]] = weakref.WeakValueDictionary()
_packets: Final[weakref.WeakValueDictionary[str, OpOverloadPacket]] = weakref.WeakValueDictionary()

# Tags are for inspecting an operator; its calls do not depend on them.
TAGS: Final[dict[str, tuple[Any, ...]]] = {}


class OpOverload:
    """One overload of an operator, such as ``plugrad.ops.plugrad.mul.Tensor``; calling it checks
    and converts the arguments by the schema.

    >>> import plugrad
    >>> op = plugrad.ops.plugrad.mul.Tensor
    >>> op
    <OpOverload(op='plugrad.mul', overload='Tensor')>
    >>> op.name(), str(op), op.overloadpacket
    ('plugrad::mul.Tensor', 'plugrad.mul.Tensor', <OpOverloadPacket(op='plugrad.mul')>)
    >>> op._schema.arguments[1].name
    'other'
    >>> op.has_kernel_for_dispatch_key("Autograd")
    True
    """

    def __init__(self, op: Operator) -> None:
        self.op = op
        self.namespace = op.namespace
        self.__name__ = op.full_name
        self.__qualname__ = f"{op.namespace}.{op.full_name}"
        self.__module__ = f"plugrad.ops.{op.namespace}"
        self.__doc__ = _documentation(op)

    @property
    def _schema(self) -> FunctionSchema:
        return self.op.schema

    @property
    def _opname(self) -> str:
        return self.op.name

    @property
    def _overloadname(self) -> str:
        return self.op.overload or "default"

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """All overloads of the operator."""
        return find_packet(self.namespace, self.op.name)

    @property
    def _overloadpacket(self) -> OpOverloadPacket:
        return self.overloadpacket

    @property
    def tags(self) -> list[Any]:
        """The arguments of `Library.define` for the operator."""
        return list(TAGS.get(self.op.qualified_name, ()))

    @property
    def __signature__(self) -> inspect.Signature:
        return signature_of(self.op.schema)

    def name(self) -> str:
        """Namespace, name and overload: ``"plugrad::mul.Tensor"``."""
        return self.op.qualified_name

    def has_kernel_for_dispatch_key(self, key: DispatchKey | str) -> bool:
        """Whether a kernel is registered for exactly this key."""
        wanted = find_key(key) if isinstance(key, str) else key
        return self.op.kernel_for(wanted) is not None

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return call_with_numbers(self.op, checked_arguments(self.op, args, kwargs))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "op":
            raise AttributeError(name)
        return getattr(self.op, name)

    def __deepcopy__(self, memo: Any) -> OpOverload:
        return self

    def __reduce__(self) -> Any:
        return (find_overload, (self.op.qualified_name,))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpOverload) and other.op is self.op

    def __hash__(self) -> int:
        return hash(self.op)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.op.name}.{self._overloadname}"

    def __repr__(self) -> str:
        return repr(self.op)


class OpOverloadPacket:
    """All overloads of one operator; calling it picks the one that the arguments fit."""

    def __init__(self, namespace: str, name: str, overloads: list[Operator]) -> None:
        self.namespace = namespace
        self.name = name
        self._overloads = [overload_of(op) for op in overloads]
        self.__name__ = name
        self.__qualname__ = f"{namespace}.{name}"
        self.__module__ = f"plugrad.ops.{namespace}"
        self.__doc__ = "\n\n".join(_documentation(op) for op in overloads)

    @property
    def _qualified_op_name(self) -> str:
        return f"{self.namespace}::{self.name}"

    @property
    def __signature__(self) -> inspect.Signature:
        if len(self._overloads) == 1:
            return self._overloads[0].__signature__
        return inspect.signature(call_overload_of)

    def overloads(self) -> list[str]:
        """Names of the overloads; an operator without one has ``default``."""
        return [overload._overloadname for overload in self._overloads]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if len(self._overloads) == 1:
            return self._overloads[0](*args, **kwargs)
        mismatches: list[str] = []
        for numbers in (False, True):
            mismatches.clear()
            for overload in self._overloads:
                try:
                    values = fit_arguments(overload.op, args, kwargs, numbers)
                except ArgumentMismatch as error:
                    mismatches.append(str(error))
                else:
                    return call_with_numbers(overload.op, values)
        raise RuntimeError(
            "Overloaded plugrad operator invoked from Python failed to match any schema:\n"
            + "\n\n".join(mismatches)
        )

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("_"):
            raise AttributeError(overload)
        for found in self._overloads:
            if found._overloadname == overload:
                return found
        raise AttributeError(
            f"the operator {self._qualified_op_name} has no overload {overload!r}; it has: "
            f"{', '.join(self.overloads())}"
        )

    def __deepcopy__(self, memo: Any) -> OpOverloadPacket:
        return self

    def __reduce__(self) -> Any:
        return (find_packet, (self.namespace, self.name))

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.overloads()]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OpOverloadPacket):
            return NotImplemented
        return self._qualified_op_name == other._qualified_op_name

    def __hash__(self) -> int:
        return hash(self._qualified_op_name)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self.namespace}.{self.name}')>"


class OpNamespace:
    """The operators of one namespace."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.__doc__ = f"The operators that are defined in the namespace {name!r}."

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name.startswith("__"):
            raise AttributeError(name)
        return find_packet(self._name, name)

    def __dir__(self) -> list[str]:
        names = {op.name for op in all_operators() if op.namespace == self._name}
        return [*super().__dir__(), *sorted(names)]

    def __repr__(self) -> str:
        return f"<plugrad.ops namespace {self._name!r}>"


def call_overload_of(*args: Any, **kwargs: Any) -> Any:
    """The signature of an operator with several overloads."""


def find_packet(namespace: str, name: str) -> OpOverloadPacket:
    """The overloads of an operator; AttributeError if there are none."""
    load_family_of(f"{namespace}::{name}")
    found = [op for op in declared_operators() if op.namespace == namespace and op.name == name]
    if not found:
        raise AttributeError(f"there is no operator {namespace}::{name}")
    packet = _packets.get(f"{namespace}::{name}")
    if packet is None or [each.op for each in packet._overloads] != found:
        packet = OpOverloadPacket(namespace, name, found)
        _packets[f"{namespace}::{name}"] = packet
    return packet


def overload_of(op: Operator) -> OpOverload:
    """What programs see of an operator."""
    overload = _overloads.get(op)
    if overload is None:
        overload = _overloads.setdefault(op, OpOverload(op))
    return overload


def find_overload(qualified_name: str) -> OpOverload:
    """The operator called ``ns::name.overload``; AttributeError if it does not exist."""
    op = find_operator(qualified_name.removesuffix(".default"))
    if op is None:
        raise AttributeError(f"there is no operator {qualified_name}")
    return overload_of(op)


def known_namespaces() -> list[str]:
    """The namespaces that operators are defined in, sorted."""
    return sorted({op.namespace for op in declared_operators()})


def find_namespace(name: str) -> OpNamespace:
    """The namespace's operators; the plugin of that name is loaded if there are none yet.

    Raises:
        AttributeError: there are none.
        PluginError: the plugin of that name cannot be used.
    """
    if name not in known_namespaces():
        load_operators(name)
    namespaces = known_namespaces()
    if name not in namespaces:
        raise AttributeError(
            f"no operators are defined in the namespace {name!r}; there are: "
            f"{', '.join(namespaces)}"
        )
    return OpNamespace(name)


def signature_of(schema: FunctionSchema) -> inspect.Signature:
    """A schema as Python's tools read it, with the schema's types as annotations."""
    parameters = [
        inspect.Parameter(
            argument.name,
            inspect.Parameter.KEYWORD_ONLY
            if argument.kwarg_only
            else inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=_default(argument),
            annotation=str(argument.type),
        )
        for argument in schema.arguments
    ]
    returns = str(schema).partition(" -> ")[2]
    return inspect.Signature(parameters, return_annotation=returns)


def _default(argument: Argument) -> Any:
    return default_of(argument) if argument.has_default else inspect.Parameter.empty


def _documentation(op: Operator) -> str:
    schema = f"Schema: {op.namespace}::{op.schema_text}"
    return f"{op.doc}\n\n{schema}" if op.doc else schema
