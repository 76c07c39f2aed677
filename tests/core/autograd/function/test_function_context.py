"""The data that `ctx` holds, and how `apply` takes arguments; run on plugrad and on PyTorch."""

from __future__ import annotations

import gc
import re
import weakref
from collections.abc import Callable
from typing import Any

import pytest

FREED = "Trying to backward through the graph a second time"


def function(lib: Any, forward: Any = None, backward: Any = None, **members: Any) -> Any:
    """A Function called My, of these static methods and attributes."""
    members["forward"] = staticmethod(forward or (lambda ctx, x, *rest: x * 1))
    members["backward"] = staticmethod(backward or (lambda ctx, *grads: (*grads, None, None)))
    return type(lib.autograd.Function)("My", (lib.autograd.Function,), members)


def leaf(lib: Any) -> Any:
    return lib.ones(2, requires_grad=True)


def saving(*what: Any) -> Callable[..., Any]:
    """A forward that saves x and more."""

    def forward(ctx: Any, x: Any, *rest: Any) -> Any:
        ctx.save_for_backward(x, *what)
        return x * 1

    return forward


def test_the_node_is_the_context(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.value = 5
        return x * 1

    my = function(lib, forward)
    y = my.apply(leaf(lib))
    assert y.grad_fn.value == 5
    assert type(y.grad_fn) is my._backward_cls
    assert y.grad_fn._forward_cls is my
    assert isinstance(y.grad_fn, lib.autograd.function.BackwardCFunction)
    assert isinstance(y.grad_fn, lib.autograd.function.FunctionCtx)


def test_names(lib: Any) -> None:
    node = function(lib).apply(leaf(lib)).grad_fn
    assert node.name() == "MyBackward"
    assert type(node).__module__ == lib.autograd.function.__name__
    assert re.fullmatch(rf"<{type(node).__module__}.MyBackward object at 0x[0-9a-f]+>", repr(node))


@pytest.mark.parametrize("name", ["name", "factor", "shape"])
def test_attributes_may_hide_methods(lib: Any, name: str) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        setattr(ctx, name, 2.0)
        return x * 1

    def backward(ctx: Any, grad: Any) -> Any:
        return grad * getattr(ctx, name)

    x = leaf(lib)
    y = function(lib, forward, backward).apply(x)
    assert "MyBackward" in repr(y)
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_functions_are_numbered(lib: Any) -> None:
    first, second = function(lib), function(lib)
    assert (
        second._backward_cls._autograd_function_id == first._backward_cls._autograd_function_id + 1
    )


def test_what_the_context_holds_after_forward(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        assert ctx.saved_tensors == (x,)
        assert ctx.to_save == (x,)
        y = x * 1
        ctx.mark_non_differentiable(y)
        return y, x * 1

    node = function(lib, forward).apply(leaf(lib))[1].grad_fn
    for name in ("to_save", "saved_for_forward", "non_differentiable", "dirty_tensors"):
        assert getattr(node, name) is None
    assert node.requires_grad is True
    assert node.metadata == {}
    assert len(node.saved_tensors) == len(node._raw_saved_tensors) == 1


def test_saved_tensors_are_not_there_during_forward(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        assert ctx.saved_tensors == ()
        return x * 1

    function(lib, forward).apply(leaf(lib))


@pytest.mark.parametrize("name", ["saved_tensors", "requires_grad", "next_functions"])
def test_attributes_that_cannot_be_set(lib: Any, name: str) -> None:
    node = function(lib).apply(leaf(lib)).grad_fn
    with pytest.raises(AttributeError):
        setattr(node, name, 5)


def test_needs_input_grad(lib: Any) -> None:
    seen: list[Any] = []

    def forward(ctx: Any, x: Any, number: int, y: Any) -> Any:
        seen.append(ctx.needs_input_grad)
        return x * y

    def backward(ctx: Any, grad: Any) -> Any:
        seen.append(ctx.needs_input_grad)
        return grad, None, grad

    my = function(lib, forward, backward)
    my.apply(leaf(lib), 3, lib.ones(2)).sum().backward()
    with lib.no_grad():
        my.apply(leaf(lib), 3, leaf(lib))
    assert seen == [(True, False, False)] * 2 + [(True, False, True)]


def test_needs_input_grad_does_not_depend_on_what_backward_is_asked_for(lib: Any) -> None:
    seen: list[Any] = []

    def backward(ctx: Any, grad: Any) -> Any:
        seen.append(ctx.needs_input_grad)
        return grad, grad

    x, y = leaf(lib), leaf(lib)
    function(lib, lambda ctx, x, y: x * y, backward).apply(x, y).sum().backward(inputs=[x])
    assert seen == [(True, True)]


def test_needs_input_grad_can_be_set(lib: Any) -> None:
    node = function(lib).apply(leaf(lib)).grad_fn
    node.needs_input_grad = (False, True)
    assert node.needs_input_grad == (False, True)


def test_saved_tensors_are_freed_with_the_graph(lib: Any) -> None:
    y = function(lib, saving(None)).apply(leaf(lib))
    assert y.grad_fn.saved_tensors[1] is None
    y.sum().backward(retain_graph=True)
    assert len(y.grad_fn.saved_tensors) == 2
    y.sum().backward()
    with pytest.raises(RuntimeError, match=FREED):
        _ = y.grad_fn.saved_tensors
    with pytest.raises(RuntimeError, match=FREED):
        _ = y.grad_fn._raw_saved_tensors


def test_backward_twice_is_no_error_for_those_who_saved_nothing(lib: Any) -> None:
    x = leaf(lib)
    y = function(lib).apply(x)
    y.backward(lib.ones(2))
    y.backward(lib.ones(2))
    assert x.grad.tolist() == [2, 2]


def test_saved_variables_is_deprecated(lib: Any) -> None:
    node = function(lib, saving()).apply(leaf(lib)).grad_fn
    with pytest.warns(DeprecationWarning, match="'saved_variables' is deprecated"):
        assert len(node.saved_variables) == 1


@pytest.mark.parametrize("what", [5, [1], "text"])
def test_only_tensors_can_be_saved(lib: Any, what: Any) -> None:
    my = function(lib, saving(what))
    kind = type(what).__name__
    with pytest.raises(
        TypeError,
        match=f"save_for_backward can only save variables, but argument 1 is of type {kind}",
    ):
        my.apply(leaf(lib))
    # Nothing is saved where nothing is recorded.
    assert my.apply(lib.ones(2)).tolist() == [1, 1]


def test_save_for_forward_takes_only_tensors(lib: Any) -> None:
    my = function(lib, lambda ctx, x: ctx.save_for_forward(5))
    with pytest.raises(AssertionError, match="save_for_forward expects all arguments to be ten"):
        my.apply(leaf(lib))


@pytest.mark.parametrize("name", ["to_save", "dirty_tensors", "non_differentiable"])
def test_attributes_must_hold_tuples(lib: Any, name: str) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        setattr(ctx, name, [x])
        return x * 1

    with pytest.raises(RuntimeError, match=f"{name} attribute is expected to be a tuple but is"):
        function(lib, forward).apply(leaf(lib))


def test_marking_what_is_no_tensor(lib: Any) -> None:
    with pytest.raises(RuntimeError, match="mark_dirty can only accept variables, but argument"):
        function(lib, lambda ctx, x: ctx.mark_dirty(5)).apply(leaf(lib))
    with pytest.raises(RuntimeError, match="mark_non_differentiable only accepts variable arg"):
        function(lib, lambda ctx, x: ctx.mark_non_differentiable(5)).apply(leaf(lib))


def test_intermediate_results_can_be_saved(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        half = x / 2
        ctx.save_for_backward(half)
        return half * x

    def backward(ctx: Any, grad: Any) -> Any:
        (half,) = ctx.saved_tensors
        assert not half.requires_grad
        return grad * half * 4

    x = leaf(lib)
    function(lib, forward, backward).apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_a_saved_output_has_the_node_as_its_grad_fn(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        y, z = x * 1, x * 2
        ctx.save_for_backward(z)
        return y, z

    _, z = function(lib, forward).apply(leaf(lib))
    (saved,) = z.grad_fn.saved_tensors
    assert saved.grad_fn is z.grad_fn
    assert saved.output_nr == 1


def test_maybe_clear_saved_tensors(lib: Any) -> None:
    def backward(ctx: Any, grad: Any) -> Any:
        ctx.maybe_clear_saved_tensors()
        return grad * ctx.saved_tensors[0]

    y = function(lib, saving(), backward).apply(leaf(lib))
    y.grad_fn.maybe_clear_saved_tensors()
    y.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match=FREED):
        y.sum().backward()


def test_clear_saved_tensors_on_access(lib: Any) -> None:
    gone: list[Any] = []

    def forward(ctx: Any, x: Any) -> Any:
        half = x / 2
        gone.append(weakref.ref(half))
        ctx.save_for_backward(half)
        return x * 1

    def backward(ctx: Any, grad: Any) -> Any:
        saved = ctx.saved_tensors
        result = grad * saved[0]
        del saved
        gone.append(gone[0]() is None)
        with pytest.raises(RuntimeError, match="saved_tensors can only be accessed once"):
            _ = ctx.saved_tensors
        return result

    my = function(lib, forward, backward, clear_saved_tensors_on_access=True)
    my.apply(leaf(lib)).sum().backward()
    assert gone[1]


@pytest.mark.parametrize("name", ["clear_saved_tensors_on_access", "boxed_grads_call"])
def test_flags_must_be_bools(lib: Any, name: str) -> None:
    with pytest.raises(RuntimeError, match=f"{name} must be a bool, got int"):
        function(lib, **{name: 5}).apply(leaf(lib))


def test_boxed_grads_call(lib: Any) -> None:
    seen: list[Any] = []

    def backward(ctx: Any, grads: Any) -> Any:
        seen.append([type(grads), len(grads)])
        return grads.pop(0)

    my = function(lib, lambda ctx, x: (x * 1, x * 2), backward, boxed_grads_call=True)
    x = leaf(lib)
    my.apply(x)[0].sum().backward()
    assert seen == [[list, 2]]
    assert x.grad.tolist() == [1, 1]


def test_keyword_arguments_of_the_old_style(lib: Any) -> None:
    got: list[Any] = []

    def forward(ctx: Any, a: Any, b: Any, c: Any = 3, *rest: Any) -> Any:
        got.append((b, c, rest))
        return a * 1

    def backward(ctx: Any, grad: Any) -> Any:
        got.append(ctx.needs_input_grad)
        return grad, None

    my = function(lib, forward, backward)
    x = leaf(lib)
    my.apply(x, b=2)
    my.apply(x, 1, c=4)
    my.apply(x, 1, 2, 3, 4)
    my.apply(b=1, a=x).sum().backward()
    assert got == [(2, 3, ()), (1, 4, ()), (1, 2, (3, 4)), (1, 3, ()), (True, False)]


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {"d": 1}, r"forward\(\) got an unexpected keyword argument 'd'"),
        ((1,), {"b": 1}, r"forward\(\) got multiple values for argument 'b'"),
        ((), {"c": 1}, r"forward\(\) missing required argument: 'b' \(position 1\)"),
    ],
)
def test_keyword_arguments_that_do_not_fit(lib: Any, args: Any, kwargs: Any, message: str) -> None:
    my = function(lib, lambda ctx, a, b, c=3: a * 1)
    with pytest.raises(TypeError, match=message):
        my.apply(leaf(lib), *args, **kwargs)


def separate(lib: Any, forward: Any, setup_context: Any) -> Any:
    return function(lib, forward, setup_context=staticmethod(setup_context))


def test_setup_context_sees_defaults(lib: Any) -> None:
    got: list[Any] = []

    def forward(x: Any, factor: int = 2) -> Any:
        return x * factor

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        got.append((inputs[1:], output.tolist(), lib.is_grad_enabled(), ctx.needs_input_grad))

    my = separate(lib, forward, setup_context)
    x = leaf(lib)
    my.apply(x)
    my.apply(x, factor=3)
    my.apply(x, 4)
    needed = (True, False)
    assert got == [
        ((2,), [2, 2], False, needed),
        ((3,), [3, 3], False, needed),
        ((4,), [4, 4], False, needed),
    ]


def test_setup_context_with_keywords_that_do_not_fit(lib: Any) -> None:
    my = separate(lib, lambda x, factor=2: x * factor, lambda ctx, inputs, output: None)
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        my.apply(factor=3)


def test_setup_context_wants_positional_parameters(lib: Any) -> None:
    def forward(x: Any, *, factor: int = 2) -> Any:
        return x * factor

    my = separate(lib, forward, lambda ctx, inputs, output: None)
    with pytest.raises(TypeError, match=r"forward\(\) got an unexpected keyword argument 'factor'"):
        my.apply(leaf(lib))


@pytest.mark.parametrize("method", ["save_for_backward", "save_for_forward"])
@pytest.mark.parametrize("requires_grad", [True, False])
def test_setup_context_cannot_save_an_input_returned_as_it_is(
    lib: Any, method: str, requires_grad: bool
) -> None:
    my = separate(lib, lambda x: x, lambda ctx, inputs, output: getattr(ctx, method)(output))
    with pytest.raises(RuntimeError, match="An input that has been returned as-is as output is"):
        my.apply(lib.ones(2, requires_grad=requires_grad))


def test_function_ctx_alone_keeps_what_it_is_told(lib: Any) -> None:
    ctx = lib.autograd.function.FunctionCtx()
    x = leaf(lib)
    ctx.save_for_backward(x)
    ctx.save_for_forward(x, None)
    ctx.mark_dirty(x)
    ctx.mark_non_differentiable(x)
    ctx.set_materialize_grads(False)
    assert ctx.to_save == ctx.dirty_tensors == ctx.non_differentiable == (x,)
    assert ctx.saved_for_forward == (x, None)
    assert ctx.materialize_grads is False
    with pytest.warns(FutureWarning, match="`mark_shared_storage` is deprecated"):
        ctx.mark_shared_storage((x, x))


def test_functions_are_not_instantiated(lib: Any) -> None:
    my = function(lib)
    with pytest.warns(DeprecationWarning, match="should not be instantiated. Methods on autograd"):
        instance = my()
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward"):
        instance(leaf(lib))
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        assert lib.autograd.function.InplaceFunction(inplace=True).inplace


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("forward", "You must implement the forward function for custom autograd.Function."),
        ("backward", "You must implement either the backward or vjp method for your custom"),
        ("jvp", "You must implement the jvp function for custom autograd.Function"),
        ("vmap", "you must either override the vmap staticmethod or set generate_vmap_rule"),
        ("setup_context", "setup_context is not implemented."),
    ],
)
def test_methods_that_are_not_overridden(lib: Any, method: str, message: str) -> None:
    with pytest.raises(NotImplementedError, match=re.escape(message)):
        getattr(lib.autograd.Function, method)(None, None, None)
    assert lib.autograd.Function.generate_vmap_rule is False


