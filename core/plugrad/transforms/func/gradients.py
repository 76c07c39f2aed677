"""`grad`, `grad_and_value` and `vjp`: reverse mode of functions.

The function runs on tensors of a level, which records it, and the level ends with it. The backward
pass runs one level further out, where it can be transformed again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from plugrad._generated import functions as F
from plugrad.autograd.run_backward import grad as autograd_grad
from plugrad.autograd.saved_tensors import disable_saved_tensors_hooks
from plugrad.dispatch.local_state import current_state
from plugrad.tensor.base import TensorBase, materialize_meta, needs_grad
from plugrad.tensor.calls.annotations import explains
from plugrad.tensor.levels import (
    GRAD,
    AtLevel,
    Level,
    living,
    make_level_tensor,
    value_at,
)
from plugrad.transforms.func.arguments import check_argnums, chosen, replaced
from plugrad.transforms.pytrees import flatten, map_leaves, shown, unflatten
from plugrad.transforms.vmap import map_tensors

NO_SAVED_TENSORS_HOOKS = (
    "plugrad.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open "
    "an issue with your use case."
)


@explains
def grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that computes the gradient of `func`, which returns one element.

    Args:
        func: a function of trees of tensors that returns a tensor with one element, or, with
            `has_aux`, a pair of that and a tree of tensors.
        argnums: the positional arguments to differentiate by: one, or a tuple of several.
        has_aux: whether `func` returns something besides the value.

    Returns:
        A function that gives the gradients, which have the form of the arguments, and with
        `has_aux` a pair of them and what else `func` returned.

    Raises:
        RuntimeError: `func` returns no tensor with one element, or writes to a tensor that is not
            an argument; `argnums` names no argument; hooks on saved tensors are in force.
        ValueError: an argument in `argnums` is not a tree of tensors.

    >>> import plugrad
    >>> from plugrad.func import grad
    >>> grad(plugrad.sin)(plugrad.tensor(0.))
    tensor(1.)
    >>> grad(grad(plugrad.sin))(plugrad.tensor(1.))
    tensor(-0.8415)
    """

    @functools.wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        grads, (_, aux) = _gradients(func, argnums, has_aux, args, kwargs)
        return (grads, aux) if has_aux else grads

    return gradient


@explains
def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., tuple[Any, Any]]:
    """The function that computes the gradient of `func`, and its value.

    As `grad`, but pairs ``(gradients, value)`` are returned, with `has_aux`
    ``(gradients, (value, aux))``.

    >>> import plugrad
    >>> from plugrad.func import grad_and_value
    >>> grad_and_value(lambda x: (x * x).sum())(plugrad.tensor([1., 2.]))
    (tensor([2., 4.]), tensor(5.))
    """

    @functools.wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        grads, (value, aux) = _gradients(func, argnums, has_aux, args, kwargs)
        return (grads, (value, aux)) if has_aux else (grads, value)

    return gradient


def _gradients(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...],
    has_aux: bool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[Any, tuple[Any, Any]]:
    with disable_saved_tensors_hooks(NO_SAVED_TENSORS_HOOKS):
        return _gradients_without_hooks(func, argnums, has_aux, args, kwargs)


def _gradients_without_hooks(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...],
    has_aux: bool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[Any, tuple[Any, Any]]:
    check_argnums(argnums, len(args))
    with AtLevel(GRAD) as level:
        inside = [map_tensors(lambda x: make_level_tensor(x, level), arg) for arg in args]
        wanted = map_leaves(leaf_of_graph, chosen(tuple(inside), argnums))
        named = map_tensors(lambda x: make_level_tensor(x, level), kwargs)
        output = func(*replaced(tuple(inside), wanted, argnums), **named)
        aux: Any = None
        if has_aux:
            if not (isinstance(output, tuple) and len(output) == 2):
                raise RuntimeError(
                    "grad_and_value(f)(*args): output of function f should be a tuple: (output, "
                    "aux) if has_aux is True"
                )
            output, aux = output
        if not isinstance(output, TensorBase):
            raise RuntimeError(
                "grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got "
                f"{type(output)}"
            )
        if output.ndim != 0:
            raise RuntimeError(
                "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor "
                f"with {output.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
            )
        value = value_at(output, level)
        if has_aux:
            aux = outside(aux, level)
    leaves, structure = flatten(wanted)
    grads = run_backward([output], leaves, None, False)
    return unflatten(structure, grads), (value, aux)


def leaf_of_graph(value: Any) -> TensorBase:
    """A level's tensor that needs a gradient.

    Raises:
        ValueError: it is not a tensor.
        RuntimeError: its dtype has no gradient.
    """
    if not isinstance(value, TensorBase):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(value)}")
    if not value.dtype.is_differentiable:
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    # Separately, in case the function gets one tensor twice.
    materialize_meta(value).requires_grad = True
    return value


def outside(tree: Any, level: Level) -> Any:
    """A tree of tensors of a level, one level further out.

    Raises:
        RuntimeError: something else than a tensor is in it.
    """
    leaves, structure = flatten(tree)
    for leaf in leaves:
        if not isinstance(leaf, TensorBase):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(leaf)}")
    return unflatten(structure, [value_at(leaf, level) for leaf in leaves])


