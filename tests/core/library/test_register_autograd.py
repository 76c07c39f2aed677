"""register_autograd: gradients of operators in Python; on plugrad and on PyTorch."""

from typing import Any

import pytest

import plugrad
from plugrad.testing import gradcheck, gradgradcheck


def _cube(lib: Any, ns: str) -> Any:
    @lib.library.custom_op(f"{ns}::cube", mutates_args=())
    def cube(x: lib.Tensor, n: int = 3) -> lib.Tensor:  # type: ignore[name-defined]
        return x**n

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, ctx.n = inputs
        ctx.save_for_backward(x)

    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * ctx.n * x ** (ctx.n - 1), None

    cube.register_autograd(backward, setup_context=setup_context)
    return cube


def test_first_and_second_gradient(lib: Any, ns: str) -> None:
    cube = _cube(lib, ns)
    x = lib.tensor([2.0, 3.0], requires_grad=True)
    y = cube(x)
    assert type(y.grad_fn).__name__ == f"GeneratedBackwardFor_{ns}_cube_defaultBackward"
    (g,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [12.0, 27.0]
    (gg,) = lib.autograd.grad(g.sum(), x)
    assert gg.tolist() == [12.0, 18.0]


def test_gradients_are_right(ns: str) -> None:
    cube = _cube(plugrad, ns)
    x = plugrad.tensor([0.5, -2.0], dtype=plugrad.float64, requires_grad=True)
    assert gradcheck(cube, x)
    assert gradgradcheck(cube, x)


def test_without_a_formula_backward_raises(lib: Any, ns: str) -> None:
    @lib.library.custom_op(f"{ns}::f", mutates_args=())
    def f(x: lib.Tensor) -> lib.Tensor:  # type: ignore[name-defined]
        return x * 2

    y = f(lib.ones(1, requires_grad=True))
    assert y.requires_grad
    with pytest.raises(RuntimeError, match=r"but no autograd formula was registered\. Please use"):
        y.backward()
    with lib.no_grad():
        assert not f(lib.ones(1, requires_grad=True)).requires_grad


def test_the_function_is_not_recorded(lib: Any, ns: str) -> None:
    seen: list[bool] = []

    @lib.library.custom_op(f"{ns}::f", mutates_args=())
    def f(x: lib.Tensor) -> lib.Tensor:  # type: ignore[name-defined]
        y = x * 2
        seen.append(y.requires_grad)
        return y

    f.register_autograd(lambda ctx, grad: grad * 5)
    x = lib.ones(1, requires_grad=True)
    f(x).backward()
    assert seen == [False]
    assert x.grad.item() == 5.0


def test_keyword_only_arguments(lib: Any, ns: str) -> None:
    seen: list[Any] = []

    @lib.library.custom_op(f"{ns}::f", mutates_args=())
    def f(x: lib.Tensor, *, by: float, n: int = 1) -> lib.Tensor:  # type: ignore[name-defined]
        return x * by

    def setup_context(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
        seen.append((len(inputs), keyword_only_inputs))
        ctx.by = keyword_only_inputs["by"]

    f.register_autograd(lambda ctx, grad: grad * ctx.by, setup_context=setup_context)
    x = lib.ones(1, requires_grad=True)
    f(x, by=3.0).backward()
    assert x.grad.item() == 3.0
    assert seen == [(1, {"by": 3.0, "n": 1})]


def test_lists_of_tensors(lib: Any, ns: str) -> None:
    seen: list[Any] = []

    @lib.library.custom_op(f"{ns}::f", mutates_args=())
    def f(xs: list[lib.Tensor], y: lib.Tensor) -> list[lib.Tensor]:  # type: ignore[name-defined]
        return [x * y for x in xs]

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[1])

    def backward(ctx: Any, grads: Any) -> Any:
        seen.append((type(grads), ctx.needs_input_grad))
        (y,) = ctx.saved_tensors
        return [grad * y for grad in grads], None

    f.register_autograd(backward, setup_context=setup_context)
    a, b = lib.ones(1, requires_grad=True), lib.ones(1)
    outputs = f([a, b], lib.full((1,), 4.0))
    assert isinstance(outputs, list)
    outputs[0].backward()
    assert a.grad.item() == 4.0
    assert seen == [(list, ([True, False], False))]


def test_gradients_of_another_structure(lib: Any, ns: str) -> None:
    @lib.library.custom_op(f"{ns}::f", mutates_args=())
    def f(xs: list[lib.Tensor]) -> lib.Tensor:  # type: ignore[name-defined]
        return xs[0] + xs[1]

    f.register_autograd(lambda ctx, grad: [grad])
    x = lib.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="Expected the return from backward to be of the same s"):
        f([x, x]).backward()


