"""Collectives as operators: results, gradients of the sum of the losses of all ranks, tangents,
batches, tensors without data, recordings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import plugrad
from plugrad import distributed as dist
from plugrad.distributed import functional as fn

SIZE = 3
float64 = plugrad.float64

# By name: a function of this rank's tensor.
CALLS: dict[str, Callable[[Any], Any]] = {
    "all_reduce": lambda x: fn.all_reduce(x),
    "all_reduce avg": lambda x: fn.all_reduce(x, "avg"),
    "all_reduce product": lambda x: fn.all_reduce(x, "product"),
    "all_reduce max": lambda x: fn.all_reduce(x, "max"),
    "all_reduce min": lambda x: fn.all_reduce(x, "min"),
    "reduce": lambda x: fn.reduce(x, 1),
    "reduce avg": lambda x: fn.reduce(x, 2, "avg"),
    "broadcast": lambda x: fn.broadcast(x, 1),
    "all_gather": lambda x: fn.all_gather(x),
    "all_gather columns": lambda x: fn.all_gather(x, -1),
    "reduce_scatter": lambda x: fn.reduce_scatter(x),
    "reduce_scatter columns": lambda x: fn.reduce_scatter(x.t(), 1),
    "reduce_scatter avg": lambda x: fn.reduce_scatter(x, 0, "avg"),
    "all_to_all_single": lambda x: fn.all_to_all_single(x),
    "all_to_all_single uneven": lambda x: fn.all_to_all_single(
        x, [(1, 2, 3)[dist.get_rank()]] * SIZE, [1, 2, 3]
    ),
    "gather": lambda x: fn.gather(x, 2),
    "gather columns": lambda x: fn.gather(x, 0, 1),
    "scatter": lambda x: fn.scatter(x, 1, 0, (2, 4)),
    "ring": lambda x: ring(x),
}


def ring(x: Any) -> Any:
    """The message of the previous rank; the token of the sent message is an input, so that backward
    receives."""
    rank = dist.get_rank()
    token = fn.send(x, (rank + 1) % SIZE, tag=3)
    return fn.recv(x, (rank - 1) % SIZE, tag=3) + token


def inputs() -> list[Any]:
    plugrad.manual_seed(0)
    return [plugrad.rand(6, 4, dtype=float64) + rank for rank in range(SIZE)]


def on_all(program: Callable[[Any], Any], tensors: list[Any] | None = None) -> list[Any]:
    """What a function of each rank's tensor gives on it."""
    given = inputs() if tensors is None else tensors
    return dist.run_ranks(lambda: program(given[dist.get_rank()]), SIZE)


def loss(result: Any) -> Any:
    """A function with a second derivative, of another weight on each rank."""
    return (result * result * (dist.get_rank() + 1)).sum()


def total(name: str, tensors: list[Any]) -> float:
    """The sum of the losses of all ranks."""
    return float(sum(x.item() for x in on_all(lambda x: loss(CALLS[name](x)), tensors)))


@pytest.mark.parametrize("name", CALLS)
def test_gradients_are_those_of_the_sum_of_all_losses(name: str) -> None:
    def program(x: Any) -> Any:
        x = x.clone().requires_grad_()
        loss(CALLS[name](x)).backward()
        return x.grad

    grads = on_all(program)
    step = 1e-6
    for rank in range(SIZE):
        for place in [(0, 0), (2, 3), (5, 1)]:
            values = []
            for sign in (1, -1):
                moved = inputs()
                moved[rank][place] += sign * step
                values.append(total(name, moved))
            slope = (values[0] - values[1]) / (2 * step)
            assert grads[rank][place].item() == pytest.approx(slope, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", CALLS)
def test_second_derivatives(name: str) -> None:
    """The Hessian of the sum of all losses times a vector, from gradients of gradients, and from
    differences of gradients."""

    def gradients(tensors: list[Any]) -> list[Any]:
        def program(x: Any) -> Any:
            x = x.clone().requires_grad_()
            (grad,) = plugrad.autograd.grad(loss(CALLS[name](x)), x)
            return grad

        return on_all(program, tensors)

    def product(x: Any) -> Any:
        x = x.clone().requires_grad_()
        (grad,) = plugrad.autograd.grad(loss(CALLS[name](x)), x, create_graph=True)
        (found,) = plugrad.autograd.grad((grad * (dist.get_rank() + 1)).sum(), x)
        return found

    found = on_all(product)
    step = 1e-5
    ahead = gradients([x + step * (rank + 1) for rank, x in enumerate(inputs())])
    behind = gradients([x - step * (rank + 1) for rank, x in enumerate(inputs())])
    for value, one, two in zip(found, ahead, behind, strict=True):
        plugrad.testing.assert_close(value, (one - two) / (2 * step), rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in CALLS if name != "ring"])
