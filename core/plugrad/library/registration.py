"""Registration by name or operator, without a `Library`, as in torch.library."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar, overload

from plugrad.dispatch import keys
from plugrad.dispatch.backends.active import find_key
from plugrad.dispatch.keys import DispatchKey
from plugrad.dispatch.operator import Operator, find_or_load
from plugrad.dtype import DType
from plugrad.library.autocast import add_autocast_rule
from plugrad.library.autograd import AutogradKernel, GradientRule, check_rule
from plugrad.library.custom_op import CustomOpDef, DeviceTypes, definition_of
from plugrad.library.library import Library
from plugrad.library.schemas import has_keyword_tensor
from plugrad.library.transaction import Transaction
from plugrad.library.vmap import add_vmap_rule
from plugrad.ops.namespace import OpOverload
from plugrad.tensor.calls.annotations import explains

_F = TypeVar("_F", bound=Callable[..., Any])

# Libraries that module-level functions made live as long as the process.
_kept: Final[list[Library]] = []

_NAMELESS_SCHEMA: Final = re.compile(r"\(.*\) -> .*")


@explains
def define(qualname: str, schema: str, *, lib: Library | None = None, tags: Any = ()) -> None:
    """Define ``ns::name`` with a schema's parameters and returns, such as ``(Tensor x) -> Tensor``.

    Args:
        lib: the library that owns the operator; without one it is permanent.

    Raises:
        ValueError: the name has no namespace, or the schema a name.

    >>> import plugrad
    >>> with plugrad.library.Library("demo_define", "FRAGMENT") as lib:
    ...     plugrad.library.define("demo_define::same", "(Tensor x) -> Tensor", lib=lib)
    ...     plugrad.ops.demo_define.same
    <OpOverloadPacket(op='demo_define.same')>
    """
    if not isinstance(qualname, str):
        raise ValueError(
            "define(qualname, schema): expected qualname to be instance of str, got "
            f"{type(qualname)}"
        )
    namespace, name = split_name(qualname)
    if not _NAMELESS_SCHEMA.fullmatch(schema):
        raise ValueError(
            "define(qualname, schema, ...): expected schema to look like e.g. "
            f'"(Tensor x) -> Tensor" but got "{schema}"'
        )
    _library_for(namespace, lib, "FRAGMENT").define(name + schema, tags=tags)


@explains
def impl(
    qualname: str,
    types: str | Iterable[str],
    func: Any = None,
    *,
    lib: Library | None = None,
    raw: bool | None = None,
) -> Any:
    """Register a kernel for dispatch keys or for backends by name; may be a decorator.

    Args:
        qualname: the operator, ``"ns::name"``.
        types: one or several of: a backend's name (``"cpu"``), a dispatch key (``"Autograd"``),
            ``"default"`` for all backends without a kernel of their own.
        func: the kernel; for a backend it works on arrays, otherwise on tensors.
        raw: False makes a kernel for a backend work on tensors, too.
        lib: the library that owns the kernel; without one it is permanent.

    >>> import plugrad
    >>> with plugrad.library.Library("demo_keys", "DEF") as lib:
    ...     _ = lib.define("double(Tensor x) -> Tensor")
    ...     @plugrad.library.impl("demo_keys::double", "default", lib=lib)
    ...     def _(x):
    ...         return x * 2
    ...     plugrad.ops.demo_keys.double(plugrad.ones(2))
    tensor([2., 2.])
    """
    namespace, _ = split_name(qualname)
    names = [types] if isinstance(types, str) else list(types)

    def register(function: Any) -> Any:
        owner = _library_for(namespace, lib, "IMPL")
        op = _find(qualname)
        with Transaction(owner._handles) as whole:
            for name in names:
                owner._impl(op, function, _key_of(name), False, False, raw, whole.handles)
            whole.commit()
        return function

    return register if func is None else register(func)


@explains
@overload
def register_kernel(
    op: Any,
    device_types: DeviceTypes,
    func: _F,
    /,
    *,
    lib: Library | None = None,
    raw: bool = False,
) -> _F: ...
@overload
def register_kernel(
    op: Any,
    device_types: DeviceTypes,
    func: None = None,
    /,
    *,
    lib: Library | None = None,
    raw: bool = False,
) -> Callable[[_F], _F]: ...
def register_kernel(
    op: Any,
    device_types: DeviceTypes,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
    raw: bool = False,
) -> Any:
    """Register an implementation of an operator for some backends; may be a decorator.

    Args:
        op: name, overload or `CustomOpDef`.
        device_types: names of backends, which need not be installed; None: for all that have no
            kernel of their own.
        func: takes and returns tensors, and runs below autograd.
        lib: the library that owns the kernel; without one it is permanent.
        raw: it takes and returns the backend's own arrays instead.

    Raises:
        RuntimeError: another library registered a kernel for that backend.

    >>> import plugrad
    >>> lib = plugrad.library.Library("demo_register", "DEF")
    >>> lib.define("double(Tensor x) -> Tensor")
    'double'
    >>> @plugrad.library.register_kernel("demo_register::double", "cpu", lib=lib)
    ... def _(x):
    ...     return x * 2
    >>> plugrad.ops.demo_register.double(plugrad.ones(2))
    tensor([2., 2.])
    >>> lib._destroy()
    """
    target = _target(op, "register_kernel")
    if isinstance(target, CustomOpDef):
        return target.register_kernel(device_types, func, raw=raw)
    names = [device_types] if isinstance(device_types, str) else list(device_types or ["default"])
    return impl(target.qualified_name, names, func, lib=lib, raw=raw or None)


@explains
def register_autograd(
    op: Any,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    jvp: Callable[..., Any] | None = None,
    lib: Library | None = None,
) -> None:
    """Define an operator's gradient and tangent; see `CustomOpDef.register_autograd`.

    Args:
        op: name, overload or `CustomOpDef`.
        lib: the library that owns the rule; without one it is permanent.

    Raises:
        RuntimeError: the operator writes to its arguments, or returns nothing.

    >>> import plugrad
    >>> lib = plugrad.library.Library("demo_autograd", "DEF")
    >>> lib.define("double(Tensor x) -> Tensor")
    'double'
    >>> handle = lib.impl("double", lambda array: array * 2, "CPU")
    >>> plugrad.library.register_autograd(
    ...     "demo_autograd::double", lambda ctx, grad: grad * 2, lib=lib)
    >>> x = plugrad.ones(2, requires_grad=True)
    >>> plugrad.ops.demo_autograd.double(x)
    tensor([2., 2.], grad_fn=<GeneratedBackwardFor_demo_autograd_double_defaultBackward>)
    >>> lib._destroy()
    """
    target = _target(op, "register_autograd")
    if isinstance(target, CustomOpDef):
        target.register_autograd(backward, setup_context=setup_context, jvp=jvp)
        return
    check_rule(target, allow_view=False)
    if has_keyword_tensor(target.schema):
        raise NotImplementedError(
            "register_autograd with kwarg-only Tensor args. In the original definition of the op, "
            f"please make your tensors not kwarg-only. Got: {target.schema_text}"
        )
    kernel = AutogradKernel(target, GradientRule(backward, setup_context, jvp))
    _library_for(target.namespace, lib, "IMPL")._add(target, keys.AUTOGRAD_ALIAS, kernel)


@overload
def register_fake(
    op: Any,
    func: _F,
    /,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
    allow_override: bool = True,
) -> _F: ...
@overload
def register_fake(
    op: Any,
    func: None = None,
    /,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
    allow_override: bool = True,
) -> Callable[[_F], _F]: ...
def register_fake(
    op: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
    allow_override: bool = True,
) -> Any:
    """Define the shapes and dtypes of an operator's results; may be a decorator.

    The function gets tensors of the device "meta", which have a shape and a dtype but no data, and
    makes its results from these with operators: ``x.new_empty(...)``.

    Args:
        op: name, overload or `CustomOpDef`.
        lib: the library that owns the fake; without one it is permanent.
        allow_override: replace an existing fake.

    Raises:
        RuntimeError: the operator is composed of others, so it needs no fake.

    >>> import plugrad
    >>> lib = plugrad.library.Library("demo_fakes", "DEF")
    >>> lib.define("outer_sum(Tensor x, Tensor y) -> Tensor")
    'outer_sum'
    >>> @plugrad.library.register_fake("demo_fakes::outer_sum", lib=lib)
    ... def _(x, y):
    ...     return x.new_empty((x.shape[0], y.shape[0]))
    >>> x = plugrad.empty(3, device="meta")
    >>> plugrad.ops.demo_fakes.outer_sum(x, x)
    tensor(..., device='meta', size=(3, 3))
    >>> lib._destroy()
    """
    target = _target(op, "register_fake")
    if isinstance(target, CustomOpDef):
        return target.register_fake if func is None else target.register_fake(func)
    level = _stacklevel + 1

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        owner = _library_for(target.namespace, lib, "IMPL")
        owner._register_fake(target, function, level, allow_override=allow_override)
        return function

    return register if func is None else register(func)


@explains
@overload
def register_vmap(op: Any, func: _F, /, *, lib: Library | None = None) -> _F: ...
@overload
def register_vmap(
    op: Any, func: None = None, /, *, lib: Library | None = None
) -> Callable[[_F], _F]: ...
def register_vmap(
    op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None
) -> Any:
    """Define an operator's batching rule; may be a decorator.

    The rule is called as ``func(info, in_dims, *args, **kwargs)`` and returns
    ``(output, out_dims)``: `info.batch_size` is the length of the mapped dimension,
    `in_dims` gives the mapped dimension of every argument (None: not mapped), `out_dims` the mapped
    dimension of every output.

    Args:
        op: name, overload or `CustomOpDef`.
        lib: the library that owns the rule; without one it is permanent.

    Raises:
        NotImplementedError: the operator has tensors among its keyword-only arguments.

    >>> import plugrad
    >>> from plugrad.library import VmapInfo, get_vmap_rule
    >>> lib = plugrad.library.Library("demo_vmap", "DEF")
    >>> lib.define("double(Tensor x) -> Tensor")
    'double'
    >>> handle = lib.impl("double", lambda array: array * 2, "CPU")
    >>> @plugrad.library.register_vmap("demo_vmap::double", lib=lib)
    ... def _(info, in_dims, x):
    ...     return plugrad.ops.demo_vmap.double(x), in_dims[0]
    >>> rule = get_vmap_rule("demo_vmap::double")
    >>> rule.apply(VmapInfo(3), (0,), (plugrad.ones(3),))
    (tensor([2., 2., 2.]), 0)
    >>> lib._destroy()
    """
    target = _target(op, "register_vmap")
    if isinstance(target, CustomOpDef):
        return target.register_vmap(func)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        add_vmap_rule(target, function, _library_for(target.namespace, lib, "IMPL")._handles)
        return function

    return register if func is None else register(func)


@explains
def register_autocast(
    op: Any, device_type: str, cast_inputs: DType, /, *, lib: Library | None = None
) -> Any:
    """Define the dtype to which an operator's floating inputs are cast within `plugrad.autocast`.

    Autocast is then off within the operator. Without the rule it gets its inputs unchanged, and
    operators that its function calls autocast.

    Args:
        op: name, overload or `CustomOpDef`.
        device_type: the backend of the autocast region; it need not be installed.
        cast_inputs: the dtype for floating inputs on its devices, except float64.
        lib: the library that owns the rule; without one it is permanent.

    Raises:
        ValueError: `device_type` is not a string, or "meta".

    For a backend without 16-bit dtypes, and so without autocast, it warns and has no effect.

    >>> import plugrad
    >>> @plugrad.library.custom_op("demo_autocast::total", mutates_args=())
    ... def total(x: plugrad.Tensor) -> plugrad.Tensor:
    ...     return x.cumsum(0)
    >>> handle = plugrad.library.register_autocast("demo_autocast::total", "cpu", plugrad.float32)
    >>> with plugrad.autocast("cpu"):
    ...     total(plugrad.ones(2, dtype=plugrad.bfloat16)).dtype
    plugrad.float32
    """
    target = _target(op, "register_autocast")
    if isinstance(target, CustomOpDef):
        return target.register_autocast(device_type, cast_inputs)
    return add_autocast_rule(
        _library_for(target.namespace, lib, "IMPL"), target, device_type, cast_inputs
    )


def split_name(qualname: str) -> tuple[str, str]:
    """Namespace and name; ValueError if it is not one of each."""
    parts = qualname.split("::") if isinstance(qualname, str) else []
    if len(parts) != 2:
        raise ValueError(
            'Expected `qualname` to be of the form "namespace::name", but got '
            f"{qualname}. The qualname passed to the plugrad.library APIs must consist of a "
            "namespace and a name, e.g. plugrad::sin"
        )
    return parts[0], parts[1]


def _library_for(namespace: str, lib: Library | None, kind: str) -> Library:
    if lib is not None:
        return lib
    made = Library(namespace, kind)
    _kept.append(made)
    return made


def _find(qualname: str) -> Operator:
    split_name(qualname)
    op = find_or_load(qualname.removesuffix(".default"))
    if op is None:
        raise RuntimeError(
            f"There was no operator {qualname!r} to register anything for; define() it first"
        )
    return op


def _target(op: Any, function: str) -> Operator | CustomOpDef:
    """The target of a registration: an operator, or the definition that `custom_op` made."""
    if isinstance(op, CustomOpDef):
        return op
    if isinstance(op, OpOverload):
        op = op.op
    if not isinstance(op, str | Operator):
        raise ValueError(f"{function}({op}): got unexpected type for op: {type(op)}")
    found = _find(op) if isinstance(op, str) else op
    return definition_of(found.qualified_name) or found


def _key_of(name: str) -> DispatchKey:
    """A dispatch key by its name or by the name of its backend, which does not have to be
    installed."""
    if name == "default":
        return keys.COMPOSITE_EXPLICIT_AUTOGRAD
    if name.islower() and name.isidentifier():
        return keys.dense_key(keys.register_backend_key(name))
    return find_key(name)
