"""SGD and Adam by one kernel for a whole step, which is what they use where there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import plugrad
from plugrad.plugins.tracing import Listener, listening
from plugrad_nn.optim import adam, sgd

nn = plugrad.nn
Make = Callable[[Any], Any]

OPTIMIZERS: dict[str, Make] = {
    "sgd": lambda p: plugrad.optim.SGD(p, lr=0.1),
    "momentum": lambda p: plugrad.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.25),
    "nesterov": lambda p: plugrad.optim.SGD(
        p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.03, maximize=True
    ),
    "adam": lambda p: plugrad.optim.Adam(p, lr=0.1),
    "adam_decay": lambda p: plugrad.optim.Adam(p, lr=0.1, weight_decay=0.03, maximize=True),
    "slow": lambda p: plugrad.optim.Adam(p, lr=0.1, betas=(0.3, 0.6), amsgrad=True),
    "adamw": lambda p: plugrad.optim.AdamW(p, lr=0.1, amsgrad=True),
    "fused": lambda p: plugrad.optim.AdamW(p, lr=0.1, fused=True),
}


class _Names(Listener):
    def __init__(self) -> None:
        super().__init__(None)
        self.names: list[str] = []

    def dispatch(self, kind: str, op: Any, keyset: int, args: tuple[object, ...]) -> Any:
        self.names.append(op.name)
        return super().dispatch(kind, op, keyset, args)


def _train(make: Make, steps: int = 5) -> tuple[list[Any], list[str]]:
    plugrad.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4))
    optimizer = make(model.parameters())
    x, heard = plugrad.rand(5, 6), _Names()
    for number in range(steps):
        optimizer.zero_grad()
        loss = (model(x) ** 2).sum()
        if number == 2:
            loss = model[0](x).sum()  # the last layer has no gradient
        loss.backward()
        with listening(heard):
            optimizer.step()
    states = [v for p in model.parameters() for _, v in sorted(optimizer.state[p].items())]
    return [*model.parameters(), *states], heard.names


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_same_bits_as_one_parameter_after_the_other(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, names = _train(OPTIMIZERS[name])
    assert {"_update_sgd", "_update_adam"} & set(names)
    for module in (sgd, adam):
        monkeypatch.setattr(module, "at_once", lambda *given: False)
    alone, names = _train(OPTIMIZERS[name])
    assert not {"_update_sgd", "_update_adam"} & set(names)
    assert len(together) == len(alone)
    for a, b in zip(together, alone, strict=True):
        assert a.dtype is b.dtype
        assert plugrad.equal(a, b)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_compiled_step_calls_the_kernel(name: str) -> None:
    plugrad.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4))
    optimizer = OPTIMIZERS[name](model.parameters())

    @plugrad.compile
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (model(x) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss

    x = plugrad.rand(5, 6)
    for _ in range(6):
        step(x)
    assert step.cache_info().hits >= 3, step.explain()
    ((program,),) = [p for p in step._programs.values() if p]
    names = [node.op.op.name for node in step.graphs()[-1].nodes]
    assert names[-1] in ("_update_sgd", "_update_adam")
    last = [line.strip() for line in program.lowered.source.splitlines()[-5:]]
    assert not any(line.startswith("k") for line in last), last  # "k" is a call on tensors


@pytest.mark.parametrize(
    "options",
    [{"lr": plugrad.tensor(0.1)}, {"capturable": True}, {"foreach": True}],
)
def test_what_needs_tensors_for_numbers_goes_another_way(options: dict[str, Any]) -> None:
    _, names = _train(lambda p: plugrad.optim.Adam(p, **options))
    assert "_update_adam" not in names


def test_a_subclass_of_tensor_is_updated_by_its_own_methods() -> None:
    called: list[str] = []

    class Named(plugrad.Tensor):
        @classmethod
        def __torch_function__(
            cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            called.append(function.__name__)
            return super().__torch_function__(function, types, args, kwargs)

    p = plugrad.ones(3).as_subclass(Named).requires_grad_()
    p.grad = plugrad.ones(3)
    optimizer = plugrad.optim.SGD([p], lr=0.5)
    called.clear()
    optimizer.step()
    assert "add_" in called
    assert plugrad.equal(p.detach(), plugrad.full((3,), 0.5))


def test_gradients_may_be_used_after_the_step() -> None:
    """The step reads them, and does not count as a write."""
    w = nn.Parameter(plugrad.tensor([2.0]))
    (w**3).sum().backward(create_graph=True)
    grad = w.grad
    assert grad is not None
    version = grad._version
    optimizer = plugrad.optim.Adam([w], lr=0.1)
    optimizer.step()
    assert grad._version == version
