"""`jvp`, `jacfwd`, `hessian` and `linearize`: forward mode of functions.

The function runs on tensors of a level, which are dual tensors there. The forward rules compute one
level further out, where they can be transformed again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from plugrad._generated import functions as F
from plugrad.graph.dual_tensors import dual, primal_of, tangent_of
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.annotations import explains
from plugrad.tensor.dual import AtForwardLevel
from plugrad.tensor.levels import (
    JVP,
    AtLevel,
    is_mapped_like,
    living,
    make_level_tensor,
    value_at,
)
from plugrad.transforms.func.arguments import check_argnums, check_real, chosen, replaced
from plugrad.transforms.func.gradients import check_outputs, outside, vjp_with_hooks
from plugrad.transforms.func.jacobians import jacrev, standard_basis
from plugrad.transforms.pytrees import flatten, map_leaves, shown, unflatten
from plugrad.transforms.vmap import vmap

_API = "jvp(f, primals, tangents)"


@explains
def jvp(
    func: Callable[..., Any],
    primals: Any,
    tangents: Any,
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Any:
    """A function's outputs, and the product of its Jacobian with tangents, in one forward pass.

    Args:
        func: a function of trees of tensors that returns a tree of tensors, with `has_aux` a pair
            of that and another tree.
        primals: the tuple of its arguments.
        tangents: the tuple of tangents, in the form and with the shapes of `primals`.
        strict: raise where an output does not depend on the arguments, instead of giving zeros.
        has_aux: whether `func` returns something besides its outputs.

    Returns:
        ``(outputs, products)``, both in the form of the outputs; with `has_aux`
        ``(outputs, products, aux)``.

    Raises:
        RuntimeError: `primals` and `tangents` are not tuples of one form with tensors in them, a
            shape does not fit, `func` returns something else than tensors; see `strict`.

    >>> import plugrad
    >>> from plugrad.func import jvp
    >>> jvp(lambda x: x * x, (plugrad.tensor([1., 2.]),), (plugrad.tensor([1., 0.]),))
    (tensor([1., 4.]), tensor([2., 0.]))
    """
    leaves, structure = _check_primals(primals)
    directions, found = flatten(tangents)
    if found != structure:
        raise RuntimeError(
            f"{_API}: Expected primals and tangents to have the same python structure. For "
            "example, if primals is a tuple of 3 tensors, tangents also must be. Got primals with "
            f"structure {shown(structure)} and tangents with structure {shown(found)}"
        )
    _check_tensors(leaves, directions)
    for leaf, tangent in zip(leaves, directions, strict=True):
        check_dual_dtype("primal", leaf)
        check_dual_dtype("tangent", tangent)
    directions = [
        _mapped_like(leaf, tangent) for leaf, tangent in zip(leaves, directions, strict=True)
    ]
    with AtLevel(JVP) as level, AtForwardLevel() as forward:
        inside = [
            dual(make_level_tensor(leaf, level), make_level_tensor(tangent, level), forward)
            for leaf, tangent in zip(leaves, directions, strict=True)
        ]
        output = func(*unflatten(structure, inside))
        aux: Any = None
        if has_aux:
            if not (isinstance(output, tuple) and len(output) == 2):
                raise RuntimeError(
                    f"{_API}: output of function f should be a tuple: (output, aux) if has_aux is "
                    "True"
                )
            output, aux = output
            aux = outside(map_leaves(_primal, aux), level)
        outputs, form = flatten(output)
        check_outputs(_API, "f(*primals)", output, outputs)
        values: list[Any] = []
        products: list[Any] = []
        for item in outputs:
            item = living(item)
            product = tangent_of(item)
            if product is None and strict:
                raise RuntimeError(
                    f"{_API[:-1]}, strict=True): The output of f is independent of the inputs. "
                    "This is not allowed with strict=True."
                )
            value = value_at(_primal(item), level)
            values.append(value)
            # Zeros are made outside, like all else of them.
            products.append(None if product is None else value_at(product, level))
    made = [
        F.zeros_like(value) if product is None else product
        for value, product in zip(values, products, strict=True)
    ]
    result = (unflatten(form, values), unflatten(form, made))
    return (*result, aux) if has_aux else result


def _mapped_like(primal: Any, tangent: Any) -> Any:
    """A tangent that is mapped over wherever its primal is, so that it can be written to when the
    primal is."""
    if is_mapped_like(tangent, primal) or primal.shape != tangent.shape:
        return tangent
    return F.add(F.zeros_like(primal, dtype=tangent.dtype), tangent)


def _primal(value: Any) -> Any:
    return primal_of(value) if isinstance(value, TensorBase) else value


def _check_primals(primals: Any) -> tuple[list[Any], Any]:
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{_API}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    leaves, structure = flatten(primals)
    if not leaves:
        raise RuntimeError(f"{_API}: Expected primals to contain at least one Tensor.")
    return leaves, structure


def _check_tensors(primals: list[Any], tangents: list[Any]) -> None:
    """Check that primals and tangents are tensors with a differentiable dtype."""
    for name, values in (("primals", primals), ("tangents", tangents)):
        for value in values:
            if not isinstance(value, TensorBase):
                raise RuntimeError(
                    f"{_API}: Expected {name} to only contain Tensors, got {type(value)}"
                )


def check_dual_dtype(what: str, value: TensorBase) -> None:
    """ValueError if a tensor's dtype has no derivative."""
    if not value.dtype.is_differentiable:
        raise ValueError(f"Expected {what} to be floating point or complex, but got: {value.dtype}")


