"""Lists of tensors that a backend takes in one call, as optimizers have them.

Tensors need no dispatch of their own if they have one floating point dtype, one device and matching
shapes, no gradient is needed, and no transform has wrapped them. They go to the backend's kernel
`_fused_lists` together: NumPy's is one loop, JAX's one program.
"""

from __future__ import annotations

# Interpreted: loaded on demand.
from collections.abc import Sequence
from typing import Any, Final

from plugrad._generated import functions as F
from plugrad.dispatch.backends.active import ActiveBackend, find_backend
from plugrad.dispatch.operator import find_operator
from plugrad.tensor.aliasing.alias_kernels import announce_write, write_array
from plugrad.tensor.base import bump_version
from plugrad.tensor.calls.lists import are_alike

Tensors = Sequence[Any]

# Operators that compute the same for all shapes alike: with a number, with a second list.
_WITH_NUMBER: Final = {
    **{name: f"{name}.Scalar" for name in ("add", "sub", "mul", "div")},
    "pow": "pow.Tensor_Scalar",
    "clamp_min": "clamp_min",
    "clamp_max": "clamp_max",
}
_WITH_LIST: Final = {
    **{name: f"{name}.Tensor" for name in ("add", "sub", "mul", "div")},
    "pow": "pow.Tensor_Tensor",
    **dict.fromkeys(("maximum", "clamp_min"), "maximum"),
    **dict.fromkeys(("minimum", "clamp_max"), "minimum"),
}
_NAMES: Final = {"Scalar": _WITH_NUMBER, "Tensor": _WITH_LIST, "": {"lerp": "lerp.Scalar"}}


def fused(name: str, overload: str, lists: tuple[Tensors, ...], numbers: Any = ()) -> Any:
    """The results of an operator for a whole list in one call, None if each needs its own call.

    Args:
        name: the operator on one tensor; in place with `_` at the end.
        overload: "Scalar", "Tensor", or "" for one that has no overloads.
        lists: of tensors, equally long.
        numbers: one for each place, or none.
    """
    in_place = name.endswith("_")
    base = name.removesuffix("_")
    function = _NAMES[overload].get(base, None if overload else base)
    active = find_backend(lists[0][0].device.type)
    if function is None or find_operator(f"plugrad::{function}") is None:
        return None
    if not are_alike(active, lists) or any(type(each) not in (int, float) for each in numbers):
        return None
    given = [*lists, *[[]] * (3 - len(lists)), numbers]
    if not in_place:
        return F._fused_lists(function, *given)
    targets = lists[0]
    if not active.backend.mutable:
        return _put_in_place(active, function, lists, given)
    F._update_lists(function, *given)
    return list(targets)


def _put_in_place(
    active: ActiveBackend, function: str, lists: tuple[Tensors, ...], given: list[Any]
) -> list[Any] | None:
    """For arrays that cannot be written to: new ones take the place of the tensors' own."""
    targets = lists[0]
    places: dict[int, int] = {}
    for place, target in enumerate(targets):
        if target._view_info is not None or _memory(target) in places:
            return None  # a later write would not see this one
        places[_memory(target)] = place
    for tensors in lists[1:]:
        for place, item in enumerate(tensors):
            if item._view_info is not None or places.get(_memory(item), place) != place:
                return None
    operator = find_operator("plugrad::_update_lists")
    assert operator is not None
    results = F._fused_lists(function, *given)
    for target, result in zip(targets, results, strict=True):
        announce_write(target)
        write_array(operator, active, target, result._backend_array, result.dtype)
        bump_version(target)
    return list(targets)


def _memory(tensor: Any) -> int:
    """What tensors that share memory have in common."""
    return id(tensor if tensor._shared_storage is None else tensor._shared_storage)


def fused_lists(function: str, self: Tensors, second: Tensors, third: Tensors, numbers: Any) -> Any:
    """The decomposition, for backends without a kernel: each tensor by itself."""
    return list(_one_by_one(function, self, second, third, numbers))


def update_lists(
    function: str, self: Tensors, second: Tensors, third: Tensors, numbers: Any
) -> None:
    for target, result in zip(
        self, _one_by_one(function, self, second, third, numbers), strict=True
    ):
        target.copy_(result)


def _one_by_one(function: str, self: Tensors, second: Tensors, third: Tensors, numbers: Any) -> Any:
    name = function.partition(".")[0]
    operator = getattr(F, name, None)
    if operator is None:
        raise ValueError(
            f"_fused_lists(): argument 'function' (position 1) must be the name of an operator, "
            f"such as 'add.Tensor', not {function!r}"
        )
    lists = [tensors for tensors in (self, second, third) if tensors]
    for place, items in enumerate(zip(*lists, strict=True)):
        if not numbers:
            yield operator(*items)
        elif name in ("add", "sub") and second:
            yield operator(*items, alpha=numbers[place])
        elif name in ("addcmul", "addcdiv"):
            yield operator(*items, value=numbers[place])
        else:
            yield operator(*items, numbers[place])
