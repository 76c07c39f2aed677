"""Operators: a name, a schema, a table of kernels by dispatch key, and the cache of decisions.

Calling one is three steps, which generated code spells out in line:

    keyset = (union of the tensors' key sets | included) & kept
    kernel = operator.lookup(keyset)          # one dict look-up, filled on first use
    result = kernel(keyset, *args)

A kernel for a functionality above the backends does its part and calls
`operator.lookup(keyset & AFTER_ITS_KEY)` to go on: that is redispatch.
"""

from __future__ import annotations

from typing import Any, Final, final

from mypy_extensions import i64

from plugrad.dispatch import keys
from plugrad.dispatch.backends.active import (
    ActiveBackend,
    backend_by_number,
    set_change_listener,
    set_operator_names,
)
from plugrad.dispatch.backends.candidates import plain
from plugrad.dispatch.binding import bind
from plugrad.dispatch.families import load_families, load_family_of, set_undo, waiting
from plugrad.dispatch.kernel_hooks import KERNEL_HOOKS, keyset_of_arguments
from plugrad.dispatch.keys import DispatchKey
from plugrad.dispatch.local_state import current_state
from plugrad.dispatch.missing_kernels import (
    declined_kernels,
    inactive_backend,
    missing_kernel,
    no_key_served,
)
from plugrad.dispatch.plugin_hooks import load_operators, maker_of, note
from plugrad.dispatch.registration import LOCK, RegistrationHandle
from plugrad.dispatch.schema import FunctionSchema, parse_schema
from plugrad.errors import DuplicateDefinitionError, OperatorNotFoundError


@final
class _Fallthrough:
    """Marks a key without a kernel: dispatch continues with the next key."""

    def __repr__(self) -> str:
        return "fallthrough_kernel"


FALLTHROUGH: Final = _Fallthrough()


@final
class FallbackFor:
    """A key's fallback, bound to the operator that it serves."""

    def __init__(self, op: Operator, function: Any) -> None:
        self.op = op
        self.function = function

    def __call__(self, keyset: i64, *args: Any) -> Any:
        return self.function(self.op, keyset, *args)


@final
class Resolved:
    """The answer to the look-up that was made last."""

    def __init__(self, keyset: i64, kernel: Any) -> None:
        self.keyset: i64 = keyset
        self.kernel: Any = kernel


_NOTHING_RESOLVED: Final = Resolved(-1, None)

# The `forward_rule` of a differentiable operator that should have one.
MISSING_RULE: Final = "missing"


