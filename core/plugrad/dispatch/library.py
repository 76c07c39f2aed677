"""`plugrad.library`: define operators and register kernels, as torch.library does."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any, Final

from plugrad.dispatch import keys
from plugrad.dispatch.backend import backend_by_number, find_backend
from plugrad.dispatch.keys import DispatchKey, dispatch_key
from plugrad.dispatch.operator import (
    FALLTHROUGH,
    BelowAutograd,
    Operator,
    RegistrationHandle,
    WithoutKeyset,
    all_operators,
    declare,
    find_operator,
    register_fallback,
    retract,
)
from plugrad.dispatch.schema import parse_schema
from plugrad.errors import BackendNotFoundError

fallthrough_kernel: Final = FALLTHROUGH

_KINDS: Final = ("DEF", "IMPL", "FRAGMENT")
_defined: Final[dict[str, str]] = {}
_lock: Final[Any] = threading.Lock()


class _RawWrapper:
    """How a kernel on arrays is wrapped; the tensor floor installs it."""

    def __init__(self) -> None:
        self.wrap: Callable[[Operator, Any, Any], Any] | None = None


_raw: Final = _RawWrapper()


def set_raw_wrapper(wrap: Callable[[Operator, Any, Any], Any]) -> None:
    _raw.wrap = wrap


class Library:
    """A set of definitions and kernels that come and go together.

    Args:
        ns: the operators' namespace.
        kind: "DEF" for the one library that owns a namespace, "FRAGMENT" for others that define
            operators in it, "IMPL" for those that only add kernels.
        dispatch_key: what `impl` registers for if it is not told.

    >>> import numpy as np, plugrad
    >>> lib = plugrad.library.Library("demo_lib", "DEF")
    >>> lib.define("twice(Tensor self) -> Tensor")
    'twice'
    >>> handle = lib.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
    >>> plugrad.ops.demo_lib.twice(plugrad.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in _KINDS:
            raise ValueError(f"Unsupported library kind: {kind!r}; expected one of {_KINDS}")
        if not ns.isidentifier():
            raise ValueError(f"a library's namespace must be an identifier, got {ns!r}")
        if ns == "plugrad" and kind == "DEF":
            raise ValueError("plugrad is a reserved namespace; use kind 'FRAGMENT' or 'IMPL'")
        if kind == "DEF":
            with _lock:
                if ns in _defined:
                    raise RuntimeError(
                        f"Only a single library can be a DEF for the namespace {ns!r}, and there "
                        "is one already; use kind 'FRAGMENT'"
                    )
                _defined[ns] = kind
        self.ns = ns
        self.kind = kind
        self.dispatch_key = dispatch_key
        self._operators: list[Operator] = []
        self._handles: list[RegistrationHandle] = []

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an operator by its schema; returns its name.

        Raises:
            SchemaError: the schema cannot be read; the message points at the column.
            RuntimeError: the library is of kind IMPL, or the operator is defined already.
        """
        if self.kind == "IMPL":
            raise RuntimeError("define() needs a library of kind 'DEF' or 'FRAGMENT', not 'IMPL'")
        parsed = parse_schema(schema)
        if parsed.namespace is not None and parsed.namespace != self.ns:
            raise ValueError(
                f"the schema names the namespace {parsed.namespace!r}, the library is for "
                f"{self.ns!r}"
            )
        op = declare(Operator(self.ns, parsed.name, parsed.overload, schema, differentiable=True))
        self._operators.append(op)
        return op.full_name

    def impl(
        self,
        op_name: Any,
        fn: Any,
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> RegistrationHandle:
        """Register a kernel; the handle's `remove()` takes it out again.

        A kernel for a backend's key (``"CPU"``) works on raw arrays; one for any other key works
        on tensors.

        Args:
            op_name: the operator's name, with its overload if it has one.
            fn: the kernel, or `fallthrough_kernel`.
            dispatch_key: default the library's own, else CompositeImplicitAutograd.
            with_keyset: pass the key set as first argument, for redispatch.
            allow_override: replace another library's kernel for the same key.

        Raises:
            RuntimeError: there is no such operator, or it has a kernel for the key.
        """
        name = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        key = _key(name)
        op = self._find(op_name)
        if op.kernel_for(key) is not None and not allow_override:
            raise RuntimeError(
                f"{op.qualified_name} has a kernel for {key.name} already; pass "
                "allow_override=True to replace it"
            )
        handle = op.register(key, self._adapt(op, key, fn, with_keyset))
        self._handles.append(handle)
        return handle

    def _find(self, op_name: Any) -> Operator:
        if isinstance(op_name, Operator):
            return op_name
        text = str(op_name)
        qualified = text if "::" in text else f"{self.ns}::{text}"
        if not qualified.startswith(self.ns + "::"):
            raise ValueError(f"impl(): {qualified!r} is not in the library's namespace {self.ns!r}")
        op = find_operator(qualified)
        if op is None:
            raise RuntimeError(
                f"There was no operator {qualified!r} to register a kernel for; define() it first"
            )
        return op

    def _adapt(self, op: Operator, key: DispatchKey, fn: Any, with_keyset: bool) -> Any:
        if fn is FALLTHROUGH:
            return fn
        if not callable(fn):
            raise TypeError(f"impl(): the kernel must be callable, got {type(fn).__name__}")
        if key.functionality == keys.DENSE:
            active = backend_by_number(key.backend)
            if active is not None and _raw.wrap is not None:
                return _raw.wrap(op, active, fn)
        if with_keyset:
            return fn
        if key is keys.COMPOSITE_EXPLICIT_AUTOGRAD:
            return BelowAutograd(fn)
        return WithoutKeyset(fn)

    def fallback(
        self, fn: Any, dispatch_key: str = "", *, with_keyset: bool = False
    ) -> RegistrationHandle:
        """Register a kernel for every operator that has none for a key.

        It is called as `fn(op, *args)`, or `fn(op, keyset, *args)` with `with_keyset`.
        """
        name = dispatch_key or self.dispatch_key
        if not name:
            raise ValueError("fallback(): a dispatch key is needed")
        kernel = fn if with_keyset or fn is FALLTHROUGH else _FallbackWithoutKeyset(fn)
        handle = register_fallback(_key(name), kernel)
        self._handles.append(handle)
        return handle

    def _destroy(self) -> None:
        """Undo everything the library defined and registered."""
        for handle in reversed(self._handles):
            handle.remove()
        for op in self._operators:
            retract(op)
        self._handles = []
        self._operators = []
        if self.kind == "DEF":
            with _lock:
                _defined.pop(self.ns, None)

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._destroy()

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})"


class _FallbackWithoutKeyset:
    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, op: Operator, keyset: int, *args: Any) -> Any:
        return self.function(op, *args)


def _key(name: str) -> DispatchKey:
    """The key by name; a backend that is installed but not loaded yet is loaded for it."""
    try:
        return dispatch_key(name)
    except ValueError:
        backend = name.removeprefix("Autograd").lower()
        with contextlib.suppress(BackendNotFoundError):
            find_backend(backend)
        return dispatch_key(name)


def define(qualname: str, schema: str, *, lib: Library | None = None, tags: Any = ()) -> None:
    """Define ``ns::name`` with a schema's parameters and returns, as torch.library.define does."""
    namespace, separator, name = qualname.partition("::")
    if not separator:
        raise ValueError(f"define(): expected a name such as 'ns::name', got {qualname!r}")
    owner = Library(namespace, "FRAGMENT") if lib is None else lib
    owner.define(name + schema)
    _kept.append(owner)


def impl(qualname: str, types: Any, func: Any = None, *, lib: Library | None = None) -> Any:
    """Register a kernel for a dispatch key or for backends by name; may be a decorator."""
    namespace, separator, _ = qualname.partition("::")
    if not separator:
        raise ValueError(f"impl(): expected a name such as 'ns::name', got {qualname!r}")
    owner = Library(namespace, "IMPL") if lib is None else lib
    names = [types] if isinstance(types, str) else list(types)

    def register(function: Any) -> Any:
        for name in names:
            owner.impl(qualname, function, _key_name(name))
        _kept.append(owner)
        return function

    return register if func is None else register(func)


def _key_name(name: str) -> str:
    if name == "default":
        return "CompositeExplicitAutograd"
    number = keys.backend_number(name)
    active = None if number < 0 else backend_by_number(number)
    if active is None:
        return name
    return active.backend.key_name or active.name.capitalize()


# Libraries that module-level functions made live as long as the process.
_kept: Final[list[Library]] = []


def all_namespaces() -> list[str]:
    """The namespaces that operators are defined in."""
    return sorted({op.namespace for op in all_operators()})
