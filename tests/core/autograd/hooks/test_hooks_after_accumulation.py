"""What hooks after a leaf's node see."""

from __future__ import annotations

from typing import Any


def test_they_see_the_gradient_that_the_leaf_kept(lib: Any) -> None:
    x = lib.ones(2, requires_grad=True)
    node = x.clone().grad_fn.next_functions[0][0]
    seen = []

    def after_accumulation(leaf: Any) -> None:
        leaf.grad.add_(1)

    x.register_post_accumulate_grad_hook(after_accumulation)
    node.register_hook(lambda _, grads: seen.append(grads[0].tolist()))
    (x * 3).sum().backward()
    assert seen == [[4, 4]]


def test_a_gradient_that_a_hook_before_it_keeps_is_not_written_to(lib: Any) -> None:
    x = lib.ones(2, requires_grad=True)
    node = x.clone().grad_fn.next_functions[0][0]
    kept = []
    node.register_prehook(lambda grads: kept.append(grads[0]))
    (x * 3).sum().backward()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [6, 6]
    assert [grad.tolist() for grad in kept] == [[3, 3], [3, 3]]
