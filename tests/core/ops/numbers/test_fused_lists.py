"""Lists of tensors that a backend takes in one call."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import pytest

import plugrad
from plugrad.dispatch.listener import Trace
from plugrad.dispatch.local_state import current_state


class _Names(Trace):
    """The names of all operators that are dispatched."""

    def __init__(self) -> None:
        super().__init__(None)
        self.names: list[str] = []

    def dispatch(self, kind: str, op: Any, keyset: int, args: tuple[object, ...]) -> Any:
        self.names.append(op.name)
        return super().dispatch(kind, op, keyset, args)


def _devices() -> list[str]:
    return ["cpu"] if importlib.util.find_spec("plugrad_jax") is None else ["cpu", "jax"]


def _lists(device: str = "cpu", count: int = 3) -> tuple[list[Any], list[Any], list[Any]]:
    plugrad.manual_seed(3)
    shapes = [(2, 3), (4,), ()][:count]
    made = [[plugrad.rand(shape) + 0.5 for shape in shapes] for _ in range(3)]
    first, second, third = [[tensor.to(device) for tensor in tensors] for tensors in made]
    return first, second, third


Call = Callable[..., Any]
CALLS: dict[str, tuple[Call, Call]] = {
    "sqrt": (lambda x, y, z: plugrad._foreach_sqrt(x), lambda a, b, c: a.sqrt()),
    "mul_number": (lambda x, y, z: plugrad._foreach_mul(x, 2.5), lambda a, b, c: a * 2.5),
    "add_scaled": (
        lambda x, y, z: plugrad._foreach_add(x, y, alpha=0.3),
        lambda a, b, c: a.add(b, alpha=0.3),
    ),
    "maximum": (lambda x, y, z: plugrad._foreach_maximum(x, y), lambda a, b, c: a.maximum(b)),
    "lerp": (lambda x, y, z: plugrad._foreach_lerp(x, y, 0.7), lambda a, b, c: a.lerp(b, 0.7)),
    "pow": (lambda x, y, z: plugrad._foreach_pow(x, 3), lambda a, b, c: a.pow(3)),
    "addcmul": (
        lambda x, y, z: plugrad._foreach_addcmul(x, y, z, 0.5),
        lambda a, b, c: a.addcmul(b, c, value=0.5),
    ),
    "addcdiv_": (
        lambda x, y, z: plugrad._foreach_addcdiv_(x, y, z, 0.5),
        lambda a, b, c: a.addcdiv_(b, c, value=0.5),
    ),
    "sub_": (lambda x, y, z: plugrad._foreach_sub_(x, y, alpha=2), lambda a, b, c: a.sub_(b * 2)),
    "exp_": (lambda x, y, z: plugrad._foreach_exp_(x), lambda a, b, c: a.exp_()),
    "clamp_min_": (
        lambda x, y, z: plugrad._foreach_clamp_min_(x, 0.9),
        lambda a, b, c: a.clamp_min_(0.9),
    ),
}


@pytest.mark.parametrize("device", _devices())
@pytest.mark.parametrize("name", CALLS)
def test_a_list_in_one_call_gives_what_its_tensors_give(name: str, device: str) -> None:
    together, alone = CALLS[name]
    expected = [alone(a, b, c) for a, b, c in zip(*_lists(device), strict=True)]
    lists = _lists(device)
    names = _traced(lambda: together(*lists))
    found = together(*_lists(device))
    assert {"_fused_lists", "_update_lists"} & set(names)
    assert name.split("_")[0] not in names
    lists = _lists(device)
    for result, wanted in zip(found, expected, strict=True):
        plugrad.testing.assert_close(result, wanted)
    if name.endswith("_"):
        for result, target in zip(together(*lists), lists[0], strict=True):
            assert result is target
            assert target._version == 1


def _traced(call: Callable[[], object]) -> list[str]:
    names = _Names()
    state = current_state()
    state.trace = names
    try:
        call()
    finally:
        state.trace = None
    return names.names


@pytest.mark.parametrize("device", _devices())
def test_tensors_that_share_memory_see_each_others_writes(device: str) -> None:
    x = plugrad.ones(4, device=device)
    view = x[1:3]
    plugrad._foreach_add_([x, x, view], 1.0)
    assert x.tolist() == [3.0, 4.0, 4.0, 3.0]
    y = plugrad.zeros(4, device=device)
    plugrad._foreach_add_([y, plugrad.ones(4, device=device)], [x, y])
    assert y.tolist() == [3.0, 4.0, 4.0, 3.0]
    assert view.tolist() == [4.0, 4.0]
    shared = x.detach()
    plugrad._foreach_mul_([x], 2.0)
    assert shared.tolist() == x.tolist() == [6.0, 8.0, 8.0, 6.0]


@pytest.mark.parametrize("device", _devices())
def test_a_later_item_reads_what_an_earlier_one_wrote(device: str) -> None:
    x, y = plugrad.ones(2, device=device), plugrad.ones(2, device=device)
    plugrad._foreach_add_([x, y], [y, x])
    assert x.tolist() == [2.0, 2.0]
    assert y.tolist() == [3.0, 3.0]


def test_gradients_come_where_they_are_asked_for() -> None:
    x = plugrad.ones(3, requires_grad=True)
    (result,) = plugrad._foreach_mul([x], 3.0)
    result.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3.0, 3.0, 3.0]
    with plugrad.no_grad():
        plugrad._foreach_mul_([x], 2.0)
    assert x.tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        plugrad._foreach_mul_([x], 2.0)


def test_what_was_saved_for_backward_notices_the_write() -> None:
    x, y = plugrad.ones(2), plugrad.ones(2, requires_grad=True)
    product = (x * y).sum()
    plugrad._foreach_add_([x], 1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        pytest.param(([[1, 2]], 2), [[2, 4]], id="integers"),
        pytest.param(([[1.0, 2.0]], [[3.0]]), [[3.0, 6.0]], id="broadcast"),
        pytest.param(([[1.0], [2]], 2), [[2.0], [4]], id="two dtypes"),
        pytest.param(([[1.0]], 2j), [[2j]], id="complex number"),
    ],
)
def test_what_is_not_alike_goes_one_by_one(lists: Any, expected: Any) -> None:
    first = [plugrad.tensor(values) for values in lists[0]]
    second = lists[1]
    if isinstance(second, list):
        second = [plugrad.tensor(values) for values in second]
    assert [result.tolist() for result in plugrad._foreach_mul(first, second)] == expected
    assert "mul" in _traced(lambda: plugrad._foreach_mul(first, second))


def test_writes_to_expanded_memory_are_refused() -> None:
    x = plugrad.ones(1).expand(3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        plugrad._foreach_add_([x], 1.0)
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_vmap_and_forward_mode_see_single_operators() -> None:
    x = plugrad.arange(6.0).reshape(2, 3)
    found = plugrad.func.vmap(lambda row: plugrad._foreach_mul([row], 2.0)[0])(x)
    assert found.tolist() == (x * 2).tolist()
    _, tangent = plugrad.func.jvp(lambda v: plugrad._foreach_sin([v])[0], (x,), (x,))
    plugrad.testing.assert_close(tangent, x.cos() * x)


def test_an_unknown_function_is_named() -> None:
    x = [plugrad.ones(2)]
    with pytest.raises(ValueError, match=r"argument 'function' .* such as 'add.Tensor', not 'ij'"):
        plugrad.ops.plugrad._fused_lists("ij", x, [], x, [1.0])
