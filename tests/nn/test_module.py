"""Module: registration by assignment, walking the tree, modes and errors."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import plugrad
from plugrad import nn


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(plugrad.ones(2))
        self.register_buffer("seen", plugrad.zeros(1))
        self.register_buffer("scratch", plugrad.zeros(1), persistent=False)
        self.inner = nn.Linear(2, 3)

    def forward(self, x: Any) -> Any:
        return self.inner(x * self.scale)


def test_assignment_registers_parameters_and_modules_in_order() -> None:
    block = Block()
    names = [name for name, _ in block.named_parameters()]
    assert names == ["scale", "inner.weight", "inner.bias"]
    assert [name for name, _ in block.named_modules()] == ["", "inner"]
    assert [name for name, _ in block.named_buffers()] == ["seen", "scratch"]


def test_plain_tensors_are_not_registered() -> None:
    module = nn.Module()
    module.constant = plugrad.ones(1)
    assert list(module.parameters()) == []
    assert list(module.buffers()) == []


def test_recurse_false_lists_own_parameters_only() -> None:
    names = [name for name, _ in Block().named_parameters(recurse=False)]
    assert names == ["scale"]


def test_prefix_is_put_before_names() -> None:
    names = [name for name, _ in Block().named_parameters(prefix="net")]
    assert names == ["net.scale", "net.inner.weight", "net.inner.bias"]


def test_shared_parameter_is_listed_once() -> None:
    first, second = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
    second.weight = first.weight
    both = nn.Sequential(first, second)
    assert [name for name, _ in both.named_parameters()] == ["0.weight"]
    twice = both.named_parameters(remove_duplicate=False)
    assert [name for name, _ in twice] == ["0.weight", "1.weight"]


def test_shared_module_is_walked_once() -> None:
    layer = nn.ReLU()
    both = nn.Sequential(layer, layer)
    assert len(list(both.modules())) == 2
    assert len(list(both.children())) == 1


def test_assigning_none_to_a_parameter_unsets_it() -> None:
    layer = nn.Linear(2, 2)
    layer.bias = None
    assert layer.bias is None
    assert [name for name, _ in layer.named_parameters()] == ["weight"]


def test_a_parameter_replaces_a_buffer_of_the_same_name() -> None:
    module = nn.Module()
    module.register_buffer("x", plugrad.ones(1))
    module.x = nn.Parameter(plugrad.ones(1))
    assert [name for name, _ in module.named_buffers()] == []
    assert [name for name, _ in module.named_parameters()] == ["x"]


def test_deleting_an_attribute_unregisters_it() -> None:
    block = Block()
    del block.scale, block.inner, block.seen
    assert list(block.named_parameters()) == []
    assert not hasattr(block, "scale")


def test_buffer_can_be_reassigned_as_an_attribute() -> None:
    block = Block()
    block.seen = plugrad.ones(1)
    assert dict(block.named_buffers())["seen"].tolist() == [1.0]


def test_dir_lists_registered_names() -> None:
    assert {"scale", "seen", "inner"} <= set(dir(Block()))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: m.register_parameter("a.b", None), KeyError, 'can\'t contain "."'),
        (lambda m: m.register_parameter("", None), KeyError, "can't be empty string"),
        (lambda m: m.register_parameter(3, None), TypeError, "should be a string. Got int"),
        (
            lambda m: m.register_parameter("forward", None),
            KeyError,
            "attribute 'forward' already exists",
        ),
        (
            lambda m: m.register_parameter("x", plugrad.ones(1)),
            TypeError,
            "object to parameter 'x' (plugrad.nn.Parameter or None required)",
        ),
        (
            lambda m: m.register_buffer("x", 3),
            TypeError,
            "cannot assign 'int' object to buffer 'x' (plugrad Tensor or None required)",
        ),
        (lambda m: m.add_module("a.b", None), KeyError, 'can\'t contain ".", got: a.b'),
        (lambda m: m.add_module("a", 3), TypeError, "int is not a Module subclass"),
        (
            lambda m: setattr(m, "weight", 3),
            TypeError,
            "cannot assign 'int' as parameter 'weight' (plugrad.nn.Parameter or None expected)",
        ),
        (
            lambda m: setattr(m, "weight", plugrad.ones(2)),
            TypeError,
            "cannot assign 'plugrad.Tensor' as parameter 'weight'",
        ),
        (
            lambda m: setattr(m, "child", 3),
            TypeError,
            "cannot assign 'int' as child module 'child' (plugrad.nn.Module or None expected)",
        ),
        (
            lambda m: setattr(m, "buffer", 3),
            TypeError,
            "cannot assign 'int' as buffer 'buffer' (plugrad.Tensor or None expected)",
        ),
        (lambda m: m.nope, AttributeError, "'Linear' object has no attribute 'nope'"),
        (lambda m: nn.Module()(1), NotImplementedError, 'is missing the required "forward"'),
        (lambda m: m.get_submodule("q.r"), AttributeError, "Linear has no attribute `q`"),
        (lambda m: m.get_submodule("weight"), AttributeError, "`weight` is not an nn.Module"),
        (lambda m: m.get_parameter("forward"), AttributeError, "is not an nn.Parameter"),
        (lambda m: m.get_buffer("weight"), AttributeError, "`weight` is not a buffer"),
        (lambda m: m.train(3), ValueError, "training mode is expected to be boolean"),
    ],
)
def test_wrong_use_is_named(call: Any, error: type[Exception], message: str) -> None:
    module = nn.Linear(1, 1)
    module.child = nn.ReLU()
    module.register_buffer("buffer", None)
    with pytest.raises(error) as caught:
        call(module)
    assert message in str(caught.value.args[0])


@pytest.mark.parametrize(
    ("assign", "what"),
    [
        (lambda m: setattr(m, "w", nn.Parameter(plugrad.ones(1))), "parameters"),
        (lambda m: setattr(m, "w", nn.ReLU()), "module"),
        (lambda m: m.register_buffer("w", None), "buffer"),
    ],
)
def test_assignment_before_init_is_named(assign: Any, what: str) -> None:
    class Forgetful(nn.Module):
        def __init__(self) -> None:
            assign(self)

    message = f"cannot assign {what} before Module.__init__\\(\\) call"
    with pytest.raises(AttributeError, match=message):
        Forgetful()


def test_results_cannot_be_parameters() -> None:
    with pytest.raises(TypeError, match="cannot assign"):
        nn.Module().register_parameter("w", plugrad.ones(1, requires_grad=True) * 2)  # type: ignore[arg-type]  # the error under test


def test_train_and_eval_reach_every_module() -> None:
    block = Block().eval()
    assert not any(module.training for module in block.modules())
    assert all(module.training for module in block.train().modules())


def test_apply_visits_children_before_parents() -> None:
    visited: list[str] = []
    Block().apply(lambda module: visited.append(type(module).__name__))
    assert visited == ["Linear", "Block"]


def test_requires_grad_freezes_all_parameters() -> None:
    block = Block().requires_grad_(False)
    assert not any(parameter.requires_grad for parameter in block.parameters())


@pytest.mark.parametrize("set_to_none", [True, False])
def test_zero_grad(set_to_none: bool) -> None:
    block = Block()
    block(plugrad.ones(4, 2)).sum().backward()
    block.zero_grad(set_to_none=set_to_none)
    if set_to_none:
        assert block.scale.grad is None
    else:
        assert block.scale.grad.tolist() == [0.0, 0.0]


def test_get_submodule_follows_dotted_paths() -> None:
    outer = nn.Sequential(Block())
    assert outer.get_submodule("0.inner") is outer[0].inner
    assert outer.get_submodule("") is outer
    assert outer.get_parameter("0.inner.bias") is outer[0].inner.bias
    assert outer.get_buffer("0.seen") is outer[0].seen


def test_deepcopy_gives_an_independent_module() -> None:
    block = Block()
    copied = copy.deepcopy(block)
    with plugrad.no_grad():
        copied.scale.fill_(9.0)
    assert block.scale.tolist() == [1.0, 1.0]
    assert [name for name, _ in copied.named_parameters()] == [
        name for name, _ in block.named_parameters()
    ]