def test_a_context_kept_beyond_the_graph_still_has_its_tensors(lib: Any) -> None:
    kept: list[Any] = []

    def forward(ctx: Any, x: Any) -> Any:
        kept.append(ctx)
        ctx.save_for_backward(x)
        return x * 1

    x = leaf(lib)
    function(lib, forward).apply(x)
    assert kept[0].saved_tensors[0] is x


def test_the_graph_of_a_function_is_freed_without_the_garbage_collector(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        y, z = x.exp(), x * 2
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(y)
        ctx.mark_non_differentiable(z)
        return y, z, x

    x = leaf(lib) * 1
    gc.collect()
    gc.disable()
    try:
        outputs = function(lib, forward).apply(x)
        gone = [weakref.ref(item) for item in (*outputs, outputs[0].grad_fn)]
        del outputs
        assert [item() for item in gone] == [None] * 4
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "name",
    ["hooks", "buffer", "owner", "pending", "extra", "num_inputs", "input_metadata", "saved"],
)
def test_ctx_attributes_of_any_name_are_the_users(lib: Any, name: str) -> None:
    class Scale(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            setattr(ctx, name, 3)
            return x * 3

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * getattr(ctx, name)

    x = lib.ones(2, requires_grad=True)
    y = Scale.apply(x)
    y.grad_fn.register_hook(lambda *_: None)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
