"""Data parallel training on several ranks is training on one, to rounding.

The oracle of most tests is one process's training on the whole batch.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import plugrad
import plugrad.distributed as dist
from plugrad import nn
from plugrad.nn.parallel import DistributedDataParallel
from tests.distributed.training import (
    Make,
    adam,
    agree,
    filled,
    loss_of,
    mlp,
    numbers,
    part,
    sgd,
    trained_on_one,
    trained_on_ranks,
    values,
)

TINY = 1 / (1 << 20) * 300  # MiB: buckets of about 300 bytes


@pytest.mark.parametrize("make", [sgd, adam])
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize(
    "options",
    [{}, {"bucket_cap_mb": TINY}, {"bucket_cap_mb": TINY, "gradient_as_bucket_view": True}],
    ids=["one bucket", "several buckets", "views"],
)
def test_training_on_ranks_is_training_on_one(
    make: Make, ranks: int, options: dict[str, Any]
) -> None:
    expected = trained_on_one(mlp(), make)
    for found in trained_on_ranks(mlp(), make, ranks, **options):
        agree(found, expected)


@pytest.mark.parametrize("options", [{"find_unused_parameters": True}, {"static_graph": True}])
@pytest.mark.parametrize("as_view", [False, True])
def test_options_for_unused_parameters_do_not_change_what_uses_all(
    options: dict[str, Any], as_view: bool
) -> None:
    expected = trained_on_one(mlp(), sgd)
    found = trained_on_ranks(
        mlp(), sgd, 2, bucket_cap_mb=TINY, gradient_as_bucket_view=as_view, **options
    )
    for each in found:
        agree(each, expected)


def test_ranks_begin_with_parameters_and_buffers_of_the_first() -> None:
    def program() -> Any:
        net = nn.BatchNorm1d(2)
        with plugrad.no_grad():
            net.weight.fill_(dist.get_rank() + 1.0)
            net.running_mean.fill_(dist.get_rank() + 5.0)
        DistributedDataParallel(net)
        return net.weight.tolist(), net.running_mean.tolist()

    assert dist.run_ranks(program, 3) == [([1.0, 1.0], [5.0, 5.0])] * 3


def test_without_init_sync_ranks_keep_their_own_parameters() -> None:
    def program() -> Any:
        net = nn.Linear(1, 1)
        with plugrad.no_grad():
            net.weight.fill_(float(dist.get_rank()))
        DistributedDataParallel(net, init_sync=False)
        return net.weight.item()

    assert dist.run_ranks(program, 2) == [0.0, 1.0]


@pytest.mark.parametrize("as_view", [False, True])
def test_no_sync_accumulates_what_the_next_pass_reduces(as_view: bool) -> None:
    one = mlp()
    for step in range(3):
        loss_of(one(values(step, 8, 4)), values(50 + step, 8, 3)).backward()
    expected = numbers(p.grad for p in one.parameters())
    copies = [mlp() for _ in range(2)]

    def program() -> Any:
        net = DistributedDataParallel(
            copies[dist.get_rank()], bucket_cap_mb=TINY, gradient_as_bucket_view=as_view
        )
        found = []
        for _ in range(2):
            net.zero_grad()
            with net.no_sync():
                for step in range(2):
                    x, y = part(values(step, 8, 4)), part(values(50 + step, 8, 3))
                    loss_of(net(x), y).backward()
            loss_of(net(part(values(2, 8, 4))), part(values(52, 8, 3))).backward()
            found.append(numbers(p.grad for p in net.parameters()))
        return found

    for rounds in dist.run_ranks(program, 2):
        for found in rounds:
            agree(found, expected)


def test_gradients_in_no_sync_are_the_ranks_own() -> None:
    def program() -> Any:
        net = DistributedDataParallel(nn.Linear(1, 1, bias=False))
        with net.no_sync():
            net(plugrad.tensor([[dist.get_rank() + 1.0]])).sum().backward()
        return net.module.weight.grad.item()

    assert dist.run_ranks(program, 2) == [1.0, 2.0]


@pytest.mark.parametrize("set_to_none", [True, False])
def test_gradients_may_stay_views_or_go(set_to_none: bool) -> None:
    def program() -> Any:
        net = DistributedDataParallel(nn.Linear(1, 1, bias=False), gradient_as_bucket_view=True)
        bucket = net.reducer.buckets[0].flat
        for _ in range(3):
            net.zero_grad(set_to_none=set_to_none)
            net(plugrad.tensor([[dist.get_rank() + 1.0]])).sum().backward()
        grad = net.module.weight.grad
        return grad.item(), grad.data_ptr() == bucket.data_ptr()

    assert dist.run_ranks(program, 2) == [(1.5, True)] * 2


class Shared(nn.Module):
    """One layer twice, and a weight that two names have."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = nn.Linear(4, 4)
        self.same = self.inside
        self.out = nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        return self.out(self.same(self.inside(x).tanh()))