def test_several_results_and_needs_input_grad(lib: Any, ns: str) -> None:
    seen: list[Any] = []

    @lib.library.custom_op(f"{ns}::f", mutates_args=())
    def f(x: lib.Tensor, y: lib.Tensor) -> tuple[lib.Tensor, lib.Tensor]:  # type: ignore[name-defined]
        return x * 2, y * 3

    def backward(ctx: Any, a: Any, b: Any) -> Any:
        seen.append(ctx.needs_input_grad)
        return a * 2, None

    f.register_autograd(backward)
    x = lib.ones(1, requires_grad=True)
    first, _ = f(x, lib.ones(1))
    first.backward()
    assert x.grad.item() == 2.0
    assert seen == [(True, False)]


def test_an_integer_result_carries_no_gradient(lib: Any, ns: str) -> None:
    @lib.library.custom_op(f"{ns}::f", mutates_args=())
    def f(x: lib.Tensor) -> tuple[lib.Tensor, lib.Tensor]:  # type: ignore[name-defined]
        return x * 2, lib.ones(1, dtype=lib.int64)

    f.register_autograd(lambda ctx, a, b: a * 2)
    first, second = f(lib.ones(1, requires_grad=True))
    assert (first.requires_grad, second.requires_grad) == (True, False)


def test_an_operator_that_writes_has_no_formula(lib: Any, ns: str) -> None:
    @lib.library.custom_op(f"{ns}::f", mutates_args={"x"})
    def f(x: lib.Tensor) -> None:  # type: ignore[name-defined]
        x.mul_(2)

    with pytest.raises(
        RuntimeError, match="Cannot register autograd formula for non-functional op"
    ):
        f.register_autograd(lambda ctx: None)


def test_a_saved_result_may_be_differentiated(lib: Any, ns: str) -> None:
    @lib.library.custom_op(f"{ns}::expo", mutates_args=())
    def expo(x: lib.Tensor) -> lib.Tensor:  # type: ignore[name-defined]
        return x.exp()

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(output)

    expo.register_autograd(
        lambda ctx, grad: grad * ctx.saved_tensors[0], setup_context=setup_context
    )
    x = lib.zeros(1, requires_grad=True)
    (g,) = lib.autograd.grad(expo(x), x, create_graph=True)
    (gg,) = lib.autograd.grad(g, x)
    assert (g.item(), gg.item()) == (1.0, 1.0)


def _define(lib: Any, ns: str, schema: str) -> Any:
    own = lib.library.Library(ns, "FRAGMENT")
    own.define("f" + schema)
    return own


def test_by_name(lib: Any, ns: str) -> None:
    own = _define(lib, ns, "(Tensor x) -> Tensor")
    lib.library.register_kernel(f"{ns}::f", "cpu", lambda x: x * 2, lib=own)
    lib.library.register_autograd(f"{ns}::f", lambda ctx, grad: grad * 7, lib=own)
    x = lib.ones(1, requires_grad=True)
    getattr(lib.ops, ns).f(x).backward()
    assert x.grad.item() == 7.0
    own._destroy()


def test_by_overload_or_definition(lib: Any, ns: str) -> None:
    cube = _cube(lib, ns)
    for op in (cube, getattr(lib.ops, ns).cube.default):
        lib.library.register_autograd(op, lambda ctx, grad: (grad, None))
    with pytest.raises(ValueError, match=r"register_autograd\(3\): got unexpected type for op"):
        lib.library.register_autograd(3, lambda ctx, grad: grad)


def test_what_cannot_have_a_formula_by_name(lib: Any, ns: str) -> None:
    own = _define(lib, ns, "(Tensor x, *, Tensor y) -> Tensor")
    with pytest.raises(NotImplementedError, match="register_autograd with kwarg-only Tensor args"):
        lib.library.register_autograd(f"{ns}::f", lambda ctx, grad: grad, lib=own)
    own._destroy()


# Where plugrad is stricter than PyTorch, which leaves the former grad_fn, and wrong gradients.


def test_what_was_written_to_has_no_way_back(ns: str) -> None:
    @plugrad.library.custom_op(f"{ns}::f", mutates_args={"x"})
    def f(x: plugrad.Tensor) -> None:
        x.mul_(2)

    w = plugrad.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        f(w)
    y = w * 1
    f(y)
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        y.backward()


def test_a_wrong_number_of_gradients_is_named(ns: str) -> None:
    cube = _cube(plugrad, ns)
    cube.register_autograd(lambda ctx, grad: grad)
    with pytest.raises(
        RuntimeError, match=r"returned an incorrect number of gradients \(expected 2"
    ):
        cube(plugrad.ones(1, requires_grad=True)).backward()