def run_backward(
    outputs: list[Any],
    inputs: list[Any],
    cotangents: list[Any] | None,
    keep_graph: bool,
    create_graph: bool | None = None,
) -> list[TensorBase]:
    """The product of cotangents with the Jacobian, for tensors of a level that has ended; zeros
    for inputs that no output depends on. A graph of it is recorded where grad mode is on."""
    if create_graph is None:
        create_graph = current_state().grad_enabled
    pairs = [(output, place) for place, output in enumerate(outputs) if needs_grad(output)]
    if not pairs or not inputs:
        return [F.zeros_like(living(item)) for item in inputs]
    given = None if cotangents is None else [cotangents[place] for _, place in pairs]
    found: tuple[Any, ...] = autograd_grad(
        [output for output, _ in pairs],
        inputs,
        given,
        retain_graph=keep_graph or create_graph,
        create_graph=create_graph,
        allow_unused=True,
    )
    return [
        F.zeros_like(living(item)) if gradient is None else living(gradient)
        for item, gradient in zip(inputs, found, strict=True)
    ]


@explains
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """A function's outputs, and the function that multiplies cotangents with its Jacobian.

    Args:
        func: a function of trees of tensors that returns a tree of tensors, with `has_aux` a pair
            of that and another tree.
        primals: its arguments.

    Returns:
        ``(outputs, vjp_fn)``, with `has_aux` ``(outputs, vjp_fn, aux)``. `vjp_fn` takes cotangents
        in the form of the outputs, one argument for each if they are a tuple, and gives a tuple
        with one product for each of `primals`. It may be called many times, and inside `vmap`;
        ``retain_graph=False`` makes a call the last one.

    Raises:
        RuntimeError: `func` returns something else than tensors with a floating point or complex
            dtype, or nothing; cotangents do not have the form or the shapes of the outputs; hooks
            on saved tensors are in force.
        ValueError: a primal is not a tree of tensors.

    >>> import plugrad
    >>> from plugrad.func import vjp
    >>> outputs, vjp_fn = vjp(lambda x: x * x, plugrad.tensor([1., 2.]))
    >>> vjp_fn(plugrad.ones(2))
    (tensor([2., 4.]),)
    """
    return vjp_of(func, primals, None, has_aux)


def vjp_of(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    argnums: int | tuple[int, ...] | None,
    has_aux: bool,
) -> Any:
    """`vjp` with respect to some arguments; None: all, as a tuple."""
    with disable_saved_tensors_hooks(NO_SAVED_TENSORS_HOOKS):
        return vjp_with_hooks(func, primals, argnums, has_aux)


def vjp_with_hooks(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    argnums: int | tuple[int, ...] | None,
    has_aux: bool,
) -> Any:
    """`vjp_of`, also where hooks on saved tensors are in force."""
    if argnums is not None:
        check_argnums(argnums, len(primals))
    with AtLevel(GRAD) as level:
        inside = tuple([map_tensors(lambda x: make_level_tensor(x, level), arg) for arg in primals])
        wanted = map_leaves(leaf_of_graph, inside if argnums is None else chosen(inside, argnums))
        args = wanted if argnums is None else replaced(inside, wanted, argnums)
        output = func(*args)
        aux: Any = None
        if has_aux:
            if not (isinstance(output, tuple) and len(output) == 2):
                raise RuntimeError(
                    "vjp(f, *primals): output of function f should be a tuple: (output, aux) if "
                    "has_aux is True"
                )
            output, aux = output
            aux = outside(aux, level)
        outputs, structure = flatten(output)
        check_outputs("vjp(f, *primals)", "f(*primals)", output, outputs)
        for item in outputs:
            if not item.dtype.is_differentiable:
                raise RuntimeError(
                    "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got "
                    f"Tensor with dtype {item.dtype}"
                )
        values = unflatten(structure, [value_at(item, level) for item in outputs])
    leaves, form = flatten(wanted)

    def vjp_fn(
        *cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None
    ) -> Any:
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        items, found = flatten(given)
        if found != structure and isinstance(given, tuple) and len(cotangents) == 1:
            items, found = flatten(cotangents)
        if found != structure:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {shown(found)}, primal output: "
                f"{shown(structure)}"
            )
        return unflatten(form, run_backward(outputs, leaves, items, retain_graph, create_graph))

    return (values, vjp_fn, aux) if has_aux else (values, vjp_fn)


def check_outputs(api: str, call: str, output: Any, leaves: list[Any]) -> None:
    """RuntimeError if a function did not return tensors, or returned none at all.

    Args:
        output: its result, a tree of `leaves`.
    """
    if output is None or not leaves:
        shown_leaves = [None] if output is None else leaves
        raise RuntimeError(
            f"{api}: Expected f to be a function that has non-empty output (got output = "
            f"{shown_leaves})"
        )
    for leaf in leaves:
        if not isinstance(leaf, TensorBase):
            raise RuntimeError(
                f"{api}: expected {call} to return only tensors, got unsupported type {type(leaf)}"
            )
