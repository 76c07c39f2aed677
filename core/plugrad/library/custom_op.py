"""`custom_op`: a Python function on tensors becomes an operator."""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, TypeVar, overload

from plugrad.dispatch import keys
from plugrad.dispatch.operator import Operator, declare_again, find_operator, retract
from plugrad.dispatch.plugin_hooks import check_replaceable
from plugrad.dispatch.schema import parse_schema
from plugrad.dispatch.scope import Scope, Swapped
from plugrad.dtype import DType
from plugrad.library.autocast import add_autocast_rule
from plugrad.library.autograd import (
    AutogradKernel,
    GradientRule,
    WritingAutogradKernel,
    check_rule,
)
from plugrad.library.custom_kernels import ByDevice, DeviceKernel
from plugrad.library.fakes import META, FakeKernel, MissingFake, source_of
from plugrad.library.library import Library
from plugrad.library.schema_inference import infer_schema
from plugrad.library.schemas import (
    check_tags,
    has_keyword_tensor,
    has_tensor_argument,
    is_functional,
    is_written,
)
from plugrad.library.tags import Tag, as_tags
from plugrad.library.transaction import Transaction
from plugrad.library.vmap import add_vmap_rule
from plugrad.ops.namespace import TAGS, OpOverload, find_overload
from plugrad.tensor.aliasing.alias_kernels import ViewKernel
from plugrad.tensor.calls.annotations import explains
from plugrad.tensor.calls.schema_facts import position_of

_F = TypeVar("_F", bound=Callable[..., Any])

_log = logging.getLogger(__name__)

DeviceTypes = str | Sequence[str] | None


@overload
def custom_op(
    name: str,
    fn: None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: DeviceTypes = None,
    schema: str | None = None,
    tags: Any = None,
) -> Callable[[Callable[..., object]], CustomOpDef]: ...


@overload
def custom_op(
    name: str,
    fn: Callable[..., object],
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: DeviceTypes = None,
    schema: str | None = None,
    tags: Any = None,
) -> CustomOpDef: ...


def custom_op(
    name: str,
    fn: Callable[..., object] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: DeviceTypes = None,
    schema: str | None = None,
    tags: Any = None,
) -> CustomOpDef | Callable[[Callable[..., object]], CustomOpDef]:
    """Make an operator from a Python function on tensors; may be a decorator.

    The function gets plain tensors and is not recorded: `register_autograd` defines its gradient.
    It must not return its inputs, or views of them. Defining an operator of the same name
    again replaces it.

    Args:
        name: namespace and name, ``"mine::scaled"``; found as ``plugrad.ops.mine.scaled``.
        fn: its type annotations give the schema; see `infer_schema`.
        mutates_args: names of the arguments that it writes to, or "unknown" for all tensors.
        device_types: the backends that the function serves; None: all that have no kernel of
            their own.
        schema: instead of the annotations, such as ``"(Tensor x, int n) -> Tensor"``.
        tags: `Tag`s; `Tag.inplace` and `Tag.out` for functions that return what they write to.

    Raises:
        ValueError: the name has no namespace; annotations or schema do not fit.
        NotImplementedError: tensors are keyword-only.

    >>> import numpy as np, plugrad
    >>> @plugrad.library.custom_op("demo_custom::sine", mutates_args=())
    ... def sine(x: plugrad.Tensor) -> plugrad.Tensor:
    ...     return plugrad.from_numpy(np.sin(x.numpy()))
    >>> def setup_context(ctx, inputs, output):
    ...     ctx.save_for_backward(*inputs)
    >>> def backward(ctx, grad):
    ...     x, = ctx.saved_tensors
    ...     return grad * x.cos()
    >>> sine.register_autograd(backward, setup_context=setup_context)
    >>> x = plugrad.zeros(2, requires_grad=True)
    >>> y = sine(x)
    >>> y.sum().backward()
    >>> x.grad
    tensor([1., 1.])
    """

    def define(function: Callable[..., object]) -> CustomOpDef:
        chosen = as_tags(tags)
        text = schema
        if text is None:
            text = infer_schema(function, mutates_args=mutates_args, tags=chosen)
        if not isinstance(name, str):
            raise TypeError(f"custom_op(): name must be str, not {type(name).__name__}")
        namespace, separator, op_name = name.partition("::")
        if not separator:
            raise ValueError(f"custom_op(): expected a name such as 'ns::name', got {name!r}")
        if schema is not None:
            _check_mutates(op_name + schema, schema, mutates_args)
        return CustomOpDef(namespace, op_name, text, function, chosen, device_types)

    return define if fn is None else define(fn)


