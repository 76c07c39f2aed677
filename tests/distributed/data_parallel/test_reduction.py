"""When and what DistributedDataParallel reduces: buckets, unused parameters, wrong use."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import plugrad
import plugrad.distributed as dist
from plugrad import nn
from plugrad.nn.parallel import DistributedDataParallel
from plugrad.utils.checkpoint import checkpoint
from plugrad_distributed.data_parallel.buckets import assign_buckets
from tests.distributed.training import agree, filled, loss_of, mlp, numbers, part, values

TINY = 1 / (1 << 20)


def sized(*sizes: int, dtype: Any = plugrad.float32) -> list[Any]:
    return [nn.Parameter(plugrad.zeros(size, dtype=dtype)) for size in sizes]


def test_buckets_are_full_at_their_limits() -> None:
    found = assign_buckets(sized(1, 1, 1, 2, 3), [4, 3, 2, 1, 0], [4, 16])
    assert found == [[4], [3, 2, 1], [0]]


def test_buckets_are_of_one_dtype_and_in_the_order_of_their_last_gradients() -> None:
    parameters = [*sized(4), *sized(1, dtype=plugrad.float64), *sized(4), *sized(4)]
    found = assign_buckets(parameters, [0, 1, 2, 3], [32])
    assert found == [[1], [0, 2], [3]]


class Branches(nn.Module):
    """Parts that are used or not, as the caller says."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = (nn.Linear(4, 3) for _ in range(3))

    def forward(self, x: Any, names: str) -> Any:
        return sum(getattr(self, name)(x) for name in names)


def test_reduction_begins_before_backward_ends() -> None:
    def program() -> list[str]:
        events: list[str] = []

        def hook(_: Any, bucket: dist.GradBucket) -> Any:
            events.append(f"bucket {bucket.index()}")
            future: Any = plugrad.futures.Future()
            future.set_result(bucket.buffer())
            return future

        net = DistributedDataParallel(mlp(), bucket_cap_mb=TINY)
        net.register_comm_hook(None, hook)
        for number, layer in enumerate(net.module):
            layer.register_full_backward_hook(
                lambda module, inputs, outputs, number=number: events.append(f"layer {number}")
            )
        loss_of(net(values(1, 2, 4).requires_grad_()), values(2, 2, 3)).backward()
        return events

    for events in dist.run_ranks(program, 2):
        # Of the last layer, while backward is not at the first one yet.
        assert events.index("bucket 1") < events.index("layer 2") < events.index("layer 0")
        assert events[-1] in ("layer 0", "bucket 5")


def test_buckets_are_made_anew_in_the_order_of_arrival_on_the_first_rank() -> None:
    class Backwards(nn.Module):
        """Registered in an order that is not the one of use."""

        def __init__(self) -> None:
            super().__init__()
            self.last, self.first = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)

        def forward(self, x: Any) -> Any:
            return self.last(self.first(x))

    def program() -> Any:
        net = DistributedDataParallel(Backwards(), bucket_cap_mb=TINY, gradient_as_bucket_view=True)
        orders = []
        for _ in range(3):
            net(plugrad.ones(1, 4)).sum().backward()
            orders.append([bucket.indices for bucket in net.reducer.buckets])
        return orders

    first = [[1], [0]]
    assert dist.run_ranks(program, 2) == [[first, [[0], [1]], [[0], [1]]]] * 2


def test_gradients_that_were_views_survive_new_buckets() -> None:
    """They are accumulated to in the second pass."""
    one = mlp()
    for step in range(3):
        loss_of(one(values(step, 8, 4)), values(9, 8, 3)).backward()
    expected = numbers(p.grad for p in one.parameters())

    def program() -> Any:
        net = DistributedDataParallel(
            filled(nn.Sequential(*mlp())), bucket_cap_mb=TINY, gradient_as_bucket_view=True
        )
        net.reducer.order = list(range(6))
        net.reducer._make_buckets()
        for step in range(3):
            loss_of(net(part(values(step, 8, 4))), part(values(9, 8, 3))).backward()
        assert net.reducer.order != list(range(6))
        return numbers(p.grad for p in net.parameters())

    for found in dist.run_ranks(program, 2):
        agree(found, expected)


@pytest.mark.parametrize("as_view", [False, True])
def test_a_parameter_that_one_rank_uses_gets_its_share(as_view: bool) -> None:
    def program() -> Any:
        net = DistributedDataParallel(
            Branches(), find_unused_parameters=True, gradient_as_bucket_view=as_view
        )
        names = "ab" if dist.get_rank() == 0 else "a"
        found = []
        for _ in range(2):
            net.zero_grad()
            net(plugrad.ones(1, 4), names).sum().backward()
            grads = [getattr(net.module, name).bias.grad for name in "abc"]
            found.append([None if grad is None else grad[0].item() for grad in grads])
        return found

    assert dist.run_ranks(program, 2) == [[[1.0, 0.5, None]] * 2] * 2


def test_a_parameter_that_no_rank_uses_keeps_its_gradient() -> None:
    def program() -> Any:
        net = DistributedDataParallel(Branches(), find_unused_parameters=True)
        net.module.c.bias.grad = plugrad.full((3,), dist.get_rank() + 7.0)
        net(plugrad.ones(1, 4), "ab").sum().backward()
        return net.module.c.bias.grad[0].item()

    assert dist.run_ranks(program, 2) == [7.0, 8.0]