@pytest.mark.parametrize("static", [False, True])
def test_shared_parameters_are_reduced_once(static: bool) -> None:
    expected = trained_on_one(filled(Shared()), sgd)
    for found in trained_on_ranks(filled(Shared()), sgd, 2, static_graph=static):
        agree(found, expected)


def test_frozen_parameters_take_no_part() -> None:
    def frozen() -> Any:
        model = mlp()
        model[2].weight.requires_grad_(False)
        return model

    expected = trained_on_one(frozen(), sgd)
    for found in trained_on_ranks(frozen(), sgd, 2, bucket_cap_mb=TINY):
        agree(found, expected)


class Mixed(nn.Module):
    """Parameters of two dtypes."""

    def __init__(self) -> None:
        super().__init__()
        self.wide = nn.Linear(4, 4)
        self.narrow = nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        hidden = self.wide(x).tanh()
        return self.narrow(hidden.to(self.narrow.weight.dtype)).to(x.dtype)


def test_dtypes_have_buckets_of_their_own() -> None:
    def mixed() -> Any:
        model = filled(Mixed())
        model.narrow.float()
        return model

    expected = trained_on_one(mixed(), sgd)
    for found in trained_on_ranks(mixed(), sgd, 2):
        agree(found, expected, 1e-6)

    def dtypes(net: Any) -> Any:
        return sorted(str(bucket.flat.dtype) for bucket in net.reducer.buckets)

    found = trained_on_ranks(mixed(), sgd, 2, after=dtypes)
    assert found == [["plugrad.float32", "plugrad.float64"]] * 2