@final
class Operator:
    """One overload of an operator, such as ``plugrad::mul.Tensor``.

    Attributes:
        namespace, name, overload: the parts of its name.
        structure: "unary", "binary" or "binary_alpha" if the core promotes and broadcasts for it;
            "inplace_view" if it makes its tensor a view of itself.
        result: how a structured operator's dtype is computed: "promote", "float", "bool", "real" or
            "complex".
        prepare: checks and normalises arguments before a raw kernel sees them, or None.
        differentiable: whether a gradient flows; composites inherit it from the operators they
            call.
        level: "core" if every backend must be able to compute it, natively or by its decomposition,
            else "full".
        doc: its description, a sentence or a paragraph.
        autograd_kernel: the generated kernel that records it, which `call_*` calls natively.
        forward_rule: its `ForwardRule`, which computes the tangents of its results; None if it is a
            composite or not differentiable, `MISSING_RULE` if its entry lacks one.
    """

    def __init__(
        self,
        namespace: str,
        name: str,
        overload: str,
        schema_text: str,
        structure: str = "",
        result: str = "promote",
        prepare: Any = None,
        differentiable: bool = False,
        level: str = "full",
        doc: str = "",
    ) -> None:
        self.namespace = namespace
        self.name = name
        self.overload = overload
        self.full_name: str = f"{name}.{overload}" if overload else name
        self.qualified_name: str = f"{namespace}::{self.full_name}"
        self.schema_text = schema_text
        self.structure = structure
        self.result = result
        self.prepare: Any = prepare
        self.differentiable = differentiable
        self.doc = doc
        self.level = level
        self.forward_rule: Any = None
        self.autograd_kernel: Any = None
        self._schema: FunctionSchema | None = None
        self._kernels: dict[DispatchKey, list[Any]] = {}
        self.resolved: dict[int, Any] = {}
        self._after_declined: dict[int, Any] = {}
        # Calls and redispatches mostly look up the same keys as last time.
        self._last_call = _NOTHING_RESOLVED
        self._last_below = _NOTHING_RESOLVED
        self._last_dense = _NOTHING_RESOLVED
        self._last_forward = _NOTHING_RESOLVED

    @property
    def schema(self) -> FunctionSchema:
        """The parsed schema."""
        if self._schema is None:
            self._schema = parse_schema(self.schema_text)
        return self._schema

    def lookup(self, keyset: i64) -> Any:
        """The kernel that serves a key set."""
        last = self._last_call
        if last.keyset == keyset:
            return last.kernel
        return self._look_up(keyset, 0)

    def lookup_below(self, keyset: i64) -> Any:
        """`lookup` for a redispatch from autograd, which uses other key sets than calls do."""
        last = self._last_below
        if last.keyset == keyset:
            return last.kernel
        return self._look_up(keyset, 1)

    def lookup_dense(self, keyset: i64) -> Any:
        """`lookup` for a redispatch from ADInplaceOrView."""
        last = self._last_dense
        if last.keyset == keyset:
            return last.kernel
        return self._look_up(keyset, 2)

    def lookup_forward(self, keyset: i64) -> Any:
        """`lookup` for a redispatch from ForwardAD, and for the operators of forward rules."""
        last = self._last_forward
        if last.keyset == keyset:
            return last.kernel
        return self._look_up(keyset, 3)

    def _look_up(self, keyset: i64, place: int) -> Any:
        resolved = self.resolved
        found = Resolved(keyset, self._resolve(keyset))
        with LOCK:  # or a registration could come between the check and the note
            if self.resolved is resolved:
                if place == 0:
                    self._last_call = found
                elif place == 1:
                    self._last_below = found
                elif place == 2:
                    self._last_dense = found
                else:
                    self._last_forward = found
        return found.kernel

    def forget_resolved(self) -> None:
        """Clear resolved kernels, because kernels were added or removed."""
        self.resolved = {}
        self._after_declined = {}
        self._last_call = _NOTHING_RESOLVED
        self._last_below = _NOTHING_RESOLVED
        self._last_dense = _NOTHING_RESOLVED
        self._last_forward = _NOTHING_RESOLVED

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the operator by its schema, dispatching on its tensors."""
        return self.call(self.bind(args, kwargs))

    def call(self, values: tuple[Any, ...]) -> Any:
        """Call it with all arguments in the order of the schema, dispatching on the tensors."""
        state = current_state()
        keyset = (keyset_of_arguments(values) | state.included) & state.kept
        if state.trace is not None:
            return state.trace.dispatch("call", self, keyset, values)
        return self.lookup(keyset)(keyset, *values)

    def run_heard(self, kind: str, keyset: i64, args: tuple[object, ...]) -> Any:
        """Run the kernel of a key set after all listeners; `kind` is "call" or "redispatch"."""
        kernel = self.lookup(keyset) if kind == "call" else self.lookup_below(keyset)
        count = len(args)
        # Without a list of arguments, which would have to be made.
        if count == 1:
            return kernel(keyset, args[0])
        if count == 2:
            return kernel(keyset, args[0], args[1])
        if count == 3:
            return kernel(keyset, args[0], args[1], args[2])
        return kernel(keyset, *args)

    def redispatch(self, keyset: i64, *args: Any) -> Any:
        """Go on with a reduced key set, from within a kernel; all arguments by position."""
        state = current_state()
        if state.trace is not None:
            return state.trace.dispatch("redispatch", self, keyset, args)
        return self.lookup(keyset)(keyset, *args)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments in schema order, defaults filled in; TypeError as Python would raise."""
        return bind(self.full_name, self.schema, self.schema_text, args, kwargs)

    def register(
        self, key: DispatchKey, kernel: Any, kept: list[Any] | None = None
    ) -> RegistrationHandle:
        """Add a kernel that follows the calling convention `kernel(keyset, *args)`.

        A later registration for the same key takes precedence until its handle removes it.

        Args:
            kept: gets the handle before the kernel is there.
        """
        handle = RegistrationHandle(
            self._kernels, key, kernel, self.forget_resolved, self.qualified_name
        )
        if kept is not None:
            kept.append(handle)
        note(handle)
        with LOCK:
            self._kernels[key] = [*self._kernels.get(key, ()), kernel]
            self.forget_resolved()
        return handle

    def kernel_for(self, key: DispatchKey) -> Any:
        """The kernel registered for exactly this key, or None."""
        stack = self._kernels.get(key)
        return stack[-1] if stack else None

    def registered_keys(self) -> list[DispatchKey]:
        """The keys, aliases among them, that a kernel is registered for."""
        return list(self._kernels)

    def resolve_key(self, keyset: i64) -> str:
        """Name of the key that handles a key set, as a trace prints it."""
        return self.serving_key(keyset).name

    def serving_key(self, keyset: i64) -> DispatchKey:
        """The key that handles a key set."""
        key, _ = self._find(keyset)
        return key

    def _resolve(self, keyset: i64) -> Any:
        # A registration replaces the dict, so what is found is never stored in a newer one.
        resolved = self.resolved
        kernel = resolved.get(keyset)
        if kernel is None:
            _, kernel = self._find(keyset)
            resolved[keyset] = kernel
        return kernel

    def _find(self, keyset: i64) -> tuple[DispatchKey, Any]:
        candidates = keys.keys_of(keyset)
        for key in candidates:
            kernel = self._kernel_at(key)
            if kernel is not None and kernel is not FALLTHROUGH:
                return key, kernel
        if keyset & keys.BACKEND_MASK == 0:
            # No argument is a tensor: try decompositions, which need no backend.
            for key in (keys.COMPOSITE_IMPLICIT_AUTOGRAD, keys.COMPOSITE_EXPLICIT_AUTOGRAD):
                kernel = self.kernel_for(key)
                if kernel is not None:
                    return key, kernel
        raise self._no_kernel(keyset)

    def _kernel_at(self, key: DispatchKey) -> Any:
        kernel = self.kernel_for(key)
        if kernel is not None:
            return kernel
        active: ActiveBackend | None = None
        if key.functionality == keys.DENSE:
            if key.backend == keys.OUTER_LEVEL:
                return KERNEL_HOOKS.outer_level(self)
            active = backend_by_number(key.backend)
            if active is not None:
                made = KERNEL_HOOKS.make(self, active, True)
                if made is not None:
                    return made
            decomposition = self._decomposition()
            if decomposition is not None:
                first = _first_fallback(key, self)
                return decomposition if first is None else FallbackFor(self, first)
        elif key.functionality == keys.AUTOCAST:
            if key.backend == keys.OUTER_LEVEL:
                return KERNEL_HOOKS.autocast_at_levels(self)
            backend = backend_by_number(key.backend)
            cast = None if backend is None else KERNEL_HOOKS.autocast(self, backend)
            if cast is not None:
                return cast
        elif key.functionality == keys.TRANSFORMS:
            return KERNEL_HOOKS.transforms(self)
        elif key.functionality == keys.FORWARD_AD:
            forward = KERNEL_HOOKS.forward(self)
            if forward is not None:
                return forward
        elif key.functionality == keys.FUNCTIONALIZE:
            return KERNEL_HOOKS.functionalize(self)
        elif key.functionality == keys.AUTOGRAD:
            kernel = self.kernel_for(keys.AUTOGRAD_ALIAS)
            if kernel is not None:
                return kernel
            if not self._has_own_backend_kernel(key):
                implicit = self.kernel_for(keys.COMPOSITE_IMPLICIT_AUTOGRAD)
                if implicit is not None:
                    return implicit
        stack = _fallbacks.get(key)
        if not stack:
            if key.functionality == keys.AUTOGRAD and self.differentiable:
                return KERNEL_HOOKS.without_gradient(self)
            if active is not None and active.fallback:
                return KERNEL_HOOKS.on_host(self, active)
            if key.mask & keys.MATH_BITS:
                return KERNEL_HOOKS.math_bits(self)
            return None
        fallback = stack[-1]
        return fallback if fallback is FALLTHROUGH else FallbackFor(self, fallback)

    def _decomposition(self) -> Any:
        explicit = self.kernel_for(keys.COMPOSITE_EXPLICIT_AUTOGRAD)
        if explicit is not None:
            return explicit
        return self.kernel_for(keys.COMPOSITE_IMPLICIT_AUTOGRAD)

    def next_kernel(self, active: ActiveBackend, registered: bool) -> Any:
        """The kernel that runs where one on a backend's arrays has declined.

        Args:
            registered: whether that was one of `Library.impl`; then the backend's is next.

        Raises:
            OperatorNotFoundError: there is none.
        """
        place = 2 * active.number + registered
        known = self._after_declined
        found = known.get(place)
        if found is None:
            found = KERNEL_HOOKS.make(self, active, registered)
            if found is None:
                found = self._decomposition()
            if found is None and active.fallback:
                found = KERNEL_HOOKS.on_host(self, active)
            if found is None:
                name = self.qualified_name
                raise OperatorNotFoundError(
                    declined_kernels(name, active.key_name, active.kernels_of(name)),
                    operator=name,
                    backend=active.name,
                    primitive=name,
                )
            known[place] = found
        return found

    def kernel_owner(self, keyset: i64) -> tuple[str, bool]:
        """The owner of the kernel that a backend runs first for a key set, and whether that is not
        the backend itself; empty if there is no kernel, for example for a decomposed operator."""
        key, kernel = self._find(keyset)
        active = backend_by_number(key.backend) if key.functionality == keys.DENSE else None
        if active is None or kernel is self._decomposition():
            return "", False
        if self.kernel_for(key) is not None:
            return maker_of(f"{self.qualified_name} {key.name}"), True
        found = plain(active.candidates(self.kernel_name, self.overload))
        return (found[0].owner, not found[0].own) if found else ("", False)

    @property
    def kernel_name(self) -> str:
        """What kernels on arrays are called, without overload."""
        return self.name if self.namespace == "plugrad" else f"{self.namespace}::{self.name}"

    def _has_own_backend_kernel(self, autograd_key: DispatchKey) -> bool:
        """Whether a backend overrides a decomposition; its gradient must then be given too."""
        name = autograd_key.name[len("Autograd") :]
        return self.kernel_for(keys.dispatch_key(name)) is not None

    def _no_kernel(self, keyset: i64) -> OperatorNotFoundError:
        name = self.qualified_name
        for key in keys.keys_of(keyset):
            if key.functionality == keys.DENSE:
                active = backend_by_number(key.backend)
                if active is None and key.backend != keys.META:
                    return OperatorNotFoundError(inactive_backend(name, key.name), operator=name)
                backend = key.name if active is None else active.name
                is_view = self.schema.is_view
                registered = self._registered_for()
                return OperatorNotFoundError(
                    missing_kernel(name, name, backend, key.name, is_view, registered),
                    operator=name,
                    backend=backend,
                    primitive=name,
                )
        return OperatorNotFoundError(
            no_key_served(name, keys.KeySet(keyset), self._registered_for()), operator=name
        )

    def _registered_for(self) -> str:
        registered = [key.name for key in self.registered_keys()]
        return f"Kernels are registered for: {', '.join(registered) or 'no key'}."

    def __repr__(self) -> str:
        overload = self.overload or "default"
        return f"<OpOverload(op='{self.namespace}.{self.name}', overload='{overload}')>"


