"""How a view was made decides whether a recorded in-place operator may write to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import plugrad


def leaf() -> Any:
    return plugrad.ones(4, requires_grad=True)


def made_in_no_grad(base: Any) -> Any:
    with plugrad.no_grad():
        return base.view(2, 2)


NO_GRAD_VIEW = (
    "A view was created in no_grad mode and is being modified inplace with grad mode enabled. "
    "Given that this use case is ambiguous and error-prone, it is forbidden."
)
NO_GRAD_VIEW_INDIRECT = (
    "A view was created in no_grad mode and its base or another view of its base has been modified "
    "inplace with grad mode enabled."
)
SEVERAL: dict[str, Callable[[Any], Any]] = {
    "Split": lambda t: t.split(1)[0],
    "SplitWithSizes": lambda t: t.split([1, 1])[0],
    "Unbind": lambda t: t.unbind()[0],
}


@pytest.mark.parametrize("base", [leaf(), leaf() * 1])
def test_a_view_made_in_no_grad_requires_grad_but_has_no_grad_fn(base: Any) -> None:
    view = made_in_no_grad(base)
    assert view.requires_grad
    assert view.grad_fn is None
    assert view.is_leaf
    assert view._base is base


def test_no_gradient_flows_through_a_view_made_in_no_grad() -> None:
    base = leaf() * 1
    view = made_in_no_grad(base)
    out = view * 2
    assert out.requires_grad
    assert {node for node, _ in out.grad_fn.next_functions} == {None}
    assert plugrad.autograd.grad(out.sum(), base, allow_unused=True) == (None,)


@pytest.mark.parametrize("base", [leaf(), leaf() * 1])
def test_a_view_made_in_no_grad_cannot_be_written_to(base: Any) -> None:
    view = made_in_no_grad(base)
    with pytest.raises(RuntimeError) as error:
        view.add_(1)
    assert str(error.value).startswith(NO_GRAD_VIEW)
    assert "inside the no_grad block" in str(error.value)
    assert view._version == 0


def test_nor_with_a_gradient_that_comes_from_elsewhere() -> None:
    view = made_in_no_grad(plugrad.ones(4))
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is being"):
        view.mul_(plugrad.ones(2, 2, requires_grad=True))


def test_unrecorded_writes_to_it_are_allowed() -> None:
    view = made_in_no_grad(plugrad.ones(4))
    view.mul_(2)
    assert view.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    of_leaf = made_in_no_grad(leaf())
    with plugrad.no_grad():
        of_leaf.mul_(2)
    assert of_leaf._version == 1


def test_a_view_made_in_no_grad_has_no_place_in_the_graph_once_its_base_changed() -> None:
    base = leaf()
    view = made_in_no_grad(base)
    with plugrad.no_grad():
        base.add_(1)
    assert view.requires_grad
    for use in (lambda: view.grad_fn, lambda: view.is_leaf, lambda: view * 2, view.sum):
        with pytest.raises(RuntimeError) as error:
            use()
        assert str(error.value).startswith(NO_GRAD_VIEW_INDIRECT)


def test_such_a_view_can_still_be_detached_and_printed() -> None:
    base = leaf()
    view = made_in_no_grad(base)
    with plugrad.no_grad():
        base.add_(1)
    assert view.detach().tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert "grad_fn=<Invalid>" in repr(view)
    assert view.output_nr == 0


def test_a_view_of_such_a_view_inherits_the_ban() -> None:
    view = made_in_no_grad(leaf() * 1).t()
    assert view.grad_fn.name() == "TBackward0"
    with pytest.raises(RuntimeError, match="Output 0 of T is a view of a view which was"):
        view.add_(1)


@pytest.mark.parametrize("name", SEVERAL)
def test_one_of_several_views_cannot_be_written_to(name: str) -> None:
    view = SEVERAL[name](leaf().view(2, 2) * 1)
    with pytest.raises(RuntimeError) as error:
        view.add_(1)
    message = str(error.value)
    assert message.startswith(f"Output 0 of {name} is a view and is being modified inplace.")
    assert "This view is the output of a function that returns multiple views." in message


@pytest.mark.parametrize("name", SEVERAL)
def test_nor_can_it_follow_its_base(name: str) -> None:
    base = leaf().view(2, 2) * 1
    view = SEVERAL[name](base)
    base.add_(1)
    with pytest.raises(RuntimeError, match=f"Output 0 of {name} is a view and its base or another"):
        view.grad_fn  # noqa: B018


def test_one_of_several_views_of_what_needs_no_grad_can_be_written_to() -> None:
    base = plugrad.ones(2, 2)
    base.unbind()[0].mul_(3)
    assert base.tolist() == [[3.0, 3.0], [1.0, 1.0]]
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is being"):
        base.unbind()[0].mul_(leaf()[:2])


def test_one_of_several_views_made_in_no_grad_counts_as_made_in_no_grad() -> None:
    base = leaf() * 1
    with plugrad.no_grad():
        view = base.split(1)[0]
    with pytest.raises(RuntimeError, match="inside the no_grad block"):
        view.add_(1)


def test_a_view_of_one_of_several_views_cannot_be_written_to() -> None:
    view = (leaf() * 1).split(2)[1][:1]
    with pytest.raises(RuntimeError, match="Output 0 of Slice is a view and is being modified"):
        view.add_(1)


def test_a_view_of_a_leaf_cannot_be_written_to() -> None:
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being"):
        leaf().view(2, 2).add_(1)


def test_nor_if_the_base_became_a_leaf_that_requires_grad_later() -> None:
    base = plugrad.ones(4)
    view = base.view(2, 2)
    base.requires_grad_()
    assert view.requires_grad
    assert view.is_leaf
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being"):
        view.add_(1)


def test_a_view_made_before_its_base_required_grad_joins_the_graph_when_written_to() -> None:
    base = plugrad.ones(4)
    view = base.view(2, 2)
    base.requires_grad_()
    with plugrad.no_grad():
        base.add_(1)
    assert view.grad_fn is not None
    assert not view.is_leaf
    (view * 3).sum().backward()
    assert base.grad.tolist() == [3.0] * 4


def test_a_view_that_its_base_made_require_grad_counts_as_a_leaf() -> None:
    base, other = plugrad.ones(4), leaf()
    view, writer = base.view(4), base.view(4)
    writer.mul_(other)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used"):
        view.mul_(2)
    assert view.grad_fn is not None  # now it knows
    view.mul_(2)