class Tracked(nn.Module):
    """A buffer that forward reads and writes."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(4, 3)
        self.register_buffer("seen", plugrad.zeros(1))

    def forward(self, x: Any) -> Any:
        self.seen += x.abs().sum()
        return self.out(x)


def test_forward_begins_with_the_buffers_of_the_first_rank() -> None:
    def seen(options: dict[str, Any]) -> list[float]:
        def program() -> Any:
            net = DistributedDataParallel(filled(Tracked()), **options)
            for _ in range(2):
                net(plugrad.full((1, 4), dist.get_rank() + 1.0, dtype=plugrad.float64))
            return net.module.seen.item()

        return dist.run_ranks(program, 2)

    assert seen({}) == [8.0, 12.0]
    assert seen({"broadcast_buffers": False}) == [8.0, 16.0]
    assert seen({"forward_sync_buffers": False}) == [8.0, 16.0]


def test_batch_norm_of_each_rank_is_its_own_in_training() -> None:
    """Gradients are the averages of what ranks get with their own statistics."""

    def model() -> Any:
        return filled(nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 3)))

    x, y = values(1, 8, 4), values(2, 8, 3)
    shares = []
    for share in range(2):
        one = model()
        loss_of(one(x.chunk(2)[share]), y.chunk(2)[share]).backward()
        shares.append(numbers(p.grad for p in one.parameters()))
    expected = [(a + b) / 2 for a, b in zip(*shares, strict=True)]

    def program() -> Any:
        net = DistributedDataParallel(model())
        loss_of(net(part(x)), part(y)).backward()
        return numbers(p.grad for p in net.parameters())

    for found in dist.run_ranks(program, 2):
        agree(found, expected)


def test_a_group_of_some_ranks_averages_over_these() -> None:
    def program() -> Any:
        group = dist.new_group([0, 2])
        if dist.get_rank() == 1:
            return None
        net = DistributedDataParallel(nn.Linear(1, 1, bias=False), process_group=group)
        net(plugrad.tensor([[dist.get_rank() + 1.0]])).sum().backward()
        return net.module.weight.grad.item()

    assert dist.run_ranks(program, 3) == [2.0, None, 2.0]


def test_a_group_of_one_has_no_buckets_and_trains_as_the_module_does() -> None:
    expected = trained_on_one(mlp(), sgd)
    (found,) = trained_on_ranks(mlp(), sgd, 1)
    agree(found, expected, 0)
    assert trained_on_ranks(mlp(), sgd, 1, after=lambda net: net.reducer) == [None]


def test_names_in_the_state_dict_begin_with_module() -> None:
    def program() -> Any:
        net = DistributedDataParallel(nn.Linear(1, 1))
        return list(net.state_dict()), isinstance(net.module, nn.Linear)

    assert dist.run_ranks(program, 2) == [(["module.weight", "module.bias"], True)] * 2


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))], ids=["copy", "pickle"]
)
def test_a_copy_reduces_its_own_gradients(copied: Any) -> None:
    def program() -> Any:
        net = DistributedDataParallel(nn.Linear(1, 1, bias=False))
        other = copied(net)
        other(plugrad.tensor([[dist.get_rank() + 1.0]])).sum().backward()
        return other.module.weight.grad.item(), net.module.weight.grad

    assert dist.run_ranks(program, 2) == [(1.5, None)] * 2


def test_pickles_are_for_the_default_group() -> None:
    def program() -> Any:
        net = DistributedDataParallel(nn.Linear(1, 1), process_group=dist.new_group([0, 1]))
        with pytest.raises(RuntimeError, match="only supported when using DDP with the default"):
            pickle.dumps(net)

    dist.run_ranks(program, 2)


def test_ignored_parameters_stay_the_ranks_own() -> None:
    def program() -> Any:
        net = nn.Linear(1, 1)
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(net, ["bias"])
        ddp = DistributedDataParallel(net)
        (ddp(plugrad.ones(1, 1)) * (dist.get_rank() + 1.0)).sum().backward()
        return net.weight.grad.item(), net.bias.grad.item()

    assert dist.run_ranks(program, 2) == [(1.5, 1.0), (1.5, 2.0)]


def test_outputs_in_containers_keep_their_types() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(1, 1), nn.Linear(1, 1)

        def forward(self, x: Any) -> Any:
            return {"a": self.a(x), "rest": (self.b(x), [x], "text")}

    def program() -> Any:
        net = DistributedDataParallel(Two(), find_unused_parameters=True)
        x = plugrad.ones(1, 1)
        out = net(x)
        # `b` gets no gradient, as the output shows.
        out["a"].sum().backward()
        first, (same,), text = out["rest"]
        return (
            type(out["rest"]),
            same is x,
            text,
            first.requires_grad,
            net.module.a.weight.grad.item(),
        )

    found = dist.run_ranks(program, 2)
    assert found == [(tuple, True, "text", True, 1.0)] * 2


def test_backward_with_a_graph_of_its_own_is_reduced() -> None:
    def program() -> Any:
        net = DistributedDataParallel(nn.Linear(1, 1, bias=False))
        net(plugrad.tensor([[dist.get_rank() + 1.0]])).sum().backward(create_graph=True)
        return net.module.weight.grad.item()

    with pytest.warns(UserWarning, match=r"backward\(\) with create_graph=True"):
        assert dist.run_ranks(program, 2) == [1.5, 1.5]
