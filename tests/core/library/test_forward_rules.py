"""Forward mode of operators that somebody else defined: rules from YAML, and errors without one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import plugrad
import plugrad.autograd.forward_ad as fwAD
from plugrad.codegen import EntryError, load, unload
from plugrad.library import Library, custom_op, opcheck, register_autograd
from plugrad.testing.opcheck import OpCheckError

ENTRY = """
- func: cubed(Tensor self) -> Tensor
  variants: [function, method, inplace]
  explicit: cubed
  derivatives:
    self: grad * 3 * self ** 2
  doc: The third power.
  {}
"""
CUBED = {"cubed": lambda self: self * self * self}


@pytest.fixture
def dual() -> Iterator[Any]:
    with fwAD.dual_level():
        yield fwAD.make_dual(plugrad.tensor([1.0, 2.0]), plugrad.tensor([3.0, 4.0]))


def tangent(tensor: Any) -> Any:
    found = fwAD.unpack_dual(tensor).tangent
    return None if found is None else found.tolist()


@pytest.mark.parametrize(
    "rule",
    [
        "auto_element_wise",
        "self_t * self * self * 3",
        "{self: self_t * 3 * self * self}",
        "3 * self_t * result / self",
    ],
)
def test_rules_of_yaml(dual: Any, rule: str) -> None:
    ops: Any = load(
        ENTRY.format(f"forward: '{rule}'" if rule[0] != "{" else f"forward: {rule}"),
        namespace="forward_rules",
        functions=CUBED,
    )
    try:
        assert tangent(ops.cubed(dual)) == [9.0, 48.0]
        written = dual * 1
        ops.cubed_(written)
        assert written.tolist() == [1.0, 8.0]
        if "result" not in rule:
            assert tangent(written) == [9.0, 48.0]
    finally:
        unload(ops)


def test_several_results() -> None:
    ops: Any = load(
        """
- func: circle(Tensor self) -> (Tensor, Tensor)
  variants: [function]
  explicit: circle
  derivatives:
    self: total(grads, self)
  forward: auto_element_wise
  doc: Sine and cosine.
