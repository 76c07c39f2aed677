"""In-place operators on views that are leaves themselves."""

from __future__ import annotations

import pytest

import plugrad


def test_a_view_that_was_made_a_leaf_cannot_be_written() -> None:
    view = plugrad.ones(4)[:2]
    view.requires_grad_()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being"):
        view.mul_(2)


def test_its_base_can() -> None:
    base = plugrad.ones(4)
    view = base[:2]
    view.requires_grad_()
    base.mul_(2)
    assert view.is_leaf
    assert view.tolist() == [2.0, 2.0]
