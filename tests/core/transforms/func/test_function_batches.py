"""What the `vmap` of an `autograd.Function` returns, and what is generated for it. Oracle: PyTorch;
closed forms where PyTorch refuses."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import plugrad
from plugrad.func import grad, jvp, vmap
from tests.core.transforms.func.outcomes import outcome


def function(lib: Any, name: str = "Square", **members: Any) -> Any:
    """The `apply` of a Function: x * x, with `members` in place of its own."""

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])

    known: dict[str, Any] = {
        "forward": lambda x: x * x,
        "setup_context": setup_context,
        "backward": lambda ctx, g: 2 * g * ctx.saved_tensors[0],
        "jvp": lambda ctx, t: 2 * t * ctx.saved_tensors[0],
    }
    members = {
        key: staticmethod(value) if callable(value) else value
        for key, value in (known | members).items()
    }
    return type(name, (lib.autograd.Function,), members).apply


RETURNED: dict[str, Callable[[Any], Any]] = {
    "no pair": lambda x: x,
    "three": lambda x: (x, 0, 0),
    "a tuple of dimensions for one output": lambda x: (x + 1, (0,)),
    "a list of dimensions for one output": lambda x: (x + 1, [0]),
    "too few dimensions": lambda x: ((x + 1, x), (0,)),
    "too many dimensions": lambda x: ((x + 1, x), (0, 0, 0)),
    "one dimension for two outputs": lambda x: ((x + 1, x + 2), 0),
    "another dimension": lambda x: (x + 1, -1),
    "not mapped": lambda x: (x[0] + 1, None),
    "the argument itself, said not to be mapped": lambda x: (x, None),
    "the argument itself, with a dimension that it has not": lambda x: (x, 5),
    "a nested tree": lambda x: ((x + 1, (x + 2, x[0])), (0, (0, None))),
    "a dict": lambda x: ({"a": x + 1}, {"a": 0}),
    "no tensor": lambda x: (3, None),
    "a dimension for what is no tensor": lambda x: ((x + 1, "a"), (0, None)),
}


@pytest.mark.parametrize("returned", RETURNED)
def test_returned_by_vmap(torch_oracle: ModuleType, returned: str) -> None:
    def program(lib: Any) -> Any:
        apply = function(lib, vmap=lambda info, in_dims, x: RETURNED[returned](x))
        return lib.func.vmap(apply, out_dims=0)(lib.arange(6.0).reshape(3, 2))

    def passed_on(lib: Any) -> Any:
        # Also what `vmap` cannot return.
        inside: list[Any] = []
        apply = function(lib, vmap=lambda info, in_dims, x: RETURNED[returned](x))
        lib.func.vmap(lambda x: (inside.append(apply(x)), x)[1])(lib.arange(6.0).reshape(3, 2))
        return len(inside)

    assert outcome(plugrad, program) == outcome(torch_oracle, program)
    assert outcome(plugrad, passed_on) == outcome(torch_oracle, passed_on)


@pytest.mark.parametrize(("dim", "error"), [("a", TypeError), (1.5, TypeError), (2, IndexError)])
def test_what_is_no_dimension(dim: Any, error: type[Exception]) -> None:
    apply = function(plugrad, vmap=lambda info, in_dims, x: (x + 1, dim))
    with pytest.raises(error):
        vmap(apply)(plugrad.ones(3, 2))


@pytest.mark.parametrize("generate", [True, False])
def test_names_of_nodes(torch_oracle: ModuleType, generate: bool) -> None:
    def program(lib: Any) -> Any:
        members = {"generate_vmap_rule": True} if generate else {}
        apply = function(lib, **members)
        names: list[str] = []

        def noted(x: Any) -> Any:
            y = apply(x)
            names.append(y.grad_fn.name())
            return y.sum()

        lib.func.grad(noted)(lib.ones(2))
        lib.func.grad(lambda x: lib.func.grad(noted)(x).sum())(lib.ones(2))
        if generate:
            x = lib.ones(3, 2, requires_grad=True)
            names.append(lib.func.vmap(apply)(x).grad_fn.name())
            names.append(lib.func.vmap(lib.func.vmap(apply))(x).grad_fn.name())
        names.append(apply(lib.ones(2, requires_grad=True)).grad_fn.name())
        return names

    assert outcome(plugrad, program) == outcome(torch_oracle, program)


def test_tensors_in_lists_are_mapped_over(torch_oracle: ModuleType) -> None:
    def program(lib: Any) -> Any:
        seen: list[Any] = []

        def of_list(info: Any, in_dims: Any, pair: Any) -> Any:
            seen.append(in_dims)
            return pair[0] * pair[1], 0

        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        members = {
            "forward": lambda pair: pair[0] * pair[1],
            "setup_context": setup_context,
            "backward": lambda ctx, g: None,
        }
        generated = function(lib, generate_vmap_rule=True, **members)
        own = function(lib, vmap=of_list, **members)
        x, one = lib.arange(6.0).reshape(3, 2), lib.tensor([1.0, 2.0])
        return [
            [
                lib.func.vmap(lambda x, f=apply: f([x, x]))(x),
                lib.func.vmap(lambda x, f=apply: f([x, one]))(x),
            ]
            for apply in (generated, own)
        ], seen

    assert outcome(plugrad, program) == outcome(torch_oracle, program)


def test_a_generated_rule_takes_dicts_and_returns_lists() -> None:
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    apply = function(
        plugrad,
        forward=lambda named: [named["x"] * 2, (named["x"].sum(), "word")],
        setup_context=setup_context,
        generate_vmap_rule=True,
    )
    x = plugrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    doubled, (total, word) = vmap(lambda x: apply({"x": x}), out_dims=[0, (0, None)])(x)
    assert doubled.tolist() == [[2.0, 4.0], [6.0, 8.0]]
    assert (total.tolist(), word) == ([3.0, 7.0], "word")


def test_a_list_of_gradients_and_writes_in_a_batch() -> None:
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_dirty(inputs[0])

    def double(ctx: Any, tangent: Any) -> Any:
        return tangent.mul_(2)

    apply = function(
        plugrad,
        forward=lambda x: x.mul_(2),
        setup_context=setup_context,
        backward=lambda ctx, grads: grads.pop() * 2,
        jvp=double,
        boxed_grads_call=True,
        generate_vmap_rule=True,
    )

    def of_one(x: Any) -> Any:
        y = x.clone()
        return (apply(y) * y).sum()  # 4 x ** 2

    x = plugrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert vmap(of_one)(x).tolist() == [20.0, 100.0]
    assert vmap(grad(of_one))(x).tolist() == [[8.0, 16.0], [24.0, 32.0]]
    assert jvp(of_one, (x,), (plugrad.ones(2, 2),))[1].item() == 80.0
