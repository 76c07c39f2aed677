"""`functionalize`: a function without its writes in place.

The function runs on tensors of a level that have the semantics of immutable arrays: a write gives
new elements to the tensor and to the tensors that share its memory
(`tensor/aliasing/functionalize.py`). One level further out, only operators without writes are
called.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from plugrad.levels.functional import settle
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.annotations import explains
from plugrad.tensor.levels import (
    FUNCTIONAL,
    AtLevel,
    living,
    make_level_tensor,
    value_at,
)
from plugrad.transforms.pytrees import flatten, unflatten
from plugrad.transforms.vmap import map_tensors

R = TypeVar("R")


@explains
def functionalize(func: Callable[..., R], *, remove: str = "mutations") -> Callable[..., R]:
    """A function that computes the same as `func` with operators that do not write.

    What `func` writes to its arguments is copied into them in the end, so that the caller sees it.

    Args:
        func: takes trees of tensors, returns a tree.
        remove: "mutations", or "mutations_and_views": views become copies, too.

    Raises:
        RuntimeError: `remove` is something else.

    >>> import plugrad
    >>> from plugrad.func import functionalize
    >>> def f(x):
    ...     y = x.clone()
    ...     y[0].add_(1)
    ...     return y
    >>> graph = plugrad.capture(functionalize(f), plugrad.zeros(2))
    >>> any("add_" in line for line in str(graph).splitlines())
    False
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            "functionalize(f, remove='mutations'): received invalid argument for "
            f"remove={remove}. Valid options are:\n     remove='mutations': all inplace and out= "
            "operators will be removed from the program, and replaced with their out-of-place "
            "equivalents.\n     remove='mutations_and_views': In addition to the above, all "
            "aliasing operators {view} will be replaced with their non-aliasing counterparts, "
            "{view}_copy.\n"
        )

    @functools.wraps(func)
    def functional(*args: Any, **kwargs: Any) -> Any:
        with AtLevel(FUNCTIONAL) as level:
            level.copies_views = remove == "mutations_and_views"
            leaves, structure = flatten((args, kwargs))
            # One tensor that is given twice stays one.
            made = {
                id(leaf): make_level_tensor(leaf, level)
                for leaf in leaves
                if isinstance(leaf, TensorBase)
            }
            inside = [made.get(id(leaf), leaf) for leaf in leaves]
            inner_args, inner_kwargs = unflatten(structure, inside)
            output = func(*inner_args, **inner_kwargs)
            result = map_tensors(lambda x: value_at(living(x), level), output)
            written = [
                (leaf, value_at(made[id(leaf)], level))
                for leaf in leaves
                if id(leaf) in made and value_at(made[id(leaf)], level) is not leaf
            ]
        settle(written)
        return result

    return functional