_operators: Final[dict[str, Operator]] = {}
_fallbacks: Final[dict[DispatchKey, list[Any]]] = {}


def _forget_resolved() -> None:
    for op in list(_operators.values()):
        op.forget_resolved()


set_change_listener(_forget_resolved)


def operator_names() -> set[str]:
    """The names of the core's operators, with and without overload, declared or not."""
    names = {name.partition("::")[2] for name in waiting()}
    names |= {op.full_name for op in list(_operators.values()) if op.namespace == "plugrad"}
    return names | {name.partition(".")[0] for name in names}


set_operator_names(operator_names)


def declare(op: Operator) -> Operator:
    """Register an operator under its qualified name; RuntimeError if the name is taken."""
    note(op)
    with LOCK:
        if op.qualified_name in _operators:
            raise DuplicateDefinitionError(
                f"the operator {op.qualified_name} is defined already, with the schema "
                f"{_operators[op.qualified_name].schema_text}",
                "operator",
                op.qualified_name,
            )
        _operators[op.qualified_name] = op
    return op


def declare_new(
    namespace: str,
    name: str,
    overload: str,
    schema_text: str,
    structure: str,
    result: str,
    prepare: Any,
    differentiable: bool,
    level: str,
    doc: str,
) -> Operator:
    """Make an operator from the arguments of `Operator` and declare it: one call in generated
    code."""
    return declare(
        Operator(
            namespace,
            name,
            overload,
            schema_text,
            structure,
            result,
            prepare,
            differentiable,
            level,
            doc,
        )
    )


