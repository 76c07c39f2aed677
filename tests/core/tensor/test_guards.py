"""The guards of traced steps: whether objects and arguments are what they were."""

import types
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

import plugrad
from plugrad.plugins.tracing import SameArguments, SameObjects


def cell_of(function: Callable[[], Any]) -> Any:
    closure = function.__closure__
    assert closure is not None
    return closure[0]


class Place:
    """One of everything that a guard looks at."""

    def __init__(self) -> None:
        self.whole = {"a": object(), "b": object()}
        self.lazy: dict[str, object] = defaultdict(object, a=object())
        self.items = [object(), object()]
        self.group = {"lr": 0.1, "params": [object()]}
        self.sized = {"x": 1}
        captured = object()

        def step() -> object:
            return captured

        def assign(value: object) -> None:
            nonlocal captured
            captured = value

        self.assign = assign
        self.guard = SameObjects(
            [self.whole, self.lazy],
            [self.items],
            [(self.group, "params")],
            [cell_of(step)],
            [self.sized, self.group],
        )


@pytest.mark.parametrize(
    ("change", "holds"),
    [
        (lambda p: None, True),
        (lambda p: p.whole.update(a=p.whole["a"]), True),
        (lambda p: p.group.update(lr=0.2), True),
        (lambda p: p.sized.update(x=2), True),
        (lambda p: p.whole.update(a=object()), False),
        (lambda p: p.whole.update(c=object()), False),
        (lambda p: p.whole.pop("b"), False),
        (lambda p: p.lazy["c"], False),
        (lambda p: p.items.append(object()), False),
        (lambda p: p.items.reverse(), False),
        (lambda p: p.items.clear(), False),
        (lambda p: p.group.update(params=list(p.group["params"])), False),
        (lambda p: p.group.pop("params"), False),
        (lambda p: p.group.update(momentum=0.9), False),
        (lambda p: p.sized.clear(), False),
        (lambda p: p.assign(object()), False),
    ],
)
def test_objects_are_where_they_were(change: Callable[[Place], Any], holds: bool) -> None:
    place = Place()
    assert place.guard.hold()
    change(place)
    assert place.guard.hold() is holds


def test_a_variable_of_a_closure_may_be_deleted() -> None:
    cell = types.CellType(object())
    guard = SameObjects([], [], [], [cell], [])
    assert guard.hold()
    del cell.cell_contents
    assert not guard.hold()


def test_what_is_compared_by_identity_is_not_asked_whether_it_is_equal() -> None:
    """Tensors of several elements have no truth."""
    holder = {"w": plugrad.ones(2)}
    guard = SameObjects([holder], [], [], [], [])
    assert guard.hold()
    holder["w"] = plugrad.ones(2)
    assert not guard.hold()


class Named(plugrad.Tensor):
    pass


def test_arguments_are_alike() -> None:
    guard = SameArguments([plugrad.ones(2, 3), plugrad.ones(2, requires_grad=True)])
    other = plugrad.zeros(2, requires_grad=True)
    assert guard.hold((plugrad.zeros(2, 3), other))
    assert not guard.hold((plugrad.zeros(2, 3),))
    assert not guard.hold((plugrad.zeros(2, 3), other, other))
    assert not guard.hold((plugrad.zeros(3, 2), other))
    assert not guard.hold((plugrad.zeros(2, 3, dtype=plugrad.float64), other))
    assert not guard.hold((plugrad.zeros(2, 3, requires_grad=True), other))
    assert not guard.hold((plugrad.zeros(2, 3), plugrad.zeros(2)))
    assert not guard.hold((plugrad.zeros(2, 3).as_subclass(Named), other))
    assert not guard.hold(([[0.0] * 3] * 2, other))
    other.grad = plugrad.ones(2)
    assert not guard.hold((plugrad.zeros(2, 3), other))


def test_arguments_on_another_device_are_others(second_backend: str) -> None:
    guard = SameArguments([plugrad.ones(2)])
    assert not guard.hold((plugrad.ones(2, device=second_backend),))


def test_one_tensor_given_twice_is_no_two() -> None:
    x = plugrad.ones(2)
    guard = SameArguments([x, plugrad.ones(2)])
    assert guard.hold((x, plugrad.ones(2)))
    assert not guard.hold((x, x))


def test_arguments_are_alike_in_one_grad_mode() -> None:
    x = plugrad.ones(2)
    guard = SameArguments([x])
    with plugrad.no_grad():
        assert not guard.hold((x,))
    with plugrad.inference_mode():
        assert not guard.hold((x,))
    assert guard.hold((x,))
