"""A trace that is interrupted leaves tensors, generators, listeners and hooks as they were."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jax")

import jax

import plugrad
import plugrad_jax
from plugrad.dispatch.local_state import current_state
from plugrad_jax.capture import captured, tracing
from tests.core.dispatch.test_scope import interrupted


def is_concrete(tensor: Any) -> bool:
    return not isinstance(tensor.array, jax.core.Tracer)


def situation(model: Any) -> list[Any]:
    state = current_state()
    optimizers: Any = plugrad.optim.optimizer
    return [
        [is_concrete(parameter) for parameter in model.parameters()],
        [parameter.grad is None for parameter in model.parameters()],
        (state.trace, state.array_log, state.multithreading, list(state.scopes)),
        len(optimizers._global_optimizer_pre_hooks),
    ]


def test_an_interrupt_while_a_step_is_traced_leaves_nothing() -> None:
    plugrad.manual_seed(0)
    model = plugrad.nn.Linear(2, 1).to("jax")
    optimizer = plugrad.optim.SGD(model.parameters(), lr=0.1)
    x = plugrad.ones(3, 2, device="jax")

    def step(x: Any) -> Any:
        loss = (model(plugrad.nn.functional.dropout(x, 0.5)) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    def run() -> None:
        plugrad_jax.jit(step, state=(model, optimizer))(x)

    names = {"run": run}
    program = compile("run()", "<program>", "exec")
    before = situation(model)
    event, came = 40, 0
    while event < 40_000 and interrupted(program, event, names):
        assert situation(model) == before, f"at bytecode {event}"
        assert not captured._lock._is_owned()  # type: ignore[attr-defined]  # of RLock
        came += 1
        event = event * 5 // 4
    assert came > 10
    weights = [parameter.tolist() for parameter in model.parameters()]
    run()
    assert [parameter.tolist() for parameter in model.parameters()] != weights


def test_the_hook_on_optimizers_is_gone_whenever_it_is_interrupted() -> None:
    optimizers: Any = plugrad.optim.optimizer
    names = {"seen": tracing._OptimizersSeen, "check": lambda optimizer, *_: None}
    program = compile("with seen(check): pass", "<program>", "exec")
    event = 1
    while interrupted(program, event, names):
        assert not optimizers._global_optimizer_pre_hooks, f"at bytecode {event}"
        event += 1
    assert event > 40
