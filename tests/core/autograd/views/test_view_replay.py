"""`_force_original_view_tracking`: what nodes a view gets once its base was written to."""

from __future__ import annotations

from typing import Any

import pytest


def name_of_written_view(lib: Any) -> str:
    x = lib.ones(2, 2, requires_grad=True)
    view = x.clone().view(-1)
    view.add_(1)
    name = type(view.grad_fn).__name__
    view.sum().backward()
    assert x.grad.tolist() == [[1, 1], [1, 1]]
    return name


def test_as_a_context_manager(lib: Any) -> None:
    tracking = lib.autograd._force_original_view_tracking
    with tracking(True):
        assert lib.autograd.is_view_replay_enabled()
        assert name_of_written_view(lib) == "ViewBackward0"
        with tracking(False):
            assert name_of_written_view(lib) == "AsStridedBackward0"
        assert lib.autograd.is_view_replay_enabled()
    assert not lib.autograd.is_view_replay_enabled()
    assert name_of_written_view(lib) == "AsStridedBackward0"


def test_as_a_function_and_decorator(lib: Any) -> None:
    tracking = lib.autograd._force_original_view_tracking

    @tracking(True)  # type: ignore[untyped-decorator]  # of a module not known
    def inside() -> str:
        return name_of_written_view(lib)

    assert not lib.autograd.is_view_replay_enabled()
    assert inside() == "ViewBackward0"
    tracking(True)
    try:
        assert name_of_written_view(lib) == "ViewBackward0"
    finally:
        tracking(False)


def test_it_takes_a_bool(lib: Any) -> None:
    with pytest.raises(TypeError):
        lib.autograd._force_original_view_tracking("yes")
    assert not lib.autograd.is_view_replay_enabled()
