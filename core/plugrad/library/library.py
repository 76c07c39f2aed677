"""`Library`: definitions and kernels that are added and removed together."""

from __future__ import annotations

import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from plugrad.codegen.load import load, unload
from plugrad.dispatch import keys
from plugrad.dispatch.adapters import BelowAutograd, WithoutKeyset
from plugrad.dispatch.backends.active import backend_by_number, find_key
from plugrad.dispatch.backends.candidates import plain
from plugrad.dispatch.keys import DispatchKey
from plugrad.dispatch.local_state import LocalState
from plugrad.dispatch.operator import (
    FALLTHROUGH,
    Operator,
    declare,
    find_operator,
    find_or_load,
    register_fallback,
    retract,
)
from plugrad.dispatch.plugin_hooks import note
from plugrad.dispatch.registration import RegistrationHandle
from plugrad.dispatch.schema import parse_schema
from plugrad.dispatch.scope import Scope
from plugrad.errors import DuplicateDefinitionError
from plugrad.library.fakes import META, FakeKernel, check_fake, source_of
from plugrad.library.kernels import CountsWrites, OnArrays, OnTensors
from plugrad.library.schemas import check_tags
from plugrad.library.tags import as_tags
from plugrad.library.transaction import Transaction
from plugrad.ops.namespace import TAGS, OpOverload

fallthrough_kernel: Final = FALLTHROUGH

_KINDS: Final = ("DEF", "IMPL", "FRAGMENT")
# The DEF library of each namespace.
_owners: Final[dict[str, Library]] = {}