def _check_mutates(text: str, schema: str, mutates_args: str | Iterable[str]) -> None:
    parsed = parse_schema(text)
    written = {argument.name for argument in parsed.arguments if is_written(argument)}
    if isinstance(mutates_args, str):
        tensors = {item.name for item in parsed.arguments if item.type.base == "Tensor"}
        expected = tensors if mutates_args == "unknown" else {mutates_args}
    else:
        expected = set(mutates_args)
    if written != expected:
        raise ValueError(
            f"Attempted to create a custom op with `mutates_args={mutates_args}` and "
            f"`schema={schema}`. The schema suggests that the op mutates {written or '{}'}, which "
            "is different from what was provided to us in `mutates_args`. Please make these "
            "consistent."
        )


# Every CustomOpDef by qualified name; a later one of the same name takes its place.
_definitions: Final[dict[str, CustomOpDef]] = {}


def definition_of(qualified_name: str) -> CustomOpDef | None:
    """The CustomOpDef of an operator that `custom_op` made, as long as the operator exists."""
    found = _definitions.get(qualified_name)
    return found if found is not None and find_operator(qualified_name) is found._op else None


class CustomOpDef:
    """An operator made from a Python function by `custom_op`; call it like the function.

    If `custom_op` defines an operator of that name again, as a notebook's cell does, calls of an
    earlier definition go to the later one.

    Its methods register kernels, gradients and other rules, and may be used as decorators.

    >>> import plugrad
    >>> @plugrad.library.custom_op("demo_def::triple", mutates_args=())
    ... def triple(x: plugrad.Tensor) -> plugrad.Tensor:
    ...     return x * 3
    >>> triple(plugrad.ones(2)), plugrad.ops.demo_def.triple(plugrad.ones(2))
    (tensor([3., 3.]), tensor([3., 3.]))
    """

    @explains(name="CustomOpDef")
    def __init__(
        self,
        namespace: str,
        name: str,
        schema: str,
        fn: Callable[..., object],
        tags: tuple[Tag, ...] = (),
        device_types: DeviceTypes = None,
    ) -> None:
        self._namespace = namespace
        self._name = name
        self._schema = schema
        self._tags = tags
        self._init_fn = fn
        self._rule = GradientRule()
        self._kernels: dict[str | None, DeviceKernel] = {}
        # The definition that took this one's place.
        self._successor: CustomOpDef | None = None
        self._disabled_kernel: set[str] = set()
        parsed = parse_schema(name + schema)
        if has_keyword_tensor(parsed) and Tag.out not in tags:
            raise NotImplementedError(
                "custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only. "
                f"Got: {name}{schema}"
            )
        check_tags(parsed, tags)  # before the former definition is removed
        former = _definitions.get(self._qualname)
        stood = definition_of(self._qualname)
        if former is not None:
            check_replaceable(former._op)
        self._lib: Library = Library(namespace, "FRAGMENT")
        with Transaction(self._lib._handles) as whole:
            whole.on_failure(lambda: self._make_way(former, stood))
            if former is not None:
                # Its kernels and rules stay until it is certain that it is removed.
                whole.on_success(former._lib._destroy)
                retract(former._op)
            self._define(name + schema, fn)
            self.register_kernel(device_types)(fn)
            _definitions[self._qualname] = self
            if former is not None:
                former._successor = self
            whole.commit()

    def _make_way(self, former: CustomOpDef | None, stood: CustomOpDef | None) -> None:
        """Restore the former definition, if it `stood`."""
        self._lib._destroy()
        if former is None:
            _definitions.pop(self._qualname, None)
        else:
            _definitions[self._qualname] = former
            former._successor = None
        if stood is not None:
            declare_again(stood._op)
            TAGS[self._qualname] = stood._tags

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    def _define(self, schema: str, fn: Callable[..., object]) -> None:
        self._lib.define(schema, tags=self._tags)
        self._opoverload: OpOverload = find_overload(self._qualname)
        self._op: Operator = self._opoverload.op
        self._op.doc = inspect.cleandoc(fn.__doc__ or "")
        self.__doc__ = self._op.doc or None
        self.__name__ = getattr(fn, "__name__", self._name)
        self.__qualname__ = getattr(fn, "__qualname__", self._name)
        self.__module__ = getattr(fn, "__module__", __name__)
        self.__wrapped__ = fn
        self._register()

    def _register(self) -> None:
        """Everything that does not depend on a backend."""
        op = self._op
        functional = is_functional(op.schema, allow_view=True)
        autograd: Any = AutogradKernel(op, self._rule) if functional else WritingAutogradKernel(op)
        self._lib._add(op, keys.AUTOGRAD_ALIAS, autograd)
        if op.schema.is_view:
            self._lib._add(op, keys.AD_INPLACE_OR_VIEW_KEY, ViewKernel(op, True))
        self._lib._add(op, META, MissingFake(op, repr(self), f"`{self.__name__}.register_fake`"))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._successor is not None:
            return self._successor(*args, **kwargs)
        return self._opoverload(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    @overload
    def register_kernel(self, device_types: DeviceTypes, fn: _F, /, *, raw: bool = False) -> _F: ...
    @overload
    def register_kernel(
        self, device_types: DeviceTypes, fn: None = None, /, *, raw: bool = False
    ) -> Callable[[_F], _F]: ...
    def register_kernel(
        self,
        device_types: DeviceTypes,
        fn: Callable[..., object] | None = None,
        /,
        *,
        raw: bool = False,
    ) -> Any:
        """Register another implementation for some backends; may be a decorator.

        The backends do not have to be installed.

        Args:
            device_types: names of backends; None means all that have no kernel of their own.
            fn: takes and returns tensors; runs below autograd.
            raw: it takes and returns the backend's own arrays instead. Views, copies and promotion
                then follow the array library.

        Raises:
            ValueError: `raw` without a backend, or an operator without tensors and without a
                `device` argument to select the backend.

        >>> import numpy as np, plugrad
        >>> @plugrad.library.custom_op("demo_kernel::cube", mutates_args=())
        ... def cube(x: plugrad.Tensor) -> plugrad.Tensor:
        ...     return x * x * x
        >>> @cube.register_kernel("cpu", raw=True)
        ... def _(array):
        ...     return np.power(array, 3)
        >>> cube(plugrad.full((2,), 2.0))
        tensor([8., 8.])
        """
        names: list[str | None] = (
            [device_types]
            if device_types is None or isinstance(device_types, str)
            else list(device_types)
        )
        for name in names:
            if name is not None and not (isinstance(name, str) and name.isidentifier()):
                raise ValueError(
                    f"register_kernel(): expected a backend's name such as 'cpu', got {name!r}"
                )
        if raw and None in names:
            raise ValueError(
                "register_kernel(None, raw=True): arrays belong to a backend; name the device "
                "types that the kernel is for"
            )
        selects = device_types is not None and not has_tensor_argument(self._op.schema)
        if selects:
            self._device_position()

        def register(function: Callable[..., object]) -> Callable[..., object]:
            with Transaction(self._lib._handles) as whole:
                former, own = self._kernels, dict(self._kernels)
                whole.on_failure(lambda: setattr(self, "_kernels", former))
                if selects:
                    self._select_backend(whole)
                for name in names:
                    self._use(own, name, function, raw, whole)
                self._kernels = own
                whole.commit()
            return function

        return register if fn is None else register(fn)

    def _use(
        self,
        own: dict[str | None, DeviceKernel],
        name: str | None,
        function: Callable[..., object],
        raw: bool,
        whole: Transaction,
    ) -> None:
        """Have a function be the kernel for a backend, or for all."""
        kernel = own.get(name)
        if kernel is None:
            own[name] = kernel = DeviceKernel(self, name)
            kernel.use(function, raw)
            self._lib._add(self._op, kernel.key, kernel, whole.handles)
        else:
            whole.on_failure(partial(setattr, kernel, "in_use", kernel.in_use))
            kernel.use(function, raw)

    def _device_position(self) -> int:
        """Which argument chooses the kernel of an operator that has no tensors."""
        position = position_of(self._op, "Device")
        if position < 0:
            raise ValueError(
                "Functions without tensor inputs are required to have a `device: plugrad.device` "
                "argument"
            )
        return position

    def _select_backend(self, whole: Transaction) -> None:
        if self._op.kernel_for(keys.BACKEND_SELECT_KEY) is None:
            by_device = ByDevice(self, self._device_position())
            self._lib._add(self._op, keys.BACKEND_SELECT_KEY, by_device, whole.handles)

    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Scope:
        """Context manager: run the function that `custom_op` was given instead of a backend's
        kernel (`enabled=False`), or that kernel again (`enabled=True`).

        >>> import plugrad
        >>> @plugrad.library.custom_op("demo_enabled::double", mutates_args=())
        ... def double(x: plugrad.Tensor) -> plugrad.Tensor:
        ...     return x * 2
        >>> @double.register_kernel("cpu")
        ... def _(x):
        ...     print("the kernel for the CPU")
        ...     return x + x
        >>> double(plugrad.ones(1))
        the kernel for the CPU
        tensor([2.])
        >>> with double.set_kernel_enabled("cpu", False):
        ...     double(plugrad.ones(1))
        tensor([2.])
        """
        disabled = device_type in self._disabled_kernel
        action = "enable" if enabled else "disable"
        if device_type not in self._kernels:
            _log.warning(
                "Attempted to %s kernel for %s but no kernel was registered for this device type.",
                action,
                device_type,
            )
        if disabled != enabled:
            _log.warning(
                "Attempted to %s kernel for %s but it was already %sd.", action, device_type, action
            )
        others = self._disabled_kernel - {device_type}
        return Swapped(self, "_disabled_kernel", others if enabled else others | {device_type})

    def register_autograd(
        self,
        backward: Callable[..., Any],
        /,
        *,
        setup_context: Callable[..., Any] | None = None,
        jvp: Callable[..., Any] | None = None,
    ) -> None:
        """Define the operator's gradient, and its tangent in forward mode.

        Args:
            backward: ``backward(ctx, *grads)`` gets a gradient per result and returns one per
                argument (except keyword-only ones), None if there is none. If it uses only
                differentiable operators, the gradient can be differentiated again.
            setup_context: ``setup_context(ctx, inputs, output)`` stores values for backward on
                `ctx`, as in `autograd.Function`; with keyword-only arguments it is called as
                ``setup_context(ctx, inputs, keyword_only_inputs, output)``.
            jvp: ``jvp(ctx, *tangents)`` gets a tangent per argument (except keyword-only ones),
                None for arguments that are not tensors. It returns one per result, as in
                `autograd.Function`. Tensors that `setup_context` kept with
                ``ctx.save_for_forward`` are in ``ctx.saved_tensors``.
                Without it the operator refuses dual tensors.

        Raises:
            RuntimeError: the operator writes to its arguments, or returns nothing.

        >>> import plugrad
        >>> @plugrad.library.custom_op("demo_gradient::square", mutates_args=())
        ... def square(x: plugrad.Tensor) -> plugrad.Tensor:
        ...     return x * x
        >>> def setup_context(ctx, inputs, output):
        ...     ctx.save_for_backward(*inputs)
        >>> def backward(ctx, grad):
        ...     (x,) = ctx.saved_tensors
        ...     return 2 * x * grad
        >>> square.register_autograd(backward, setup_context=setup_context)
        >>> x = plugrad.tensor([1.0, 3.0], requires_grad=True)
        >>> square(x).sum().backward()
        >>> x.grad
        tensor([2., 6.])
        """
        check_rule(self._op, allow_view=True)
        self._rule.functions = (backward, setup_context, jvp)
        # Whether it takes dual tensors may have changed.
        self._op.forget_resolved()

    def register_fake(self, fn: _F, /) -> _F:
        """Define the shapes and dtypes of results: the function on tensors of the device "meta".

        >>> import plugrad
        >>> @plugrad.library.custom_op("demo_fake::pairs", mutates_args=())
        ... def pairs(x: plugrad.Tensor) -> plugrad.Tensor:
        ...     return x[:, None] * x[None, :]
        >>> @pairs.register_fake
        ... def _(x):
        ...     return x.new_empty((x.shape[0], x.shape[0]))
        >>> pairs(plugrad.empty(3, device="meta"))
        tensor(..., device='meta', size=(3, 3))
        """
        if Tag.inplace in self._tags or Tag.out in self._tags:
            warnings.warn(
                f"The fake registration for {self} is unnecessary: operators tagged with "
                "Tag.inplace or Tag.out return what they write to. The provided fake impl will be "
                "used instead.",
                stacklevel=2,
            )
        self._lib._add(self._op, META, FakeKernel(self._op, fn, source_of(1)))
        return fn

    def register_autocast(self, device_type: str, cast_inputs: DType) -> Any:
        """Define the dtype of the operator's floating inputs within `plugrad.autocast`. See
        `library.register_autocast`.

        >>> import plugrad
        >>> @plugrad.library.custom_op("demo_cast::double", mutates_args=())
        ... def double(x: plugrad.Tensor) -> plugrad.Tensor:
        ...     return x * 2
        >>> _ = double.register_autocast("cpu", plugrad.bfloat16)
        >>> with plugrad.autocast("cpu"):
        ...     double(plugrad.ones(2)).dtype
        plugrad.bfloat16
        """
        return add_autocast_rule(self._lib, self._op, device_type, cast_inputs)

    @overload
    def register_vmap(self, func: _F) -> _F: ...
    @overload
    def register_vmap(self, func: None = None) -> Callable[[_F], _F]: ...
    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Define the operator's batching rule; may be a decorator. See `library.register_vmap`.

        >>> import plugrad
        >>> @plugrad.library.custom_op("demo_mapped::double", mutates_args=())
        ... def double(x: plugrad.Tensor) -> plugrad.Tensor:
        ...     return x * 2
        >>> @double.register_vmap
        ... def _(info, in_dims, x):
        ...     return double(x), in_dims[0]
        >>> plugrad.vmap(double)(plugrad.ones(2, 3)).shape
        plugrad.Size([2, 3])
        """

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            add_vmap_rule(self._op, function, self._lib._handles)
            return function

        return register if func is None else register(func)
