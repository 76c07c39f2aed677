"""register_fake: operators on the device "meta"; on plugrad and on PyTorch."""

from typing import Any

import pytest

import plugrad
from plugrad.library import Library, get_ctx, impl


def _pairs(lib: Any, ns: str) -> Any:
    @lib.library.custom_op(f"{ns}::pairs", mutates_args=())
    def pairs(x: lib.Tensor, n: int = 2) -> lib.Tensor:  # type: ignore[name-defined]
        return x[:, None] * x[None, :] * n

    return pairs


def test_a_fake_runs_on_meta(lib: Any, ns: str) -> None:
    pairs = _pairs(lib, ns)
    seen: list[Any] = []

    @pairs.register_fake
    def _(x: Any, n: int = 2) -> Any:
        seen.append(n)
        return x.new_empty((x.shape[0], x.shape[0]))

    made = pairs(lib.empty(3, device="meta"))
    assert (made.shape, made.device.type, seen) == ((3, 3), "meta", [2])
    assert pairs(lib.ones(2)).tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_without_a_fake(lib: Any, ns: str) -> None:
    pairs = _pairs(lib, ns)
    with pytest.raises(
        RuntimeError, match=f"no fake impl registered for <CustomOpDef\\({ns}::pairs"
    ):
        pairs(lib.empty(3, device="meta"))


def test_what_only_writes_needs_no_fake(lib: Any, ns: str) -> None:
    @lib.library.custom_op(f"{ns}::fill", mutates_args={"x"})
    def fill(x: lib.Tensor) -> None:  # type: ignore[name-defined]
        x.fill_(1)

    assert fill(lib.empty(3, device="meta")) is None


def test_a_tagged_operator_needs_no_fake(lib: Any, ns: str) -> None:
    tag = plugrad.library.Tag.inplace if lib is plugrad else lib.Tag.inplace

    @lib.library.custom_op(f"{ns}::fill_", mutates_args={"x"}, tags=tag)
    def fill_(x: lib.Tensor) -> lib.Tensor:  # type: ignore[name-defined]
        return x.fill_(1)

    x = lib.empty(3, device="meta")
    assert fill_(x) is x
    with pytest.warns(UserWarning, match="is unnecessary"):
        fill_.register_fake(lambda x: x)


def test_the_gradient_runs_on_meta_too(lib: Any, ns: str) -> None:
    pairs = _pairs(lib, ns)
    pairs.register_fake(lambda x, n=2: x.new_empty((x.shape[0], x.shape[0])))

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])

    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return (grad + grad.t()) @ x * 2, None

    pairs.register_autograd(backward, setup_context=setup_context)
    x = lib.empty(3, device="meta", requires_grad=True)
    pairs(x).sum().backward()
    assert x.grad.shape == (3,)


def test_by_name(lib: Any, ns: str) -> None:
    own = lib.library.Library(ns, "FRAGMENT")
    own.define("f(Tensor x) -> Tensor")

    @lib.library.register_fake(f"{ns}::f", lib=own)
    def _(x: Any) -> Any:
        return x.new_empty((5,))

    op = getattr(lib.ops, ns).f
    assert op(lib.empty(2, device="meta")).shape == (5,)
    lib.library.register_fake(f"{ns}::f", lambda x: x.new_empty((6,)), lib=own)
    assert op(lib.empty(2, device="meta")).shape == (6,)
    with pytest.raises(RuntimeError, match="already has a fake impl"):
        lib.library.register_fake(f"{ns}::f", lambda x: x, lib=own, allow_override=False)
    own._destroy()


def test_a_composite_operator_needs_no_fake(lib: Any, ns: str) -> None:
    own = lib.library.Library(ns, "FRAGMENT")
    own.define("f(Tensor x) -> Tensor")
    own.impl("f", lambda x: x + 1, "CompositeImplicitAutograd")
    assert getattr(lib.ops, ns).f(lib.empty(2, device="meta")).shape == (2,)
    with pytest.raises(RuntimeError, match="CompositeImplicitAutograd"):
        lib.library.register_fake(f"{ns}::f", lambda x: x, lib=own)
    own._destroy()


def test_a_shape_that_depends_on_data(lib: Any, ns: str) -> None:
    @lib.library.custom_op(f"{ns}::kept", mutates_args=())
    def kept(x: lib.Tensor) -> lib.Tensor:  # type: ignore[name-defined]
        return x[x > 0]

    @kept.register_fake
    def _(x: Any) -> Any:
        return x.new_empty((lib.library.get_ctx().new_dynamic_size(),))

    with pytest.raises(RuntimeError, match="You're trying to run this operator with meta Tensors"):
        kept(lib.empty(3, device="meta"))


def test_there_is_a_context_only_inside_a_fake() -> None:
    with pytest.raises(RuntimeError, match="may only be called inside of a fake"):
        get_ctx()


def test_a_kernel_for_the_key_is_a_fake(ns: str) -> None:
    with Library(ns, "DEF") as own:
        own.define("f(Tensor x) -> Tensor")
        impl(f"{ns}::f", "meta", lambda x: x.new_empty((7,)), lib=own)
        assert getattr(plugrad.ops, ns).f(plugrad.empty(2, device="meta")).shape == (7,)
    assert isinstance(plugrad.empty(2, device="meta"), plugrad.Tensor)
