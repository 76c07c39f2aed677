"""Forward and full backward hooks of modules."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

import plugrad
from plugrad import nn


class Doubling(nn.Module):
    def forward(self, x: Any, factor: float = 2.0) -> Any:
        return x * factor


def test_forward_pre_hook_changes_the_input() -> None:
    module = Doubling()
    module.register_forward_pre_hook(lambda m, args: args[0] + 1)
    assert module(plugrad.tensor(1.0)).item() == 4.0


def test_forward_pre_hook_with_kwargs_changes_both() -> None:
    module = Doubling()
    module.register_forward_pre_hook(
        lambda m, args, kwargs: (args, {"factor": 10.0}), with_kwargs=True
    )
    assert module(plugrad.tensor(1.0)).item() == 10.0


def test_forward_hook_changes_the_output() -> None:
    module = Doubling()
    module.register_forward_hook(lambda m, args, output: output + args[0])
    assert module(plugrad.tensor(1.0)).item() == 3.0


def test_prepended_hook_runs_first() -> None:
    module = Doubling()
    order: list[int] = []
    module.register_forward_hook(lambda *_: order.append(1))
    module.register_forward_hook(lambda *_: order.append(0), prepend=True)
    module(plugrad.tensor(1.0))
    assert order == [0, 1]


def test_removed_hook_does_not_run() -> None:
    module = Doubling()
    handle = module.register_forward_hook(lambda m, args, output: output * 100)
    handle.remove()
    assert module(plugrad.tensor(1.0)).item() == 2.0


def test_handle_is_a_context_manager() -> None:
    module = Doubling()
    with module.register_forward_hook(lambda m, args, output: output * 100):
        assert module(plugrad.tensor(1.0)).item() == 200.0
    assert module(plugrad.tensor(1.0)).item() == 2.0


def test_always_called_hook_runs_when_forward_fails() -> None:
    seen: list[Any] = []
    module = nn.Module()
    module.register_forward_hook(lambda m, args, output: seen.append(output), always_call=True)
    with pytest.raises(NotImplementedError):
        module(1)
    assert seen == [None]


def test_full_backward_hook_sees_both_gradients() -> None:
    seen: list[Any] = []
    module = Doubling()
    module.register_full_backward_hook(
        lambda m, grad_input, grad_output: seen.append((grad_input, grad_output))
    )
    x = plugrad.tensor([1.0, 2.0], requires_grad=True)
    (module(x) * plugrad.tensor([3.0, 5.0])).sum().backward()
    ((grad_input,), (grad_output,)) = seen[0]
    assert grad_output.tolist() == [3.0, 5.0]
    assert grad_input.tolist() == [6.0, 10.0]


def test_full_backward_hook_changes_the_input_gradient() -> None:
    module = Doubling()
    module.register_full_backward_hook(lambda m, grad_input, grad_output: (grad_input[0] * 10,))
    x = plugrad.tensor(1.0, requires_grad=True)
    module(x).backward()
    assert x.grad is not None
    assert x.grad.item() == 20.0


def test_full_backward_pre_hook_changes_the_output_gradient() -> None:
    module = Doubling()
    module.register_full_backward_pre_hook(lambda m, grad_output: (grad_output[0] * 3,))
    x = plugrad.tensor(1.0, requires_grad=True)
    module(x).backward()
    assert x.grad is not None
    assert x.grad.item() == 6.0


def test_full_backward_hook_without_input_gradient_gets_none() -> None:
    seen: list[Any] = []
    layer = nn.Linear(2, 1)
    layer.register_full_backward_hook(lambda m, grad_input, grad_output: seen.append(grad_input))
    layer(plugrad.ones(3, 2)).sum().backward()
    assert seen == [(None,)]
    assert layer.weight.grad is not None


def test_full_backward_hook_with_wrong_number_of_gradients_raises() -> None:
    module = Doubling()
    module.register_full_backward_hook(lambda m, grad_input, grad_output: ())
    x = plugrad.tensor(1.0, requires_grad=True)
    with pytest.raises(RuntimeError, match="incorrect number of gradients: expected 1, got 0"):
        module(x).backward()


def test_backward_hooks_agree_with_torch(torch: Any) -> None:
    results = []
    for library in (plugrad, torch):
        seen: list[Any] = []

        class Mixing(library.nn.Module):  # type: ignore[misc,name-defined]  # base chosen at run time
            def forward(self, a: Any, b: Any) -> Any:
                return a * b, a + b

        def note(module: Any, grad_in: Any, grad_out: Any, to: Any = seen) -> None:
            to.append(
                [[None if g is None else g.tolist() for g in gs] for gs in (grad_in, grad_out)]
            )

        module = Mixing()
        module.register_full_backward_hook(note)
        a = library.tensor([1.0, 2.0], requires_grad=True)
        b = library.tensor([3.0, 4.0], requires_grad=True)
        product, _ = module(a, b)
        product.sum().backward()
        results.append((seen, a.grad.tolist(), b.grad.tolist()))
    assert results[0] == results[1]


def test_full_backward_hook_does_not_run_in_a_second_backward() -> None:
    calls: list[str] = []
    loss = nn.MSELoss()
    loss.register_full_backward_hook(lambda *_: calls.append("hook"))
    x = plugrad.ones(1, requires_grad=True)
    (grad,) = plugrad.autograd.grad(loss(x, plugrad.zeros(1)), x, create_graph=True)
    (second,) = plugrad.autograd.grad(grad, x)
    assert calls == ["hook"]
    assert second.tolist() == [2.0]


def test_packages_find_hooks_by_pytorch_s_names(torch_oracle: ModuleType) -> None:
    def hook(*args: Any, **kwargs: Any) -> None:
        pass

    def found(lib: Any) -> list[Any]:
        module = lib.nn.Module()
        handles = [
            module.register_forward_pre_hook(hook, with_kwargs=True),
            module.register_forward_hook(hook, always_call=True),
            module.register_full_backward_pre_hook(hook),
            module.register_full_backward_hook(hook),
            module.register_state_dict_pre_hook(hook),
            module._register_state_dict_hook(hook),
            module.register_load_state_dict_post_hook(hook),
        ]
        module.register_buffer("b", lib.ones(1), persistent=False)
        names = [
            *("_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_forward_hooks"),
            *("_forward_hooks_with_kwargs", "_forward_hooks_always_called"),
            *("_backward_pre_hooks", "_backward_hooks", "_state_dict_pre_hooks"),
            *("_state_dict_hooks", "_load_state_dict_post_hooks"),
        ]
        seen = [list(getattr(module, name).values()) for name in names]
        for handle in handles:
            handle.remove()
        left = [len(getattr(module, name)) for name in names]
        return [*seen, left, module._non_persistent_buffers_set]

    assert found(plugrad) == found(torch_oracle)
