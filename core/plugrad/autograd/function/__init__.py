"""`autograd.Function`: operations with user-defined gradients."""

from __future__ import annotations

# Interpreted: users subclass its classes and give `ctx` attributes of their own.
import functools
import itertools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from plugrad.autograd.function.apply import apply_function, delayed_error
from plugrad.autograd.function.node import (
    FunctionNode,
    check_saved_for_forward,
    set_default_backward,
)
from plugrad.autograd.grad_mode import is_grad_enabled, no_grad
from plugrad.dispatch.caller import warn_at_caller
from plugrad.tensor.base import TensorBase, needs_grad
from plugrad.tensor.calls.arguments import raise_argument_error

_F = TypeVar("_F", bound=Callable[..., Any])

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",
    "NestedIOFunction",
    "once_differentiable",
]

_function_ids = itertools.count()


class FunctionCtx:
    """The interface of `ctx` for `forward` and `setup_context`; the real one is a graph node."""

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for `backward`, which finds them in `saved_tensors`; None stays None."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for `jvp`; AssertionError if something is neither a Tensor nor None."""
        check_saved_for_forward(tensors)
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Declare that `forward` wrote to these inputs, which it must return."""
        self.dirty_tensors = args

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Deprecated: shared memory is tracked automatically."""
        warn_at_caller(
            "`mark_shared_storage` is deprecated. Tensors with shared storages are automatically "
            "tracked. Note that calls to `set_()` are not tracked",
            FutureWarning,
        )

    def mark_non_differentiable(self, *args: Any) -> None:
        """Declare that these outputs have no gradient; `backward` gets zeros for them."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros instead of None if no gradient arrived."""
        self.materialize_grads = value


class BackwardCFunction(FunctionNode, FunctionCtx):
    """Base of the node classes that each Function gets; `ctx` is an instance."""

    _forward_cls: Any

    def apply_jvp(self, *args: Any) -> Any:
        """Compute the outputs' tangents from the inputs' tangents."""
        return self._forward_cls.jvp(self, *args)

    def __repr__(self) -> str:
        return object.__repr__(self)


