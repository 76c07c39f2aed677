"""In-place operators without a gradient: the former value no longer matters.

The oracle is PyTorch, except for logical operators: there they keep the former grad_fn and write to
leaves; here they behave like comparisons, in agreement with finite differences.
"""

from __future__ import annotations

from typing import Any

import pytest

import plugrad

COMPARISONS = [
    *("eq_", "ne_", "lt_", "le_", "gt_", "ge_"),
    *("not_equal_", "less_", "less_equal_", "greater_", "greater_equal_"),
]
LOGICAL = ["logical_and_", "logical_or_", "logical_xor_", "logical_not_"]


def apply(tensor: Any, name: str, other: Any) -> Any:
    return getattr(tensor, name)(*(() if name == "logical_not_" else (other,)))


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("number", [True, False])
def test_a_comparison_cuts_off_what_the_tensor_was(lib: Any, name: str, number: bool) -> None:
    x = lib.tensor([2.0, 3.0], requires_grad=True)
    other = 4.0 if number else lib.tensor([4.0, 5.0], requires_grad=True)
    y = x * 2
    apply(y, name, other)
    assert y._version == 1
    assert y.grad_fn.name().endswith("Backward0" if number else "Backward1")
    (y * x).sum().backward()
    assert x.grad.tolist() == y.tolist()
    if not number:
        assert other.grad.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("name", LOGICAL)
def test_a_logical_operator_does_so_too(name: str) -> None:
    x = plugrad.tensor([2.0, 0.0], requires_grad=True)
    y = x * 2
    apply(y, name, plugrad.tensor([4.0, 5.0]))
    (y * x).sum().backward()
    assert x.grad.tolist() == y.tolist()


@pytest.mark.parametrize("name", COMPARISONS)
def test_a_tensor_that_is_compared_with_one_that_requires_grad_does_so(lib: Any, name: str) -> None:
    y = lib.ones(2)
    apply(y, name, lib.ones(2, requires_grad=True))
    assert y.requires_grad


@pytest.mark.parametrize("name", COMPARISONS)
def test_a_leaf_that_requires_grad_is_refused(lib: Any, name: str) -> None:
    check_refusals(lib, name)


@pytest.mark.parametrize("name", LOGICAL)
def test_logical_operators_refuse_one(name: str) -> None:
    check_refusals(plugrad, name)


def check_refusals(lib: Any, name: str) -> None:
    x = lib.tensor([2.0, 3.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used"):
        apply(x, name, lib.ones(2))
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is"):
        apply(x[:1], name, lib.ones(1))
    assert x.tolist() == [2.0, 3.0]
    assert x._version == 0
    with lib.no_grad():
        apply(x, name, lib.ones(2))
    assert x.requires_grad
    assert x.is_leaf
    assert x._version == 1


def test_a_write_through_a_view_is_one_to_its_base(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 3
    y[1:].gt_(7.0)
    assert y.tolist() == [3.0, 0.0, 1.0]
    (y * x).sum().backward()
    assert x.grad.tolist() == [6.0, 0.0, 1.0]


def test_what_was_saved_is_noticed_to_have_changed(lib: Any) -> None:
    x = lib.tensor([2.0, 3.0], requires_grad=True)
    y = x * 2
    z = y * y
    y.eq_(4)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_integers_are_compared_without_a_graph(lib: Any) -> None:
    y = lib.tensor([2, 3])
    assert y.eq_(2).tolist() == [1, 0]
    assert not y.requires_grad


@pytest.mark.parametrize("name", ["eq_", "lt_", "logical_and_"])
def test_a_tangent_becomes_zero(name: str) -> None:
    from plugrad.autograd import forward_ad

    with forward_ad.dual_level():
        dual = forward_ad.make_dual(plugrad.tensor([2.0, 3.0]), plugrad.ones(2)).clone()
        apply(dual, name, plugrad.ones(2))
        assert forward_ad.unpack_dual(dual).tangent.tolist() == [0.0, 0.0]


def test_every_operator_in_place_is_known_to_autograd() -> None:
    from plugrad.dispatch.operator import all_operators

    unknown = [
        op.full_name
        for op in all_operators()
        if op.namespace == "plugrad" and op.schema.is_inplace and not op.differentiable
    ]
    assert unknown == []
