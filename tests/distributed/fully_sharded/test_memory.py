"""fully_shard: gathered parameters are freed, and gathered ahead in the order of their use."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import plugrad
import plugrad.distributed as dist
from plugrad import nn
from plugrad.distributed.fsdp import fully_shard
from tests.distributed.sharded_training import batch, on_ranks, sharded
from tests.distributed.training import filled, loss_of, mlp, part


class Recorder:
    """Gathers and reduces as usual, notes for what, and refers weakly to what it gathered."""

    def __init__(self, name: str, events: list[str], memory: list[Any] | None = None) -> None:
        self.name = name
        self.events = events
        self.memory = [] if memory is None else memory

    def allocate(self, size: Any, *, dtype: Any, device: Any) -> Any:
        made = plugrad.empty(tuple(size), dtype=dtype, device=device)
        self.memory.append((self.name, weakref.ref(owner(made.array))))
        return made

    def __call__(self, output: Any, sent: Any, group: Any, *op: Any, async_op: bool = False) -> Any:
        self.events.append(self.name)
        collective = dist.reduce_scatter_tensor if op else dist.all_gather_into_tensor
        return collective(output, sent, *op, group=group, async_op=async_op)


def recorded(net: Any, reshard: bool | None = None) -> tuple[list[str], list[Any]]:
    """Shards a model of layers; events are `+i` for what is gathered and `-i` for gradients."""
    sharded(net, reshard_after_forward=reshard)
    events: list[str] = []
    memory: list[Any] = []
    for name, layer in net.named_children():
        if isinstance(layer, nn.Linear):
            layer.set_custom_all_gather(Recorder(f"+{name}", events, memory))
            layer.set_custom_reduce_scatter(Recorder(f"-{name}", events))
    return events, memory


def step(net: Any) -> Any:
    x, y = map(part, batch(0))
    loss = loss_of(net(x), y)
    loss.backward()
    return loss


def owner(array: Any) -> Any:
    """The array that owns the memory."""
    while array.base is not None:
        array = array.base
    return array


class Watching(nn.Linear):
    """Notes the memory of its weight in each forward."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.seen: list[Any] = []

    def forward(self, x: Any) -> Any:
        self.seen.append(weakref.ref(owner(self.weight.array)))
        return super().forward(x)


def watching() -> Any:
    layers = (Watching(4, 8), nn.Tanh(), Watching(8, 8), nn.Tanh(), Watching(8, 3))
    return filled(nn.Sequential(*layers))


def test_the_layers_are_gathered_ahead_in_the_order_of_the_last_forward() -> None:
    def program(net: Any) -> Any:
        events, _ = recorded(net)
        step(net)
        first = list(events)
        events.clear()
        step(net)
        return first, events

    first, second = on_ranks(2, mlp(), program)[0]
    backward = ["+4", "+2", "-4", "+0", "-2", "-0"]
    assert first == ["+0", "+2", "+4", *backward]
    assert second == ["+0", "+2", "+4", *backward]


def test_gathers_begin_before_the_layer_before_runs() -> None:
    def program(net: Any) -> Any:
        events, _ = recorded(net)
        for number in (0, 2, 4):
            net[number].register_forward_pre_hook(
                lambda module, args, number=number: events.append(f"forward {number}")
            )
            net[number].register_full_backward_pre_hook(
                lambda module, grads, number=number: events.append(f"backward {number}")
            )
        step(net)
        events.clear()
        step(net)
        return events

    assert on_ranks(2, mlp(), program)[0] == [
        *("+0", "+2", "forward 0", "+4", "forward 2", "forward 4"),
        *("+4", "+2", "backward 4", "-4", "+0", "backward 2", "-2", "backward 0", "-0"),
    ]


def test_what_is_gathered_ahead_can_be_chosen() -> None:
    def program(net: Any) -> Any:
        events, _ = recorded(net)
        net[0].set_modules_to_forward_prefetch([net[4], net[2]])
        net[4].set_modules_to_backward_prefetch([net[2], net[0]])
        step(net)
        return events

    assert on_ranks(2, mlp(), program)[0] == [
        *("+0", "+4", "+2"),
        *("+4", "+2", "+0", "-4", "-2", "-0"),
    ]


def test_nothing_is_gathered_again_if_parameters_are_kept() -> None:
    def program(net: Any) -> Any:
        events, _ = recorded(net, reshard=False)
        net.set_reshard_after_backward(False)
        step(net)
        step(net)
        return events

    assert on_ranks(2, mlp(), program)[0] == ["+0", "+2", "+4", *("-4", "-2", "-0") * 2]