class FunctionMeta(type):
    """Gives every Function the class of its nodes, `_backward_cls`."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        node_class = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls})
        node_class._autograd_function_id = next(_function_ids)  # type: ignore[attr-defined]  # a class made here
        cls._backward_cls = node_class
        super().__init__(name, bases, attrs)


class Function(FunctionCtx, metaclass=FunctionMeta):
    """Base class of operations with user-defined gradients.

    Subclass it with static methods `forward(ctx, *args)` and `backward(ctx, *grad_outputs)`, and
    call `apply`. Instead of using `ctx` in `forward`, one may define `forward(*args)` and
    `setup_context(ctx, inputs, output)`. `vjp` is another name for `backward`.

    `forward` runs unrecorded. `backward` gets one gradient per output and returns one per argument
    of `forward`, None if there is none.

    Attributes:
        generate_vmap_rule: whether vmap may derive its rule from `forward` and `backward`.
        clear_saved_tensors_on_access: whether `ctx.saved_tensors` releases the tensors when it
            is read, so that each is freed as soon as `backward` is done with it.
        boxed_grads_call: whether `backward` gets the gradients as one list, from which it may
            remove them.

    >>> import plugrad
    >>> class Exp(plugrad.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, i):
    ...         result = i.exp()
    ...         ctx.save_for_backward(result)
    ...         return result
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         result, = ctx.saved_tensors
    ...         return grad_output * result
    >>> Exp.apply(plugrad.tensor(0.5, requires_grad=True))
    tensor(1.6487, grad_fn=<ExpBackward>)
    """

    _backward_cls: Any
    # Whether it is the kernel of an operator at the level of its arguments.
    _serves_operator = False
    generate_vmap_rule = False
    clear_saved_tensors_on_access = False
    boxed_grads_call = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warn_at_caller(
            f"{self.__class__} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd "
            "function will raise an error in a future version of plugrad.",
            DeprecationWarning,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use "
            "new-style autograd function with static forward method."
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The operation itself; to be overridden.

        >>> import plugrad
        >>> class Double(plugrad.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 2
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         return grad * 2
        >>> Double.apply(plugrad.ones(2, requires_grad=True)).grad_fn.name()
        'DoubleBackward'
        """
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Fill `ctx` from inputs and outputs, if `forward` does not take it.

        >>> import plugrad
        >>> class Square(plugrad.autograd.Function):
        ...     @staticmethod
        ...     def forward(x):
        ...         return x * x
        ...     @staticmethod
        ...     def setup_context(ctx, inputs, output):
        ...         ctx.save_for_backward(*inputs)
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         (x,) = ctx.saved_tensors
        ...         return 2 * x * grad
        >>> plugrad.func.grad(lambda x: Square.apply(x).sum())(plugrad.tensor([1.0, 3.0]))
        tensor([2., 6.])
        """
        raise NotImplementedError("setup_context is not implemented.")

    # No function here is called with keywords. Type checkers let a subclass have arguments of its
    # own only where any are taken.
    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any, **unused: Any) -> Any:
        """Compute the arguments' gradients from the outputs' gradients; to be overridden.

        >>> import plugrad
        >>> class Clipped(plugrad.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x.clone()
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         return grad.clamp(-1, 1)
        >>> x = plugrad.ones(2, requires_grad=True)
        >>> (Clipped.apply(x) * 5).sum().backward()
        >>> x.grad
        tensor([1., 1.])
        """
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any, **unused: Any) -> Any:
        """Compute the outputs' tangents from the arguments' tangents; to be overridden.

        >>> import plugrad
        >>> class Double(plugrad.autograd.Function):
        ...     @staticmethod
        ...     def forward(x):
        ...         return x * 2
        ...     @staticmethod
        ...     def setup_context(ctx, inputs, output):
        ...         pass
        ...     @staticmethod
        ...     def jvp(ctx, tangent):
        ...         return tangent * 2
        >>> plugrad.func.jvp(Double.apply, (plugrad.ones(2),), (plugrad.tensor([1.0, 10.0]),))[1]
        tensor([ 2., 20.])
        """
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any, **unused: Any) -> Any:
        """The operation on arguments with a batch dimension; to be overridden.

        >>> import plugrad
        >>> class Total(plugrad.autograd.Function):
        ...     @staticmethod
        ...     def forward(x):
        ...         return x.sum()
        ...     @staticmethod
        ...     def setup_context(ctx, inputs, output):
        ...         pass
        ...     @staticmethod
        ...     def vmap(info, in_dims, x):
        ...         return x.movedim(in_dims[0], 0).reshape(info.batch_size, -1).sum(1), 0
        >>> plugrad.vmap(Total.apply)(plugrad.arange(6).view(2, 3))
        tensor([ 3, 12])
        """
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or "
            "set generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` and record `backward`.

        Tensors become part of the graph if they are the output or elements of an output tuple.
        Anything else is returned unchanged.

        >>> import plugrad
        >>> class Identity(plugrad.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x, name):
        ...         return x.clone(), name
        ...     @staticmethod
        ...     def backward(ctx, grad, _):
        ...         return grad, None
        >>> y, name = Identity.apply(plugrad.ones(2, requires_grad=True), "features")
        >>> y.requires_grad, name
        (True, 'features')
        """
        return apply_function(cls, Function, args, kwargs)


set_default_backward(Function.backward)


def once_differentiable(backward: _F) -> _F:
    """Decorator for a `backward` that cannot be differentiated itself.

    It runs unrecorded, and differentiating its results raises instead of giving wrong gradients.
    """

    if not callable(backward):
        raise_argument_error("once_differentiable", "backward", 1, "callable", backward)

    @functools.wraps(backward)
    def unrecorded(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with no_grad():
            result = backward(ctx, *args, **kwargs)
        if not is_grad_enabled() or not any(
            isinstance(arg, TensorBase) and needs_grad(arg) for arg in args
        ):
            return result
        grads = result if isinstance(result, tuple) else (result,)
        marked = delayed_error(
            "trying to differentiate twice a function that was marked with @once_differentiable",
            [None if grad is None else grad.detach().requires_grad_() for grad in grads],
        )
        return marked if len(marked) != 1 else marked[0]

    decorated: Any = unrecorded
    return cast("_F", decorated)


class InplaceFunction(Function):
    """Kept for code that subclasses it; use Function."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """Kept for code that imports it; use Function, which accepts arguments of any type.

    >>> import plugrad
    >>> from plugrad.autograd import NestedIOFunction
    >>> class Double(NestedIOFunction):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return grad * 2
    >>> Double.apply(plugrad.ones(2))
    tensor([2., 2.])
    """

    def forward_extended(self, *input: Any) -> None:
        """The operation on nested structures; to be overridden."""
        raise NotImplementedError

    def backward_extended(self, *grad_output: Any) -> None:
        """The gradients as nested structures; to be overridden."""
        raise NotImplementedError