def test_tangents(name: str) -> None:
    def program(x: Any) -> Any:
        direction = plugrad.ones_like(x) * (dist.get_rank() + 1)
        return plugrad.func.jvp(CALLS[name], (x,), (direction,))[1]

    found = on_all(program)
    step = 1e-6
    ahead = on_all(CALLS[name], [x + step * (r + 1) for r, x in enumerate(inputs())])
    behind = on_all(CALLS[name], [x - step * (r + 1) for r, x in enumerate(inputs())])
    for value, one, two in zip(found, ahead, behind, strict=True):
        plugrad.testing.assert_close(value, (one - two) / (2 * step), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("batch_dim", [0, 1, -1])
@pytest.mark.parametrize("name", CALLS)
def test_batches(name: str, batch_dim: int) -> None:
    batches = [plugrad.stack([x, x * 2 + 1], batch_dim) for x in inputs()]

    def batched(x: Any) -> Any:
        return plugrad.vmap(CALLS[name], in_dims=batch_dim)(x)

    def one_by_one(x: Any) -> Any:
        return plugrad.stack([CALLS[name](part) for part in x.unbind(batch_dim)])

    for found, wanted in zip(on_all(batched, batches), on_all(one_by_one, batches), strict=True):
        plugrad.testing.assert_close(found, wanted)


@pytest.mark.parametrize("name", CALLS)
def test_without_data(name: str) -> None:
    """Shapes follow from the arguments, without a message."""

    def program(x: Any) -> Any:
        wanted = CALLS[name](x)
        found = CALLS[name](x.to("meta"))
        assert found.device.type == "meta"
        assert found.dtype == wanted.dtype
        return found.shape, wanted.shape

    for found, wanted in on_all(program):
        assert found == wanted


@pytest.mark.parametrize("name", CALLS)
def test_a_recording_has_the_collective(name: str) -> None:
    def program(x: Any) -> Any:
        graph = plugrad.capture(CALLS[name], x)
        operator = name.split()[0] if name != "ring" else "recv"
        assert f"ops.distributed.{operator}.default" in str(graph)
        return graph(x * 2 + 1), CALLS[name](x * 2 + 1)

    for found, wanted in on_all(program):
        plugrad.testing.assert_close(found, wanted)


def test_writing_collectives_within_a_recording() -> None:
    def program(x: Any) -> Any:
        def step(x: Any) -> Any:
            y = x * 2
            dist.all_reduce(y)
            return y + 1

        graph = plugrad.capture(step, x)
        return graph(x + 1), step(x + 1)

    for found, wanted in on_all(program):
        plugrad.testing.assert_close(found, wanted)


def test_traces_and_profiles_name_collectives() -> None:
    def program(x: Any) -> Any:
        with plugrad.record_dispatch_trace() as events:
            dist.all_reduce(x)
        return [event.op for event in events if event.kind == "call"]

    for names in on_all(program):
        assert "distributed::all_reduce" in names


def test_another_device() -> None:
    pytest.importorskip("plugrad_jax", reason="plugrad-jax is not installed")

    def program(x: Any) -> Any:
        # Of its own for each rank: a device has one thread for the backward passes of a process.
        y = x.to(f"jax:{dist.get_rank()}").requires_grad_()
        z = fn.all_gather(y * y)
        assert z.device.type == "jax"
        z.sum().backward()
        return z.cpu(), y.grad

    wanted = plugrad.cat([x * x for x in inputs()])
    for rank, (found, grad) in enumerate(on_all(program)):
        plugrad.testing.assert_close(found, wanted)
        plugrad.testing.assert_close(grad.cpu(), 2 * SIZE * inputs()[rank])


def test_subgroups_have_gradients_of_their_own() -> None:
    def program(x: Any) -> Any:
        pair = dist.new_group([0, 2])
        x = x.clone().requires_grad_()
        if dist.get_rank() == 1:
            with pytest.raises(ValueError, match="not part of the group"):
                fn.all_reduce(x, group=pair)
            return None
        fn.all_reduce(x, group=pair).sum().backward()
        y = fn.broadcast(x, 2, group=pair)
        return x.grad, y

    first, _, last = on_all(program)
    assert first[0].tolist() == last[0].tolist() == plugrad.full((6, 4), 2.0).tolist()
    assert first[1].tolist() == last[1].tolist() == inputs()[2].tolist()


WRONG = {
    "rank": (lambda x: fn.broadcast(x, 9), ValueError, "src: rank 9"),
    "bare rank": (
        lambda x: plugrad.ops.distributed.broadcast(x, -1),
        ValueError,
        r"src must be in the interval \[0, 2\].*-1",
    ),
    "bare reduction": (
        lambda x: plugrad.ops.distributed.all_reduce(x, "mean"),
        ValueError,
        "'mean'",
    ),
    "group": (lambda x: plugrad.ops.distributed.all_reduce(x, "sum", "g"), ValueError, "'g'"),
    "dimension": (lambda x: fn.all_gather(x, 2), IndexError, "out of range"),
    "division": (lambda x: fn.reduce_scatter(x, 1), ValueError, "dimension 1.*3 ranks.*got 4"),
    "splits": (lambda x: fn.all_to_all_single(x, None, [1, 1]), ValueError, "input_split_sizes.*3"),
    "parts": (
        lambda x: fn.scatter(x, dist.get_rank(), 0, (3, 4)),
        ValueError,
        r"\[9, 4\].*got \[6, 4\]",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told(case: str) -> None:
    function, error, message = WRONG[case]

    def program(x: Any) -> None:
        with pytest.raises(error, match=message):
            function(x)

    on_all(program)


def test_what_has_no_gradient_says_so() -> None:
    def program(x: Any) -> None:
        x = x.clone().requires_grad_()
        y = fn.reduce_scatter(x, 0, "max")
        with pytest.raises(NotImplementedError, match=r"reduce_scatter\(\): 'max' has no gradient"):
            y.sum().backward()

    on_all(program)