def test_use_within_no_sync_counts() -> None:
    def program() -> Any:
        net = DistributedDataParallel(Branches(), find_unused_parameters=True)
        with net.no_sync():
            net(plugrad.ones(1, 4), "b").sum().backward()
        net(plugrad.ones(1, 4), "a").sum().backward()
        return [getattr(net.module, name).bias.grad for name in "abc"]

    for a, b, c in dist.run_ranks(program, 2):
        assert (a[0].item(), b[0].item(), c) == (1.0, 1.0, None)


def test_a_static_graph_may_have_unused_parameters_and_repeated_checkpoints() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)

        def forward(self, x: Any) -> Any:
            for _ in range(2):
                x = checkpoint(self.used, x, use_reentrant=True)
            return x

    one = filled(Twice())
    x = values(1, 4, 4)
    one(x.clone().requires_grad_()).sum().backward()
    expected = one.used.weight.grad.numpy() / 2

    def program() -> Any:
        net = DistributedDataParallel(filled(Twice()))
        net._set_static_graph()
        found = []
        for _ in range(3):
            net.zero_grad()
            net(part(x).clone().requires_grad_()).sum().backward()
            found.append(net.module.used.weight.grad.numpy().copy())
        return found, net.module.unused.weight.grad

    for found, unused in dist.run_ranks(program, 2):
        agree(found, [expected] * 3)
        assert unused is None


def test_unused_parameters_without_the_flag_raise_and_say_how_to_mend_it() -> None:
    def program() -> None:
        net = DistributedDataParallel(Branches())
        net(plugrad.ones(1, 4), "ab").sum().backward()
        with pytest.raises(RuntimeError, match=r"c.weight, c.bias .*find_unused_parameters=True"):
            net(plugrad.ones(1, 4), "ab")

    dist.run_ranks(program, 2)


def test_a_parameter_that_runs_backward_twice_raises() -> None:
    class Reentrant(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            for _ in range(2):
                x = checkpoint(self.layer, x, use_reentrant=True)
            return x

    def program() -> None:
        net = DistributedDataParallel(Reentrant())
        with pytest.raises(RuntimeError, match=r"mark a variable ready only once.*'layer\.\w+'"):
            net(plugrad.ones(1, 4, requires_grad=True)).sum().backward()

    dist.run_ranks(program, 2)


def test_forward_without_gradients_expects_no_backward() -> None:
    def program() -> Any:
        net = DistributedDataParallel(nn.Linear(1, 1, bias=False))
        with plugrad.no_grad():
            net(plugrad.ones(1, 1))
        net.eval()
        net(plugrad.ones(1, 1))
        net.train()
        net(plugrad.tensor([[dist.get_rank() + 1.0]])).sum().backward()
        return net.module.weight.grad.item()

    assert dist.run_ranks(program, 2) == [1.5, 1.5]


def test_hooks_go_with_the_module() -> None:
    def program() -> Any:
        layer = nn.Linear(1, 1, bias=False)
        DistributedDataParallel(layer)
        gc.collect()
        net = DistributedDataParallel(layer)
        net(plugrad.tensor([[dist.get_rank() + 1.0]])).sum().backward()
        return layer.weight.grad.item(), len(layer.weight._post_accumulate_grad_hooks)

    assert dist.run_ranks(program, 2) == [(1.5, 1)] * 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda rank: nn.Linear(2, 3 + rank), r"'weight' of shape \[3, 2\].* on rank 0 and"),
        (lambda rank: nn.Linear(2, 3, bias=rank == 0), "Rank 0 has 2 params, while rank 1 has"),
        (
            lambda rank: nn.Linear(2, 3, dtype=(plugrad.float32, plugrad.float64)[rank]),
            r"parameter 0 is 'weight' .*float32.*float64.*on rank 1",
        ),
    ],
)
def test_ranks_with_other_parameters_raise_everywhere(make: Any, message: str) -> None:
    def program() -> None:
        with pytest.raises(RuntimeError, match=message):
            DistributedDataParallel(make(dist.get_rank()))

    dist.run_ranks(program, 2)


@pytest.mark.parametrize(
    ("make", "options", "error", "message"),
    [
        (lambda: nn.ReLU(), {}, RuntimeError, "not needed when a module doesn't have any"),
        (lambda: nn.LazyLinear(1), {}, RuntimeError, "Modules with uninitialized parameters"),
        (lambda: nn.Linear(1, 1), {"device_ids": [0]}, ValueError, "but got device_ids"),
        (lambda: nn.Linear(1, 1), {"device_ids": [0, 1]}, ValueError, "a single element"),
        (lambda: nn.Linear(1, 1), {"output_device": 0}, ValueError, "output_device 0"),
        (lambda: nn.Linear(1, 1), {"mixed_precision": 1}, TypeError, "must be a _MixedPrecision"),
    ],
)
def test_wrong_arguments_raise(make: Any, options: Any, error: type, message: str) -> None:
    def program() -> None:
        with pytest.raises(error, match=message):
            DistributedDataParallel(make(), **options)

    dist.run_ranks(program, 1)


def test_without_a_group_there_is_no_data_parallel_module() -> None:
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        DistributedDataParallel(nn.Linear(1, 1))