def declare_again(op: Operator) -> None:
    """Declare a retracted operator again, in place of the one that has its name now."""
    with LOCK:
        _operators[op.qualified_name] = op


def retract(op: Operator) -> None:
    """Remove an operator that `declare` registered."""
    with LOCK:
        if _operators.get(op.qualified_name) is op:
            del _operators[op.qualified_name]


def find_or_load(qualified_name: str) -> Operator | None:
    """The operator of that name; loads the plugin of its namespace if necessary."""
    op = find_operator(qualified_name)
    if op is None:
        load_operators(qualified_name.partition("::")[0])
        op = find_operator(qualified_name)
    return op


def find_operator(qualified_name: str) -> Operator | None:
    """The operator called ``ns::name.overload``, or None; its family is loaded if need be."""
    op = _operators.get(qualified_name)
    if op is None and load_family_of(qualified_name):
        op = _operators.get(qualified_name)
    return op


def declared_operators() -> list[Operator]:
    """The operators that are declared so far, in the order of declaration."""
    return list(_operators.values())


def all_operators() -> list[Operator]:
    """Every operator; loads families on demand."""
    load_families()
    return list(_operators.values())


def _forget_declared(qualified_names: set[str]) -> None:
    with LOCK:
        for name in qualified_names:
            _operators.pop(name, None)


set_undo(_forget_declared)


def _first_fallback(key: DispatchKey, op: Operator) -> Any:
    """A key's fallback, if it comes before the operator's decomposition."""
    stack = _fallbacks.get(key)
    if not stack:
        return None
    precedes = getattr(stack[-1], "precedes", None)
    return stack[-1] if precedes is not None and precedes(op) else None


def register_fallback(
    key: DispatchKey, kernel: Any, kept: list[Any] | None = None
) -> RegistrationHandle:
    """Register a kernel for every operator that has none of its own for a key.

    It is called as `kernel(op, keyset, *args)`; `FALLTHROUGH` makes dispatch continue. It comes
    before the decomposition of an operator for which its `precedes(op)` is true, if it has such a
    method.

    Args:
        kept: gets the handle before the kernel is there.
    """
    if key.is_alias:
        raise ValueError(f"a fallback needs a key of its own, got the alias {key.name}")
    handle = RegistrationHandle(_fallbacks, key, kernel, _forget_resolved)
    if kept is not None:
        kept.append(handle)
    note(handle)
    with LOCK:
        _fallbacks.setdefault(key, []).append(kernel)
        _forget_resolved()
    return handle