def test_neighbours_gather_for_backward() -> None:
    def program(net: Any) -> Any:
        sharded(net, reshard_after_forward=2)
        seen: list[Any] = []

        class Noting(Recorder):
            def __call__(self, output: Any, sent: Any, group: Any, *op: Any, **options: Any) -> Any:
                seen.append((self.name, list(group.ranks), output.numel() // sent.numel()))
                return super().__call__(output, sent, group, *op, **options)

        net[2].set_custom_all_gather(Noting("+2", [], memory := []))
        with plugrad.no_grad():
            net(part(batch(0)[0]))
        assert [found() for name, found in memory] == [None] * len(memory)
        for _ in range(2):
            seen.clear()
            loss = loss_of(net(part(batch(0)[0])), part(batch(0)[1]))
            # The whole is freed after forward, what neighbours need is not part of it.
            assert [found() for name, found in memory] == [None] * len(memory)
            loss.backward()
            with plugrad.no_grad():
                net[2].weight.to_local().add_(1.0)
        return seen

    found = on_ranks(4, mlp(), program)
    everyone = ("+2", [0, 1, 2, 3], 4)
    assert found[0] == found[1] == [everyone, ("+2", [0, 1], 2)]
    assert found[2] == found[3] == [everyone, ("+2", [2, 3], 2)]


def test_without_sync_nothing_is_reduced() -> None:
    def program(net: Any) -> Any:
        events, _ = recorded(net)
        net.set_requires_gradient_sync(False)
        step(net)
        return [event for event in events if event[0] == "-"]

    assert on_ranks(2, mlp(), program)[0] == []


def test_parameters_are_freed_after_forward_and_after_backward() -> None:
    def program(net: Any) -> Any:
        layers = [net[0], net[2], net[4]]
        _, memory = recorded(net)
        x, y = map(part, batch(0))
        alive: list[int] = []

        def count(*args: Any) -> None:
            gc.collect()
            alive.append(sum(r() is not None for layer in layers for r in layer.seen))

        for layer in layers:
            layer.register_forward_hook(count)
        loss = loss_of(net(x), y)
        count()
        loss.backward()
        count()
        gc.collect()
        return alive, [name for name, array in memory if array() is not None]

    for alive, buffers in on_ranks(2, watching(), program):
        # In each layer only its own weight is gathered, afterwards none.
        assert alive == [1, 1, 1, 0, 0]
        assert buffers == []


@pytest.mark.parametrize("name", ["t", "view"])
def test_views_of_parameters_are_freed_too(name: str) -> None:
    class Views(Watching):
        def forward(self, x: Any) -> Any:
            super().forward(x)
            if name == "t":
                return x.exp() @ self.weight.t().exp() @ self.weight.view(8, 4).t().t()
            return x * self.weight.view(-1)[:4] * self.weight[1].detach()

    def program(net: Any) -> Any:
        fully_shard(net[0])
        fully_shard(net)
        out = net(part(batch(0)[0]))
        gc.collect()
        alive = net[0].seen[0]() is not None
        out.sum().backward()
        return alive

    assert on_ranks(2, filled(nn.Sequential(Views(4, 8))), program) == [False, False]


def test_the_root_keeps_its_parameters_until_backward() -> None:
    def program(net: Any) -> Any:
        fully_shard(net)
        loss = loss_of(net(part(batch(0)[0])), part(batch(0)[1]))
        gc.collect()
        kept = net[0].seen[0]() is not None
        loss.backward()
        del loss
        gc.collect()
        return kept, net[0].seen[0]() is not None

    assert on_ranks(2, watching(), program)[0] == (True, False)


def test_frozen_layers_are_freed_during_backward() -> None:
    # Without bias what is gathered is the weight itself.
    sizes = ((4, 8), (8, 8), (8, 3))
    model = filled(nn.Sequential(*(nn.Linear(*size, bias=False) for size in sizes)))

    def program(net: Any) -> Any:
        for layer in (net[1], net[2]):
            layer.requires_grad_(False)
        _, memory = recorded(net)
        there: list[str] = []

        def look(*args: Any) -> None:
            gc.collect()
            there.extend(name for name, array in memory if array() is not None)

        net[0].register_full_backward_pre_hook(look)
        step(net)
        return there

    # As the backward of the first layer begins, it is the only one.
    assert set(on_ranks(2, model, program)[0]) == {"+0"}


def test_modules_have_sharded_parameters_between_forward_and_backward() -> None:
    def program(net: Any) -> None:
        sharded(net)
        before = list(net.parameters())
        loss = loss_of(net(part(batch(0)[0])), part(batch(0)[1]))
        assert all(a is b for a, b in zip(net.parameters(), before, strict=True))
        loss.backward()
        assert all(a is b for a, b in zip(net.parameters(), before, strict=True))

    on_ranks(2, mlp(), program)