class Library(Scope):
    """A set of definitions and kernels that are added and removed together.

    Args:
        ns: the operators' namespace.
        kind: "DEF" for the one library that owns a namespace, "FRAGMENT" for others that define
            operators in it, "IMPL" for those that only add kernels.
        dispatch_key: the default key of `impl`.

    >>> import plugrad
    >>> lib = plugrad.library.Library("demo_lib", "DEF")
    >>> lib.define("twice(Tensor self) -> Tensor")
    'twice'
    >>> handle = lib.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
    >>> plugrad.ops.demo_lib.twice(plugrad.ones(2))
    tensor([2., 2.])
    >>> lib._destroy()
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in _KINDS:
            raise ValueError(f"Unsupported library kind: {kind!r}; expected one of {_KINDS}")
        if not ns.isidentifier():
            raise ValueError(f"a library's namespace must be an identifier, got {ns!r}")
        if ns == "plugrad" and kind == "DEF":
            raise ValueError("plugrad is a reserved namespace; use kind 'FRAGMENT' or 'IMPL'")
        self.ns = ns
        self.kind = kind
        self.dispatch_key = dispatch_key
        self._operators: list[Operator] = []
        self._handles: list[Any] = []
        self._families: list[types.ModuleType] = []
        if kind == "DEF":
            self._own_namespace()

    def _own_namespace(self) -> None:
        note(self)
        with Transaction(self._handles) as whole:
            whole.on_failure(self._destroy)
            if _owners.setdefault(self.ns, self) is not self:
                raise DuplicateDefinitionError(
                    f"Only a single library can be a DEF for the namespace {self.ns!r}, and there "
                    "is one already; use kind 'FRAGMENT'",
                    "namespace",
                    self.ns,
                )
            whole.commit()

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an operator by its schema; returns its name.

        Args:
            schema: such as ``"scaled(Tensor self, float by=2.0) -> Tensor"``.
            alias_analysis: "", "FROM_SCHEMA" or "CONSERVATIVE"; the schema decides in any case.
            tags: a `Tag`, or several.

        Raises:
            SchemaError: the schema cannot be read; the message points at the column.
            RuntimeError: the library is of kind IMPL, or the operator is defined already.
            ValueError: the schema does not fit the tags, or names another namespace.

        >>> import plugrad
        >>> with plugrad.library.Library("demo_schema", "DEF") as lib:
        ...     lib.define("scaled(Tensor self, float by=2.0) -> Tensor")
        'scaled'
        """
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        chosen = as_tags(tags)
        if self.kind == "IMPL":
            raise RuntimeError("define() needs a library of kind 'DEF' or 'FRAGMENT', not 'IMPL'")
        parsed = parse_schema(schema)
        if parsed.namespace is not None and parsed.namespace != self.ns:
            raise ValueError(
                f"the schema names the namespace {parsed.namespace!r}, the library is for "
                f"{self.ns!r}"
            )
        check_tags(parsed, chosen)
        op = Operator(self.ns, parsed.name, parsed.overload, schema, differentiable=True)
        with Transaction(self._handles) as whole:
            whole.on_failure(lambda: self._forget(op))
            # Stored before it is declared, so that the library can always undo it.
            self._operators.append(op)
            declare(op)
            TAGS[op.qualified_name] = chosen
            if op.schema.mutates:
                # Or autograd would not notice what kernels on arrays write.
                op.register(keys.AD_INPLACE_OR_VIEW_KEY, CountsWrites(op), whole.handles)
            whole.commit()
        return op.full_name

    def _forget(self, op: Operator) -> None:
        _retract(op)
        if op in self._operators:
            self._operators.remove(op)

    def load(
        self,
        source: str | Path,
        functions: Mapping[str, Any] | types.ModuleType | None = None,
        *,
        name: str | None = None,
    ) -> types.ModuleType:
        """Define the operators of a YAML file or text; see docs/writing_operators.md.

        The operators belong to the library and are removed with it. Returns the module with their
        public functions; the operators are also available as ``plugrad.ops.<ns>.<name>``.

        Args:
            source: path of a YAML file, or its text.
            functions: the functions that the entries name, such as prepare, composite and formula
                functions, as a module or a mapping.
            name: name of the family, by default the file's stem.

        Raises:
            RuntimeError: the library is of kind IMPL, or an operator is defined already.
            EntryError: an entry is wrong; nothing is defined then.

        >>> import plugrad
        >>> with plugrad.library.Library("demo_yaml", "DEF") as lib:
        ...     ops = lib.load('''
        ... - func: cube(Tensor self) -> Tensor
        ...   composite: third_power
        ...   doc: The third power.
        ... ''', {"third_power": lambda x: x * x * x})
        ...     ops.cube(plugrad.full((2,), 2.0))
        tensor([8., 8.])
        """
        if self.kind == "IMPL":
            raise RuntimeError("load() needs a library of kind 'DEF' or 'FRAGMENT', not 'IMPL'")
        loaded: list[types.ModuleType] = []
        with Transaction(self._handles) as whole:
            whole.on_failure(lambda: self._unload(loaded))
            family = load(source, namespace=self.ns, functions=functions, name=name, kept=loaded)
            self._families.append(family)
            whole.commit()
        return family

    def _unload(self, families: list[types.ModuleType]) -> None:
        for family in families:
            unload(family)
            if family in self._families:
                self._families.remove(family)

    def impl(
        self,
        op_name: Any,
        fn: Any,
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
        raw: bool | None = None,
    ) -> RegistrationHandle:
        """Register a kernel; the handle's `remove()` removes it again.

        A kernel for a backend's key (``"CPU"``) works on raw arrays by default; one
        for any other key works on tensors.

        Args:
            op_name: the operator's name, with its overload if it has one.
            fn: the kernel, or `fallthrough_kernel`.
            dispatch_key: default the library's own, else CompositeImplicitAutograd.
            with_keyset: pass the key set as the first argument, for redispatch.
            allow_override: replace another library's kernel for the same key, or the backend's own.
            raw: whether a kernel for a backend's key gets the backend's arrays, which is the
                default for all backends but "meta", or tensors, below autograd.

        Raises:
            RuntimeError: there is no such operator, or it has a kernel for the key.
            ValueError: `raw` for a key that is not a backend's.

        >>> import plugrad
        >>> with plugrad.library.Library("demo_impl", "DEF") as lib:
        ...     _ = lib.define("scaled(Tensor self, float by=2.0) -> Tensor")
        ...     _ = lib.impl("scaled", lambda array, by: array * by, "CPU")
        ...     plugrad.ops.demo_impl.scaled(plugrad.ones(2))
        tensor([2., 2.])
        """
        name = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        return self._impl(op_name, fn, find_key(name), with_keyset, allow_override, raw, None)

    def _impl(
        self,
        op_name: Any,
        fn: Any,
        key: DispatchKey,
        with_keyset: bool,
        allow_override: bool,
        raw: bool | None,
        kept: list[Any] | None,
    ) -> RegistrationHandle:
        op = self._find(op_name)
        if key is META:
            check_fake(op)
        former = op.kernel_for(key)
        if former is not None and not isinstance(former, CountsWrites) and not allow_override:
            raise DuplicateDefinitionError(
                f"{op.qualified_name} has a kernel for {key.name} already; pass "
                "allow_override=True to replace it",
                "kernel",
                f"{op.qualified_name} {key.name}",
            )
        if former is None and not allow_override and key is not META:
            _refuse_second(op, key)
        return self._add(op, key, self._adapt(op, key, fn, with_keyset, raw), kept)

    def _add(
        self, op: Operator, key: DispatchKey, kernel: Any, kept: list[Any] | None = None
    ) -> RegistrationHandle:
        """Register what follows the calling convention of kernels already.

        Args:
            kept: gets the handle instead of the library.
        """
        return op.register(key, kernel, self._handles if kept is None else kept)

    def _register_fake(
        self, op_name: Any, fn: Any, _stacklevel: int = 1, *, allow_override: bool = True
    ) -> RegistrationHandle:
        """Register a fake; see `plugrad.library.register_fake`."""
        op = self._find(op_name)
        check_fake(op)
        if not callable(fn):
            raise TypeError(f"register_fake(): expected a callable, got {type(fn).__name__}")
        if not allow_override and op.kernel_for(META) is not None:
            raise RuntimeError(
                f"register_fake(...): the operator {op.qualified_name} already has a fake impl "
                "registered; pass allow_override=True to replace it"
            )
        return self._add(op, META, FakeKernel(op, fn, source_of(_stacklevel)))

    def _find(self, op_name: Any) -> Operator:
        if isinstance(op_name, Operator):
            return op_name
        if isinstance(op_name, OpOverload):
            return op_name.op
        text = str(op_name)
        qualified = text if "::" in text else f"{self.ns}::{text}"
        if not qualified.startswith(self.ns + "::"):
            raise ValueError(f"impl(): {qualified!r} is not in the library's namespace {self.ns!r}")
        op = find_or_load(qualified)
        if op is None:
            raise RuntimeError(
                f"There was no operator {qualified!r} to register a kernel for; define() it first"
            )
        return op

    def _adapt(
        self, op: Operator, key: DispatchKey, fn: Any, with_keyset: bool, raw: bool | None
    ) -> Any:
        is_backend = key.functionality == keys.DENSE
        if raw and not is_backend:
            raise ValueError(f"impl(): {key.name} is not a backend's key, it has no raw arrays")
        if fn is FALLTHROUGH:
            return fn
        if not callable(fn):
            raise TypeError(f"impl(): the kernel must be callable, got {type(fn).__name__}")
        if is_backend and not with_keyset:
            on_arrays = key is not META if raw is None else raw
            return OnArrays(op, key.backend, fn) if on_arrays else OnTensors(op, fn)
        if with_keyset:
            return fn
        if key is keys.COMPOSITE_EXPLICIT_AUTOGRAD:
            return BelowAutograd(fn, op)
        return WithoutKeyset(fn, op)

    def fallback(
        self, fn: Any, dispatch_key: str = "", *, with_keyset: bool = False
    ) -> RegistrationHandle:
        """Register a kernel for every operator that has none for a key.

        It is called as `fn(op, *args)`, or `fn(op, keyset, *args)` with `with_keyset`. For a
        backend's key it is not used for operators that are composed of others, unless `fn` is an
        object with a method `precedes(op)` that returns True for the operator, and `with_keyset` is
        set.
        """
        name = dispatch_key or self.dispatch_key
        if not name:
            raise ValueError("fallback(): a dispatch key is needed")
        kernel = fn if with_keyset or fn is FALLTHROUGH else _FallbackWithoutKeyset(fn)
        return register_fallback(find_key(name), kernel, self._handles)

    def _destroy(self) -> None:
        """Undo everything the library defined and registered."""
        for handle in reversed(self._handles):
            handle.remove()
        for op in self._operators:
            _retract(op)
        for family in self._families:
            unload(family)
        self._families = []
        self._handles = []
        self._operators = []
        if _owners.get(self.ns) is self:
            del _owners[self.ns]

    @property
    def owns_namespace(self) -> bool:
        """Whether it is the namespace's one library of kind DEF.

        >>> import plugrad
        >>> with plugrad.library.Library("demo_owner", "DEF") as lib:
        ...     part = plugrad.library.Library("demo_owner", "FRAGMENT")
        ...     lib.owns_namespace, part.owns_namespace
        (True, False)
        """
        return _owners.get(self.ns) is self

    def read(self, state: LocalState) -> Any:
        return None

    def change(self, state: LocalState) -> None:
        pass

    def value(self) -> Library:
        return self

    def restore(self, state: LocalState, before: Any) -> None:
        self._destroy()

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})"


def _retract(op: Operator) -> None:
    if find_operator(op.qualified_name) is op:
        TAGS.pop(op.qualified_name, None)
        retract(op)


def _refuse_second(op: Operator, key: DispatchKey) -> None:
    """DuplicateDefinitionError if an active backend has a kernel for an operator."""
    active = backend_by_number(key.backend) if key.functionality == keys.DENSE else None
    found = [] if active is None else plain(active.candidates(op.kernel_name, op.overload))
    if active is not None and found:
        raise DuplicateDefinitionError(
            f"{op.qualified_name} has a kernel for {key.name} already, from "
            f"{found[0].owner or active.name}; pass allow_override=True to replace it",
            "kernel",
            f"{op.qualified_name} {key.name}",
        )


class _FallbackWithoutKeyset:
    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, op: Operator, keyset: int, *args: Any) -> Any:
        return self.function(op, *args)
