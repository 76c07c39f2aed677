"""`autograd.functional`: Jacobians and Hessians of functions of tensors, and products with them.

Arguments and results may be one tensor or a tuple of tensors; results have the form of arguments.
The function is called with new tensors that share memory with the inputs. So the derivative is
with respect to its arguments, even if it also uses the inputs directly.
"""

from __future__ import annotations

# Interpreted: what it calls takes much longer.
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, overload

from plugrad.autograd.functional.arguments import (
    INDEPENDENT,
    LINEAR,
    as_result,
    as_tuple,
    check_requires_grad,
    evaluate,
    evaluate_scalar,
    gradients,
    linear_gradients,
    points_of,
    vectors_like_points,
    vectors_of,
    without_gaps,
)
from plugrad.autograd.functional.matrices import jacobian_by_columns, rows_at_once, rows_one_by_one
from plugrad.autograd.functional.matrices import standard_basis as _construct_standard_basis_for
from plugrad.autograd.grad_mode import enable_grad
from plugrad.tensor.calls.annotations import explains

if TYPE_CHECKING:
    from plugrad import Tensor

__all__ = ["_construct_standard_basis_for", "hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Strategy = Literal["forward-mode", "reverse-mode"]


@overload
def vjp(
    func: Callable[[Tensor], Tensor],
    inputs: Tensor,
    v: Tensor | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensor, Tensor]: ...
@overload
def vjp(
    func: Callable[..., Any],
    inputs: Tensor | tuple[Tensor, ...],
    v: Tensor | tuple[Tensor, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]: ...
@explains
def vjp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """A function's outputs at a point, and the product of a vector with its Jacobian there.

    Args:
        func: takes tensors, returns a tensor or a tuple of tensors.
        inputs: the point: a tensor, or a tuple of tensors of any shapes.
        v: the vector, of the outputs' shapes; None for one output with one element.
        create_graph: whether both results can be differentiated further.
        strict: raise where an output does not depend on an input, instead of giving zeros.

    Returns:
        The outputs, and the product, which has the inputs' shapes.

    Raises:
        TypeError: something is neither a tensor nor a tuple of tensors.
        RuntimeError: `v` is missing or does not fit; see `strict`.

    >>> import plugrad
    >>> x = plugrad.tensor([1., 2.])
    >>> plugrad.autograd.functional.vjp(lambda x: x * x, x, plugrad.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    with enable_grad():
        nested, points = points_of(inputs, "vjp", create_graph)
        nested_outputs, outputs = evaluate(func, points, "vjp", strict)
        vectors = None
        if v is not None:
            vectors = vectors_of(v, outputs, nested_outputs, "vjp", create_graph)
        elif len(outputs) != 1 or outputs[0].numel() != 1:
            raise RuntimeError(
                "The vector v can only be None if the user-provided function returns a single "
                "Tensor with a single element."
            )
    grads = gradients(outputs, points, vectors, create_graph)
    product = without_gaps(
        grads,
        points,
        strict,
        create_graph,
        INDEPENDENT,
        "jacobian",
    )
    return (
        as_result(outputs, nested_outputs, create_graph),
        as_result(product, nested, create_graph),
    )


@overload
def jvp(
    func: Callable[[Tensor], Tensor],
    inputs: Tensor,
    v: Tensor | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensor, Tensor]: ...
@overload
def jvp(
    func: Callable[..., Any],
    inputs: Tensor | tuple[Tensor, ...],
    v: Tensor | tuple[Tensor, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]: ...
@explains
def jvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """A function's outputs at a point, and the product of its Jacobian there with a vector.

    It is computed by two backward passes: the gradient `v' J` is linear in `v'`, and its own
    gradient with respect to `v'`, times `v`, is `J v`.

    Args:
        func: takes tensors, returns a tensor or a tuple of tensors.
        inputs: the point: a tensor, or a tuple of tensors of any shapes.
        v: the vector, of the inputs' shapes; None for one input with one element.
        create_graph: whether both results can be differentiated further.
        strict: raise where an output does not depend on an input, instead of giving zeros.

    Returns:
        The outputs, and the product, which has the outputs' shapes.

    Raises:
        TypeError: something is neither a tensor nor a tuple of tensors.
        RuntimeError: `v` is missing or does not fit; see `strict`.

    >>> import plugrad
    >>> x = plugrad.tensor([1., 2.])
    >>> plugrad.autograd.functional.jvp(lambda x: x * x, x, plugrad.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    with enable_grad():
        nested, points = points_of(inputs, "jvp", create_graph)
        vectors = vectors_like_points(v, points, nested, "jvp", create_graph)
        nested_outputs, outputs = evaluate(func, points, "jvp", strict)
        weights, grads = linear_gradients(outputs, points)
        check_requires_grad(
            grads,
            strict,
            "The gradient with respect to input {} is independent of the inputs of the "
            "user-provided function. This is not allowed in strict mode.",
        )
    columns = gradients(grads, weights, vectors, create_graph)
    product = without_gaps(
        columns,
        outputs,
        strict,
        create_graph,
        "The gradient with respect to the input is independent of entry {} in the grad_outputs "
        "when using the double backward trick to compute forward mode gradients. This is not "
        "allowed in strict mode.",
        "jacobian",
    )
    return (
        as_result(outputs, nested_outputs, create_graph),
        as_result(product, nested_outputs, create_graph),
    )


@overload
def jacobian(
    func: Callable[[Tensor], Tensor],
    inputs: Tensor,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: Strategy = "reverse-mode",
) -> Tensor: ...
@overload
def jacobian(
    func: Callable[..., Any],
    inputs: Tensor | tuple[Tensor, ...],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: Strategy = "reverse-mode",
) -> Any: ...
@explains
def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: Strategy = "reverse-mode",
) -> Any:
    """The Jacobian of a function at a point.

    Args:
        func: takes tensors, returns a tensor or a tuple of tensors.
        inputs: the point: a tensor, or a tuple of tensors of any shapes.
        create_graph: whether the result can be differentiated further.
        strict: raise where an output does not depend on an input, instead of giving zeros.
        vectorize: compute all rows by one call of `autograd.grad` with a batch of gradients.
        strategy: "reverse-mode" computes row by row, "forward-mode" column by column, which is
            less work if there are more outputs than inputs; it needs `vectorize`.

    Returns:
        For one output and one input a tensor, of the output's shape followed by the input's. A
        tuple of such if one of the two is a tuple, and a tuple per output of tuples per input if
        both are. They have the inputs' dtypes; with "forward-mode" the outputs'.

    Raises:
        TypeError: something is neither a tensor nor a tuple of tensors.
        RuntimeError: see `strict`, which does not go with `vectorize`.
        NotImplementedError: "forward-mode" without `vectorize` or with `create_graph`.

    >>> import plugrad
    >>> plugrad.autograd.functional.jacobian(lambda x: x * x.sum(), plugrad.tensor([1., 2.]))
    tensor([[4., 1.],
            [2., 5.]])
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your '
            'function has more outputs than inputs, "forward-mode" tends to be more performant. '
            'Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                'plugrad.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-'
                'mode"` are not supported together (yet). Please either set `create_graph=False` '
                'or `strategy="reverse-mode"`.'
            )
        return jacobian_by_columns(func, inputs, strict, vectorize)
    with enable_grad():
        nested, points = points_of(inputs, "jacobian", create_graph)
        nested_outputs, outputs = evaluate(func, points, "jacobian", strict)
        if vectorize and strict:
            raise RuntimeError(
                "plugrad.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not "
                "supported together. Please either set `strict=False` or `vectorize=False`."
            )
        rows = rows_at_once if vectorize else rows_one_by_one
        found = rows(outputs, points, create_graph, strict)
        matrices = tuple(as_result(of_output, nested, create_graph) for of_output in found)
    return matrices if nested_outputs else matrices[0]


@overload
def hessian(
    func: Callable[[Tensor], Tensor],
    inputs: Tensor,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: Strategy = "reverse-mode",
) -> Tensor: ...
@overload
def hessian(
    func: Callable[..., Any],
    inputs: Tensor | tuple[Tensor, ...],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: Strategy = "reverse-mode",
) -> Any: ...
@explains
def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: Strategy = "reverse-mode",
) -> Any:
    """The Hessian of a function with one element as its result: the Jacobian of its gradient.

    Args:
        func: takes tensors, returns a tensor with one element.
        inputs: the point: a tensor, or a tuple of tensors of any shapes.
        create_graph: whether the result can be differentiated further.
        strict: raise where the output or the gradient does not depend on an input, instead of
            giving zeros.
        vectorize, outer_jacobian_strategy: as in `jacobian`, for the Jacobian of the gradient.

    Returns:
        For one input a tensor, of its shape twice. For a tuple of inputs a tuple of tuples, where
        `[i][j]` has the shape of input i followed by that of input j.

    Raises:
        TypeError: something is neither a tensor nor a tuple of tensors.
        RuntimeError: the function returns something else than one element; see `strict`.

    >>> import plugrad
    >>> plugrad.autograd.functional.hessian(lambda x: (x ** 3).sum(), plugrad.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    nested, points = as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def scalar(*tensors: Any) -> Any:
        (output,) = evaluate_scalar(func, tensors, "hessian", strict)
        return output.squeeze()

    def gradient(*tensors: Any) -> Any:
        found = jacobian(scalar, tensors, create_graph=True)
        check_requires_grad(found, strict, LINEAR)
        return found

    found = jacobian(
        gradient,
        points,
        create_graph=create_graph,
        strict=strict,
        vectorize=vectorize,
        strategy=outer_jacobian_strategy,
    )
    return found if nested else found[0][0]


@overload
def vhp(
    func: Callable[[Tensor], Tensor],
    inputs: Tensor,
    v: Tensor | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensor, Tensor]: ...
@overload
def vhp(
    func: Callable[..., Any],
    inputs: Tensor | tuple[Tensor, ...],
    v: Tensor | tuple[Tensor, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]: ...
@explains
def vhp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """A function's output at a point, and the product of a vector with its Hessian there.

    Args:
        func: takes tensors, returns a tensor with one element.
        inputs: the point: a tensor, or a tuple of tensors of any shapes.
        v: the vector, of the inputs' shapes; None for one input with one element.
        create_graph: whether both results can be differentiated further.
        strict: raise where the gradient does not depend on an input, instead of giving zeros.

    Returns:
        The output, and the product, which has the inputs' shapes.

    Raises:
        TypeError: something is neither a tensor nor a tuple of tensors.
        RuntimeError: `v` is missing or does not fit, the function returns something else than one
            element; see `strict`.

    >>> import plugrad
    >>> x = plugrad.tensor([1., 2.])
    >>> plugrad.autograd.functional.vhp(lambda x: (x ** 3).sum(), x, plugrad.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        nested, points = points_of(inputs, "vhp", create_graph)
        vectors = vectors_like_points(v, points, nested, "vhp", create_graph)
        outputs = evaluate_scalar(func, points, "vhp", strict)
        grads = gradients(outputs, points, None, True)
        check_requires_grad(grads, strict, LINEAR)
    rows = gradients(grads, points, vectors, create_graph)
    product = without_gaps(
        rows,
        points,
        strict,
        create_graph,
        "The jacobian of the user-provided function is independent of input {}. This is not "
        "allowed in strict mode.",
        "hessian",
    )
    return as_result(outputs, False, create_graph), as_result(product, nested, create_graph)


@overload
def hvp(
    func: Callable[[Tensor], Tensor],
    inputs: Tensor,
    v: Tensor | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensor, Tensor]: ...
@overload
def hvp(
    func: Callable[..., Any],
    inputs: Tensor | tuple[Tensor, ...],
    v: Tensor | tuple[Tensor, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]: ...
@explains
def hvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """A function's output at a point, and the product of its Hessian there with a vector.

    For a function that is twice continuously differentiable this is `vhp`, which is faster.

    Args:
        func: takes tensors, returns a tensor with one element.
        inputs: the point: a tensor, or a tuple of tensors of any shapes.
        v: the vector, of the inputs' shapes; None for one input with one element.
        create_graph: whether both results can be differentiated further.
        strict: raise where the gradient does not depend on an input, instead of giving zeros.

    Returns:
        The output, and the product, which has the inputs' shapes.

    Raises:
        TypeError: something is neither a tensor nor a tuple of tensors.
        RuntimeError: `v` is missing or does not fit, the function returns something else than one
            element; see `strict`.

    >>> import plugrad
    >>> x = plugrad.tensor([1., 2.])
    >>> plugrad.autograd.functional.hvp(lambda x: (x ** 3).sum(), x, plugrad.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        nested, points = points_of(inputs, "hvp", create_graph)
        vectors = vectors_like_points(v, points, nested, "hvp", create_graph)
        outputs = evaluate_scalar(func, points, "hvp", strict)
        grads = gradients(outputs, points, None, True)
        check_requires_grad(grads, strict, LINEAR)
        weights, rows = linear_gradients(grads, points)
    columns = gradients(rows, weights, vectors, create_graph)
    product = without_gaps(
        columns,
        points,
        strict,
        create_graph,
        "The hessian of the user-provided function is independent of entry {} in the "
        "grad_jacobian. This is not allowed in strict mode as it prevents from using the double "
        "backward trick to replace forward mode AD.",
        "hessian",
    )
    return as_result(outputs, False, create_graph), as_result(product, nested, create_graph)