@explains
def jacfwd(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """The function that computes the Jacobian of `func` in forward mode.

    It is better if there are more outputs than inputs; otherwise use `jacrev`.

    Args:
        func, argnums, has_aux: as for `jacrev`.
        randomness: as for `vmap`, which maps over the columns of the Jacobian.

    Returns:
        A function with the same results as the one from `jacrev`.

    Raises:
        ValueError: an argument is not a tree of tensors of floating point or complex dtype.
        RuntimeError: `argnums` names no argument; `func` returns something else than tensors.

    >>> import plugrad
    >>> from plugrad.func import jacfwd
    >>> jacfwd(lambda x: x * x)(plugrad.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        check_argnums(argnums, len(args))
        inputs, form = flatten(chosen(args, argnums))
        for item in inputs:
            if not isinstance(item, TensorBase):
                raise ValueError(f"Thing passed to transform API must be Tensor, got {type(item)}")
            check_dual_dtype("primal", item)

        def of_leaves(*leaves: Any) -> Any:
            return func(*replaced(args, unflatten(form, list(leaves)), argnums), **kwargs)

        def push_forward(*tangents: Any) -> Any:
            outputs, products, *aux = jvp(of_leaves, tuple(inputs), tangents, has_aux=has_aux)
            check_real("jacfwd", "outputs", flatten(outputs)[0])
            return products, aux

        check_real("jacfwd", "inputs", flatten(args)[0])
        mapped = vmap(push_forward, out_dims=(0, None), randomness=randomness)
        products, aux = mapped(*standard_basis(inputs))
        columns, structure = flatten(products)
        counts = [item.numel() for item in inputs]
        found = unflatten(
            structure, [unflatten(form, _parts(column, counts, inputs)) for column in columns]
        )
        return (found, aux[0]) if has_aux else found

    return jacobian


def _parts(column: Any, counts: list[int], inputs: list[Any]) -> list[Any]:
    """One output's derivatives, with the inputs' elements first, as one tensor for each input."""
    shape = column.shape[1:]
    parts = F.split(column, counts, 0) if len(counts) > 1 else (column,)
    return [
        F.movedim(part, 0, -1).reshape((*shape, *item.shape))
        for part, item in zip(parts, inputs, strict=True)
    ]


@explains
def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """The function that computes the Hessian of `func`: ``jacfwd(jacrev(func))``.

    Args:
        func: a function of trees of tensors that returns a tree of tensors.
        argnums: the positional arguments to differentiate by: one, or a tuple of several.

    Returns:
        A function that gives for each output the derivatives with respect to pairs of arguments,
        of shape ``(*output.shape, *argument.shape, *argument.shape)``.

    >>> import plugrad
    >>> from plugrad.func import hessian
    >>> hessian(lambda x: (x ** 3).sum())(plugrad.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


@explains
def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """A function's outputs at a point, and the linear function given by its Jacobian there.

    Better than `jvp` for many tangents at one point: `func` runs only once. The
    linear function is the transpose of the backward pass, which is linear in its cotangents.

    Args:
        func: a function of trees of tensors that returns a tree.
        primals: its arguments.

    Returns:
        ``(outputs, jvp_fn)``; `jvp_fn` takes tangents in the form of `primals` and gives the
        products in the form of the outputs. Integer outputs get zeros as products; outputs that are
        not tensors are passed through.

    Raises:
        RuntimeError: tangents do not have the form, the shapes or the dtypes of `primals`.

    >>> import plugrad
    >>> from plugrad.func import linearize
    >>> outputs, jvp_fn = linearize(plugrad.sin, plugrad.tensor(0.))
    >>> jvp_fn(plugrad.tensor(2.))
    tensor(2.)
    """
    leaves, structure = flatten(primals)
    form: Any = None
    returned: list[Any] = []

    def tensors_of(*args: Any) -> Any:
        """The tensors among the outputs: those that have derivatives, at least one, and all."""
        nonlocal form, returned
        returned, form = flatten(func(*args))
        tensors = [item for item in returned if isinstance(item, TensorBase)]
        smooth = [item for item in tensors if item.dtype.is_differentiable]
        return smooth or [F.zeros(())], tensors

    values, vjp_fn, tensors = vjp_with_hooks(tensors_of, primals, None, True)
    cotangents = map_leaves(F.zeros_like, values)
    transposed: Any = None
    if leaves:
        _, transposed = vjp_with_hooks(vjp_fn, (cotangents,), None, False)

    def jvp_fn(*tangents: Any) -> Any:
        directions, found = flatten(tangents)
        if found != structure:
            raise RuntimeError(
                f"Expected the tangents {shown(found)} to have the same argspec as the primals "
                f"{shown(structure)}"
            )
        for place, (primal, tangent) in enumerate(zip(leaves, directions, strict=True)):
            for what in ("shape", "dtype"):
                given, wanted = getattr(tangent, what), getattr(primal, what)
                if given != wanted:
                    raise RuntimeError(
                        f"tangent:{place} with {what} {given} in flattened pytree doesn't match "
                        f"the {what} {wanted} of the corresponding primal."
                    )
        # Without primals there is no argument to be linear in.
        products = iter(() if transposed is None else transposed(tangents)[0])
        return among_others(
            [
                next(products) if leaves and x.dtype.is_differentiable else F.zeros_like(x)
                for x in tensors
            ]
        )

    def among_others(found: list[Any]) -> Any:
        """A tree like the outputs, with other tensors in it."""
        rest = iter(found)
        items = [next(rest) if isinstance(item, TensorBase) else item for item in returned]
        return unflatten(form, items)

    return among_others(tensors), jvp_fn
