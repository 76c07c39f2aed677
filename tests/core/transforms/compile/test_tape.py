"""What a tape consists of: kernels called directly, an arena, copies left out; memory, threads."""

from __future__ import annotations

import gc
import threading
import tracemalloc
import weakref
from typing import Any

import plugrad

nn = plugrad.nn


def compiled(step: Any, *args: Any) -> Any:
    run: Any = plugrad.compile(step)
    run(*args)
    return run


def tape_of(run: Any) -> Any:
    ((program,),) = run._programs.values()
    return program.lowered


def training() -> tuple[Any, Any]:
    plugrad.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
    optimizer = plugrad.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step, model


def batch() -> tuple[Any, Any]:
    return plugrad.ones(5, 6), plugrad.tensor([0, 1, 2, 3, 0])


def test_values_that_are_not_needed_at_once_share_memory() -> None:
    def chain(x: Any) -> Any:
        for _ in range(10):
            x = x.sin().exp()
        return x + 1

    x = plugrad.ones(256)
    tape = tape_of(compiled(chain, x))
    assert tape.wrapped == 0
    assert tape.arena == 1024  # each overwrites the array from which it is computed
    assert tape.unplanned == 20 * 1024


def test_values_that_are_needed_later_keep_their_memory() -> None:
    def kept(x: Any) -> Any:
        a = x.sin()
        b = a.exp()
        c = b.cos()
        return a * b * c

    x = plugrad.arange(256.0)
    run = compiled(kept, x)
    assert tape_of(run).arena == 3 * 1024
    assert plugrad.equal(run(x), kept(x))


def test_a_view_keeps_what_it_is_a_view_of() -> None:
    def viewed(x: Any) -> Any:
        y = x.sin()
        row = y[0]
        z = y.exp()
        other = z.cos().sin()
        return other + row

    x = plugrad.arange(12.0).reshape(3, 4)
    run = compiled(viewed, x)
    for _ in range(3):
        assert plugrad.equal(run(x), viewed(x))
    assert run.cache_info().hits == 3


def test_results_are_not_in_the_arena() -> None:
    run = compiled(lambda x: (x.sin().exp(), x.cos()), plugrad.ones(64))
    first = run(plugrad.ones(64))
    before = [each.clone() for each in first]
    run(plugrad.zeros(64))
    assert all(plugrad.equal(a, b) for a, b in zip(first, before, strict=True))


def test_gradients_of_one_step_are_not_written_over_by_the_next() -> None:
    step, model = training()
    run: Any = plugrad.compile(step)
    for _ in range(3):
        run(*batch())
    held = [parameter.grad for parameter in model.parameters()]
    before = [grad.clone() for grad in held]
    run(*batch())
    assert run.cache_info().hits == 2
    assert all(plugrad.equal(a, b) for a, b in zip(held, before, strict=True))
    grads = [parameter.grad for parameter in model.parameters()]
    assert all(new is not old for new, old in zip(grads, held, strict=True))


def test_copies_of_what_nobody_else_has_are_left_out() -> None:
    step, model = training()
    run: Any = plugrad.compile(step)
    for _ in range(3):
        run(*batch())
    tape = tape_of(run)
    assert tape.elided == len(list(model.parameters()))
    both = compiled(lambda x: (x @ x, (x @ x).clone()), plugrad.ones(2, 2))
    first, second = both(plugrad.ones(2, 2))
    first.zero_()
    assert second.tolist() == [[2, 2], [2, 2]]


def test_kernels_are_called_directly() -> None:
    step, _ = training()
    run: Any = plugrad.compile(step)
    for _ in range(3):
        run(*batch())
    tape = tape_of(run)
    assert tape.wrapped <= 1
    assert "def tape(" in tape.source


def test_common_subexpressions_and_dead_code_are_gone() -> None:
    def wasteful(x: Any) -> Any:
        x.exp()
        return (x * 2).t().sin() + (x * 2).t().sin()

    run = compiled(wasteful, plugrad.ones(2, 3))
    (graph,) = run.graphs()
    assert [node.op.op.name for node in graph.nodes] == ["mul", "t", "sin", "add"]
    assert plugrad.equal(run(plugrad.ones(2, 3)), wasteful(plugrad.ones(2, 3)))


def test_memory_does_not_grow() -> None:
    step, _ = training()
    run: Any = plugrad.compile(step)
    args = batch()
    for _ in range(200):
        run(*args)
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(1000):
            run(*args)
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(9000):
            run(*args)
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert run.cache_info().hits >= 10_000
    assert after - before < 4096


def test_a_program_does_not_keep_the_batch_that_was_captured() -> None:
    step, _ = training()
    run: Any = plugrad.compile(step)
    x, y = batch()
    for _ in range(3):
        run(x, y)
    ref = weakref.ref(x)
    del x
    gc.collect()
    assert ref() is None


def test_steps_at_once_in_threads() -> None:
    def step(x: Any) -> Any:
        for _ in range(5):
            x = (x.sin() * 2).exp() @ x
        return x.sum()

    run: Any = plugrad.compile(step)
    inputs = [plugrad.full((16, 16), 0.01 * number) for number in range(4)]
    wanted = [step(x).item() for x in inputs]
    run(inputs[0])
    wrong: list[Any] = []

    def work(number: int) -> None:
        for _ in range(50):
            found = run(inputs[number]).item()
            if found != wanted[number]:
                wrong.append((number, found))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert run.captures == 1


def test_random_numbers_are_those_of_the_step() -> None:
    def step(x: Any) -> Any:
        return nn.functional.dropout(x, 0.5) + plugrad.rand(3)

    x = plugrad.ones(3)
    plugrad.manual_seed(5)
    wanted = [step(x) for _ in range(4)]
    run: Any = plugrad.compile(step)
    plugrad.manual_seed(5)
    for each in wanted:
        assert plugrad.equal(run(x), each)
    assert run.cache_info().hits == 3
