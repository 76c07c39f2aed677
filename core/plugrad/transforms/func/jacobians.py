"""`jacrev`: Jacobians by one backward pass for a batch of cotangents."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from plugrad._generated import functions as F
from plugrad.tensor.calls.annotations import explains
from plugrad.transforms.func.arguments import check_argnums, check_real, chosen
from plugrad.transforms.func.gradients import vjp_of
from plugrad.transforms.pytrees import flatten, unflatten
from plugrad.transforms.vmap import vmap


@explains
def jacrev(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """The function that computes the Jacobian of `func` in reverse mode.

    Args:
        func: a function of trees of tensors that returns a tree of tensors, with `has_aux` a pair
            of that and another tree.
        argnums: with respect to which positional arguments: one, or a tuple of several.
        has_aux: whether `func` returns something beside its outputs.
        chunk_size: how many rows of the Jacobian are computed at once; default: all. 1 computes
            one after the other without `vmap`.

    Returns:
        A function that gives the Jacobian: for each output in its place the tree of the arguments,
        of tensors of shape ``(*output.shape, *argument.shape)``. With `has_aux` a pair of that and
        what else `func` returned.

    Raises:
        ValueError: `chunk_size` is not positive, or an argument is not a tree of tensors.
        RuntimeError: `argnums` names no argument; `func` returns something else than tensors.

    >>> import plugrad
    >>> from plugrad.func import jacrev
    >>> jacrev(lambda x: x * x)(plugrad.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        check_argnums(argnums, len(args))
        wanted = functools.partial(func, **kwargs)
        check_real("jacrev", "inputs", flatten(args)[0])
        outputs, vjp_fn, *aux = vjp_of(wanted, args, argnums, has_aux)
        leaves, structure = flatten(outputs)
        check_real("jacrev", "outputs", leaves)
        inputs, form = flatten(chosen(args, argnums))

        def product(*cotangents: Any) -> tuple[Any, ...]:
            return tuple(flatten(vjp_fn(unflatten(structure, list(cotangents))))[0])

        rows = _rows(product, leaves, chunk_size)
        counts = [leaf.numel() for leaf in leaves]
        parts = [F.split(item, counts, 0) if len(leaves) > 1 else (item,) for item in rows]
        per_output = [
            unflatten(
                form,
                [
                    part[place].view((*leaf.shape, *item.shape))
                    for part, item in zip(parts, inputs, strict=True)
                ],
            )
            for place, leaf in enumerate(leaves)
        ]
        found = unflatten(structure, per_output)
        return (found, aux[0]) if has_aux else found

    return jacobian


def _rows(
    product: Callable[..., tuple[Any, ...]], leaves: list[Any], chunk_size: int | None
) -> list[Any]:
    """For each input, the rows of all outputs below each other."""
    basis = standard_basis(leaves)
    total = basis[0].shape[0] if basis else 0
    if chunk_size == 1:
        each = [product(*(part[row] for part in basis)) for row in range(total)]
        return [F.stack(list(column)) for column in zip(*each, strict=True)]
    return list(vmap(product, chunk_size=chunk_size)(*basis))


def standard_basis(leaves: list[Any]) -> list[Any]:
    """For each tensor its part of the unit vectors of all elements: (total, *shape)."""
    counts = [leaf.numel() for leaf in leaves]
    total = sum(counts)
    basis: list[Any] = []
    start = 0
    for leaf, count in zip(leaves, counts, strict=True):
        part = F.zeros((total, count), dtype=leaf.dtype, device=leaf.device)
        if count:
            part.diagonal(-start).fill_(1)
        basis.append(part.view((total, *leaf.shape)))
        start += count
    return basis
