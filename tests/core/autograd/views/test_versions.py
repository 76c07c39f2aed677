"""Version counters, detaching, and who may change `requires_grad`."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad


def result() -> Any:
    return plugrad.ones(4, requires_grad=True) * 1


def test_views_share_the_version() -> None:
    base = result()
    view = base.view(2, 2)
    row = view[0]
    row.add_(1)
    base.add_(1)
    assert (base._version, view._version, row._version) == (2, 2, 2)


def test_what_is_detached_shares_the_version_and_is_no_view() -> None:
    base = result()
    detached = base.view(2, 2).detach()
    detached.add_(1)
    assert base._version == 1
    assert not detached._is_view()
    assert detached._base is None
    assert (detached.requires_grad, detached.is_leaf) == (False, True)


def test_a_view_of_what_is_detached_has_it_as_its_base() -> None:
    detached = result().view(2, 2).detach()
    row = detached[0]
    assert row._base is detached
    assert detached.detach_() is detached


def test_data_has_a_version_of_its_own() -> None:
    base = result()
    data = base.data
    data.add_(1)
    assert (base._version, data._version) == (0, 1)
    assert base.tolist() == [2.0] * 4


def test_views_of_another_dtype_share_only_the_version() -> None:
    base = result()
    view = base.unsqueeze(0)
    comparison = view > 0
    assert comparison._version == 0
    assert not comparison._is_view()


def test_writes_through_what_is_detached_are_noticed_by_saved_tensors() -> None:
    x = plugrad.ones(4, requires_grad=True)
    y = x.sigmoid()
    y.detach().zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("recorded", [True, False])
def test_views_cannot_be_detached_in_place(recorded: bool) -> None:
    base = result() if recorded else plugrad.ones(4)
    view = base[:2]
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        view.detach_()


def test_a_base_can_be_detached_in_place_and_its_views_keep_their_history() -> None:
    base = result()
    view = base.view(2, 2)
    assert base.detach_() is base
    assert (base.requires_grad, base.grad_fn, base.is_leaf) == (False, None, True)
    assert view.requires_grad
    assert view.grad_fn.name() == "ViewBackward0"
    base.add_(1)
    assert view.grad_fn.name() == "AsStridedBackward0"
    assert view.grad_fn.next_functions == ((None, 0),)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        view.add_(1)


def test_the_attribute_of_a_result_cannot_be_assigned() -> None:
    for value in (True, False):
        with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf"):
            result().requires_grad = value


def test_the_method_of_a_result_takes_true() -> None:
    y = result()
    assert y.requires_grad_() is y
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf"):
        y.requires_grad_(False)


def test_integers_never_require_grad() -> None:
    i = plugrad.ones(2, dtype=plugrad.int64)
    i.requires_grad_(False)
    with pytest.raises(RuntimeError, match="only Tensors of floating point"):
        i.requires_grad_()
    with pytest.raises(RuntimeError, match="only Tensors of floating point and complex dtype can"):
        i.requires_grad = True


def test_flags_are_bools() -> None:
    x = plugrad.ones(1)
    with pytest.raises(RuntimeError, match="requires_grad must be a bool"):
        x.requires_grad = 1
    with pytest.raises(TypeError, match="argument 'requires_grad' "):
        x.requires_grad_(1)
    with pytest.raises(TypeError, match="argument 'enabled' "):
        plugrad.set_grad_enabled(1)


def test_a_view_may_be_a_leaf_of_its_own() -> None:
    base = plugrad.ones(4)
    view = base[:2].requires_grad_()
    assert (view.is_leaf, base.requires_grad) == (True, False)
    (view * 3).sum().backward()
    assert view.grad.tolist() == [3.0, 3.0]
    base.mul_(plugrad.ones(4, requires_grad=True))
    assert not view.is_leaf
