"""Hooks and retained gradients of tensors that are written to in place."""

from __future__ import annotations

from typing import Any

import plugrad


def leaf() -> Any:
    return plugrad.tensor([1.0, 2.0], requires_grad=True)


def test_hooks_of_a_view_and_its_base_around_a_write() -> None:
    x = leaf()
    base = x * 2
    view = base.view(2, 1)
    seen: list[Any] = []
    view.register_hook(lambda grad: seen.append(("view before", grad.flatten().tolist())))
    base.register_hook(lambda grad: seen.append(("base before", grad.tolist())))
    view.mul_(3)
    view.register_hook(lambda grad: seen.append(("view after", grad.flatten().tolist())))
    base.register_hook(lambda grad: seen.append(("base after", grad.tolist())))
    view.sum().backward()
    # The former view leads nowhere any more: its hook is silent.
    assert seen == [
        ("view after", [1.0, 1.0]),
        ("base after", [1.0, 1.0]),
        ("base before", [3.0, 3.0]),
    ]


def test_a_retained_gradient_is_that_of_the_latest_value() -> None:
    x = leaf()
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    y.mul_(5)
    assert y.retains_grad
    (y * y).sum().backward()
    assert y.grad.tolist() == [60.0, 120.0]


def test_a_retained_gradient_of_a_view_and_of_its_base() -> None:
    x = leaf()
    base = x * 2
    view = base.view(2, 1)
    view.retain_grad()
    base.retain_grad()
    view.mul_(3)
    (view * view).sum().backward()
    assert view.grad.tolist() == [[12.0], [24.0]]
    assert base.grad.tolist() == [12.0, 24.0]


def test_a_view_that_retains_its_gradient_follows_its_base() -> None:
    x = leaf()
    base = x * 2
    view = base.view(2, 1)
    view.retain_grad()
    base.mul_(3)
    (view * view).sum().backward()
    assert view.grad.tolist() == [[12.0], [24.0]]


def test_hooks_of_a_leaf_are_gone_once_it_is_a_result() -> None:
    seen: list[Any] = []
    x, y = leaf(), leaf()
    x.register_hook(seen.append)
    x.requires_grad_(False)
    x.mul_(y)
    x.sum().backward()
    assert seen == []
    assert y.grad.tolist() == [1.0, 2.0]
