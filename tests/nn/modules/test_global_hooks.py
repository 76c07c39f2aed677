"""Hooks of all modules and of registration, and the older backward hooks: what PyTorch calls."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad
from plugrad import nn
from plugrad.nn import global_hooks


@pytest.fixture(autouse=True)
def forgotten_kind(torch: Any) -> None:
    """PyTorch keeps the kind of global hooks after they are removed."""
    torch.nn.modules.module._global_is_full_backward_hook = None


def hooks_of(library: Any) -> Any:
    return global_hooks if library is plugrad else library.nn.modules.module


def net_of(library: Any) -> Any:
    net = library.nn.Sequential(library.nn.Linear(2, 3), library.nn.ReLU())
    with library.no_grad():
        for parameter in net.parameters():
            parameter.fill_(0.5)
    return net


def watched(library: Any) -> list[Any]:
    """What hooks see of one step, and the changes that they make."""
    seen: list[Any] = []

    def name(module: Any) -> str:
        return type(module).__name__

    def sizes(tensors: Any) -> list[Any]:
        return [None if x is None else (tuple(x.shape), x.sum().item()) for x in tensors]

    def pre(module: Any, args: Any) -> Any:
        seen.append(("pre", name(module), sizes(args)))
        return (args[0] * 2,) if name(module) == "Linear" else None

    def after(module: Any, args: Any, output: Any) -> Any:
        seen.append(("after", name(module), sizes([output.detach()])))
        return output + 1 if name(module) == "ReLU" else None

    def backward_pre(module: Any, grads: Any) -> None:
        seen.append(("backward pre", name(module), sizes(grads)))

    def backward(module: Any, grad_inputs: Any, grad_outputs: Any) -> None:
        seen.append(("backward", name(module), sizes(grad_inputs), sizes(grad_outputs)))

    hooks = hooks_of(library)
    handles = [
        hooks.register_module_forward_pre_hook(pre),
        hooks.register_module_forward_hook(after),
        hooks.register_module_full_backward_pre_hook(backward_pre),
        hooks.register_module_full_backward_hook(backward),
    ]
    net = net_of(library)
    net[0].register_forward_pre_hook(lambda module, args: seen.append(("own", sizes(args))))
    try:
        x = library.ones(4, 2, requires_grad=True)
        net(x).sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    seen.append(sizes([x.grad, *(p.grad for p in net.parameters())]))
    net[1](x)
    return seen


def test_hooks_of_all_modules_see_what_torchs_see(torch: Any) -> None:
    ours = watched(plugrad)
    assert ours == watched(torch)
    assert len(ours) > 10


def test_hooks_of_the_last_operator_see_what_torchs_see(torch: Any) -> None:
    found = []
    for library in (plugrad, torch):
        seen: list[Any] = []

        def hook(module: Any, given: Any, received: Any, seen: list[Any] = seen) -> None:
            seen.append([tuple(g.shape) for g in received])
            seen.append([None if g is None else tuple(g.shape) for g in given])

        # Of one operator each; linear layers are other operators in PyTorch.
        net = library.nn.Sequential(library.nn.Tanh(), library.nn.ReLU())
        net.register_backward_hook(hook)
        handle = hooks_of(library).register_module_backward_hook(hook)
        net(library.ones(4, 2, requires_grad=True)).sum().backward()
        handle.remove()
        found.append(sorted(map(repr, seen)))
    assert found[0] == found[1]
    assert found[0]


@pytest.mark.parametrize("kinds", [("backward", "full_backward"), ("full_backward", "backward")])
def test_both_kinds_of_backward_hooks_are_refused(torch: Any, kinds: tuple[str, str]) -> None:
    messages = []
    for library in (plugrad, torch):
        layer = library.nn.ReLU()
        getattr(layer, f"register_{kinds[0]}_hook")(print)
        with pytest.raises(RuntimeError) as caught:
            getattr(layer, f"register_{kinds[1]}_hook")(print)
        hooks = hooks_of(library)
        if library is not plugrad:
            hooks._global_is_full_backward_hook = None
        handle = getattr(hooks, f"register_module_{kinds[0]}_hook")(print)
        with pytest.raises(RuntimeError) as of_all:
            getattr(hooks, f"register_module_{kinds[1]}_hook")(print)
        handle.remove()
        messages.append((str(caught.value), str(of_all.value)))
    assert messages[0] == messages[1]


def test_hooks_of_registration_see_and_change_members(torch: Any) -> None:
    found = []
    for library in (plugrad, torch):
        seen: list[Any] = []

        def note(module: Any, name: str, value: Any, seen: list[Any] = seen) -> None:
            seen.append((type(module).__name__, name, type(value).__name__))

        def doubled(module: Any, name: str, value: Any, library: Any = library) -> Any:
            note(module, name, value)
            return None if value is None else library.nn.Parameter(value.detach() * 2)

        hooks = hooks_of(library)
        handles = [
            hooks.register_module_parameter_registration_hook(doubled),
            hooks.register_module_buffer_registration_hook(note),
            hooks.register_module_module_registration_hook(note),
        ]
        try:
            net = library.nn.Sequential(library.nn.BatchNorm1d(2))
            net.weight = library.nn.Parameter(library.ones(1))
            net.register_parameter("nothing", None)
        finally:
            for handle in handles:
                handle.remove()
        found.append((seen, net.weight.tolist(), net[0].weight.tolist()))
    assert found[0][0] == found[1][0]
    assert found[0] == found[1]


def test_a_global_hook_that_is_always_called_runs_after_an_error() -> None:
    seen = []
    handle = global_hooks.register_module_forward_hook(
        lambda module, args, output: seen.append(output), always_call=True
    )
    with pytest.raises(RuntimeError):
        nn.Linear(2, 3)(plugrad.ones(4))
    handle.remove()
    assert seen == [None]


def test_further_arguments_go_on_only_if_asked_for() -> None:
    class Base:
        def __init__(self, size: int) -> None:
            self.size = size

    class Handing(nn.Module, Base):
        call_super_init = True

        def __init__(self) -> None:
            super().__init__(size=3)

    class Keeping(nn.Module):
        def __init__(self) -> None:
            super().__init__(3)

    assert Handing().size == 3
    with pytest.raises(TypeError, match=r"Keeping.__init__\(\) takes 1 positional argument but 2"):
        Keeping()


def test_positions_of_state_dict_are_deprecated() -> None:
    with pytest.warns(FutureWarning, match="Positional args are being deprecated"):
        found = nn.Linear(1, 1).state_dict({}, "a.")
    assert list(found) == ["a.weight", "a.bias"]