""",
        namespace="forward_results",
        functions={
            "circle": lambda self: (self.sin(), self.cos()),
            "total": lambda grads, x: sum(
                grad * factor
                for grad, factor in zip(grads, (x.cos(), -x.sin()), strict=True)
                if grad is not None
            ),
        },
    )
    try:
        with fwAD.dual_level():
            x = plugrad.tensor([0.0, 1.0], dtype=plugrad.float64)
            sine, cosine = ops.circle(fwAD.make_dual(x, plugrad.ones_like(x)))
            assert tangent(sine) == pytest.approx(x.cos().tolist())
            assert tangent(cosine) == pytest.approx((-x.sin()).tolist())
    finally:
        unload(ops)


def test_without_a_rule_yaml_operators_refuse_tangents(dual: Any) -> None:
    ops: Any = load(ENTRY.format(""), namespace="forward_missing", functions=CUBED)
    try:
        with pytest.raises(
            NotImplementedError, match=r"^Trying to use forward AD with forward_miss"
        ):
            ops.cubed(dual)
        assert ops.cubed(plugrad.ones(2)).tolist() == [1.0, 1.0]
    finally:
        unload(ops)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("forward: nonsense(self_t)", r"forward uses 'nonsense', which is neither an operator"),
        ("forward: {other: auto_linear}", r"forward names 'other', which has no derivative"),
        ("forward: self_t *", r"forward: invalid syntax"),
        ("forward: 3", r"forward must be auto_linear, auto_element_wise, an expression"),
    ],
)
def test_wrong_rules(rule: str, message: str) -> None:
    with pytest.raises(EntryError, match=message):
        load(ENTRY.format(rule), namespace="forward_wrong", functions=CUBED)


def test_a_rule_needs_derivatives() -> None:
    text = "- func: same(Tensor self) -> Tensor\n  composite: same\n  forward: auto_linear\n"
    with pytest.raises(EntryError, match="'forward:' is for operators with 'derivatives:'"):
        load(text, namespace="forward_wrong", functions={"same": lambda self: self})


def test_custom_ops_refuse_tangents(dual: Any) -> None:
    @custom_op("forward_custom::double", mutates_args=())
    def double(x: plugrad.Tensor) -> plugrad.Tensor:
        return x * 2

    double.register_autograd(lambda ctx, grad: grad * 2)
    with pytest.raises(
        NotImplementedError, match=r"^Trying to use forward AD with forward_custom::"
    ):
        double(dual)
    assert double(plugrad.ones(1)).tolist() == [2.0]


def test_kernels_of_a_library(dual: Any) -> None:
    class Double(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t * 2

    lib = Library("forward_library", "DEF")
    try:
        for name in ("bare", "composed", "recorded"):
            lib.define(f"{name}(Tensor x) -> Tensor")
        lib.impl("bare", lambda array: array * 2, "CPU")
        lib.impl("composed", lambda x: x * 2, "CompositeImplicitAutograd")
        lib.impl("recorded", lambda array: array * 2, "CPU")
        lib.impl("recorded", lambda x: Double.apply(x), "Autograd")
        ops = plugrad.ops.forward_library
        with pytest.raises(
            NotImplementedError, match=r"^Trying to use forward AD with forward_lib"
        ):
            ops.bare(dual)
        assert tangent(ops.composed(dual)) == [6.0, 8.0]
        assert tangent(ops.recorded(dual)) == [6.0, 8.0]
    finally:
        lib._destroy()


def _powered(jvp: Any, setup: Any = None) -> Any:
    """x ** n * y, and a list of both arguments' doubles, with tangents in closed form."""

    @custom_op("forward_custom::powered", mutates_args=())
    def powered(
        x: plugrad.Tensor, n: int, others: list[plugrad.Tensor], *, factor: float = 1.0
    ) -> tuple[plugrad.Tensor, list[plugrad.Tensor]]:
        return x**n * factor, [other * 2 for other in others]

    def setup_context(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
        x, ctx.n, _ = inputs
        ctx.factor = keyword_only_inputs["factor"]
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    def backward(ctx: Any, grad: Any, grads: Any) -> Any:
        (x,) = ctx.saved_tensors
        given = [None if item is None else item * 2 for item in grads]
        return grad * ctx.n * x ** (ctx.n - 1) * ctx.factor, None, given

    powered.register_autograd(backward, setup_context=setup or setup_context, jvp=jvp)
    return powered


def _powered_jvp(ctx: Any, x_t: Any, n_t: Any, others_t: Any) -> Any:
    (x,) = ctx.saved_tensors
    assert n_t is None
    return x_t * ctx.n * x ** (ctx.n - 1) * ctx.factor, [other * 2 for other in others_t]


@pytest.mark.parametrize("requires_grad", [False, True])
def test_the_jvp_of_a_custom_op(dual: Any, requires_grad: bool) -> None:
    powered = _powered(_powered_jvp)
    x, t = fwAD.unpack_dual(dual)
    other = plugrad.ones(2, requires_grad=requires_grad)
    first, (second, third) = powered(dual, 3, [other, dual], factor=2.0)
    assert tangent(first) == (t * 6 * x * x).tolist()
    assert tangent(second) == [0.0, 0.0]
    assert tangent(third) == (2 * t).tolist()
    # Tangents that nobody asked for: the operator as ever.
    assert tangent(powered(x, 3, [x])[0]) is None


def test_the_jvp_of_a_custom_op_in_transforms() -> None:
    powered = _powered(_powered_jvp)

    def f(x: Any) -> Any:
        first, (second,) = powered(x, 3, [x])
        return (first + second).sum()

    x = plugrad.tensor([0.5, 2.0], dtype=plugrad.float64)
    plugrad.testing.assert_close(plugrad.func.jacfwd(f)(x), 3 * x * x + 2)
    plugrad.testing.assert_close(plugrad.func.hessian(f)(x), plugrad.diag(6 * x))
    plugrad.testing.gradcheck(f, x.requires_grad_(), check_forward_ad=True)


def test_the_jvp_of_an_operator_of_a_library(dual: Any) -> None:
    with Library("forward_library", "DEF") as lib:
        lib.define("triple(Tensor x) -> Tensor")
        lib.impl("triple", lambda array: array * 3, "CPU")
        op = plugrad.ops.forward_library.triple
        register_autograd("forward_library::triple", lambda ctx, grad: grad * 3, lib=lib)
        with pytest.raises(NotImplementedError, match="`jvp=` of register_autograd"):
            op(dual)
        register_autograd(op.default, lambda ctx, g: g * 3, jvp=lambda ctx, t: t * 3, lib=lib)
        assert tangent(op(dual)) == [9.0, 12.0]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda t: t, r"incorrect number of tangents \(expected 2, one per result"),
        (lambda t: (t, t), "must return a list of 1 tangents .* got none"),
        (lambda t: (t, [t, t]), "must return a list of 1 tangents .* got 2 of them"),
        (lambda t: (t, [3]), "expected Variable or None"),
    ],
)
def test_what_a_jvp_returns_is_checked(dual: Any, returned: Any, message: str) -> None:
    powered = _powered(lambda ctx, t, *others: returned(t))
    with pytest.raises(RuntimeError, match=message):
        powered(dual, 3, [dual])


def test_opcheck_compares_a_jvp_with_finite_differences() -> None:
    x = plugrad.tensor([0.5, 2.0], requires_grad=True)
    checks = {"test_utils": "test_gradients"}
    found = opcheck(_powered(_powered_jvp), (x, 3, [x]), **checks)
    assert found["test_gradients[forward]"] == "SUCCESS"
    found = opcheck(_powered(None), (x, 3, [x]), **checks)
    assert found["test_gradients[forward]"].startswith("SKIPPED: Trying to use forward AD")
    wrong = _powered(lambda ctx, t, *rest: (t, [item * 2 for item in rest[-1]]))
    with pytest.raises(OpCheckError, match="tangent of forward_custom::powered in forward mode"):
        opcheck(wrong, (x, 3, [x]), **checks)
