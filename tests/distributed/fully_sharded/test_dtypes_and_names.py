"""fully_shard: dtypes, what else is done to parameters, and modules as such."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

import plugrad
from plugrad import nn
from plugrad.distributed.fsdp import (
    FSDPModule,
    MixedPrecisionPolicy,
    fully_shard,
    register_fsdp_forward_method,
)
from plugrad.distributed.tensor import Shard
from tests.distributed.sharded_training import alone, batch, on_ranks, sharded, train, whole, wholes
from tests.distributed.training import agree, filled, loss_of, mlp, numbers, part, sgd, values


def test_mixed_precision_computes_in_one_dtype_and_reduces_in_another() -> None:
    seen: list[Any] = []

    class Watching(nn.Linear):
        def forward(self, x: Any) -> Any:
            seen.append((x.dtype, self.weight.dtype))
            return super().forward(x)

    model = filled(nn.Sequential(Watching(4, 8), nn.Tanh(), Watching(8, 3)))
    policy = MixedPrecisionPolicy(
        param_dtype=plugrad.float32, reduce_dtype=plugrad.float64, output_dtype=plugrad.float64
    )

    def program(net: Any) -> Any:
        sharded(net, mp_policy=policy)
        out = net(part(batch(0)[0]))
        assert out.dtype == plugrad.float64
        train(net, sgd)
        assert {p.dtype for p in net.parameters()} == {plugrad.float64}
        return wholes(net)

    expected = alone(model, sgd)
    seen.clear()
    for found in on_ranks(2, model, program):
        agree(found, expected, 1e-4)
        assert not all(np.allclose(a, b, rtol=1e-12) for a, b in zip(found, expected, strict=True))
    # The layers give float64, and cast their inputs.
    assert set(seen) == {(plugrad.float32, plugrad.float32)}


def test_inputs_are_not_cast_where_that_is_not_wanted() -> None:
    policy = MixedPrecisionPolicy(param_dtype=plugrad.float32, cast_forward_inputs=False)

    class Dtype(nn.Linear):
        def forward(self, x: Any) -> Any:
            return x.dtype, self.weight.dtype

    def program(net: Any) -> Any:
        return fully_shard(net, mp_policy=policy)(values(0, 2, 4))

    assert on_ranks(2, filled(Dtype(4, 4)), program)[0] == (plugrad.float64, plugrad.float32)


def test_half_precision_reduction_does_not_overflow() -> None:
    policy = MixedPrecisionPolicy(param_dtype=plugrad.float16)

    def program(net: Any) -> Any:
        fully_shard(net, mp_policy=policy)
        (net(plugrad.ones(1, 1)) * 40000.0).sum().backward()
        return whole(net.weight.grad)

    assert on_ranks(2, nn.Linear(1, 1, bias=False), program)[0] == 40000.0


def test_clipping_of_gradients() -> None:
    model = mlp()

    def program(net: Any) -> Any:
        sharded(net)
        x, y = map(part, batch(0))
        loss_of(net(x), y).backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        return [whole(norm)] + [whole(p.grad) for p in net.parameters()]

    one = copy.deepcopy(model)
    loss_of(one(batch(0)[0]), batch(0)[1]).backward()
    norm = nn.utils.clip_grad_norm_(one.parameters(), 0.1)
    for found in on_ranks(3, model, program):
        agree(found, [norm.numpy(), *numbers(p.grad for p in one.parameters())])


def test_other_methods_gather_as_forward_does() -> None:
    class Two(nn.Linear):
        def twice(self, x: Any) -> Any:
            return 2 * plugrad.nn.functional.linear(x, self.weight, self.bias)

    model = filled(Two(4, 3))

    def program(net: Any) -> Any:
        fully_shard(net)
        register_fsdp_forward_method(net, "twice")
        x, y = map(part, batch(0))
        loss_of(net.twice(x), y).backward()
        return [whole(p.grad) for p in net.parameters()]

    one = copy.deepcopy(model)
    loss_of(one.twice(batch(0)[0]), batch(0)[1]).backward()
    for found in on_ranks(2, model, program):
        agree(found, numbers(p.grad for p in one.parameters()))


def test_unsharded_parameters_take_gradients_outside_of_forward() -> None:
    model = filled(nn.Linear(4, 3))

    def program(net: Any) -> Any:
        fully_shard(net)
        handle = net.unshard(async_op=True)
        handle.wait()
        (net.weight**2).sum().backward()
        net.reshard()
        return whole(net.weight.grad)

    for found in on_ranks(2, model, program):
        agree([found], [2 * numbers([model.weight])[0]])


def test_ignored_parameters_stay_whole() -> None:
    def program(net: Any) -> None:
        bias = net.bias
        fully_shard(net, ignored_params={bias})
        assert net.bias is bias
        net(part(batch(0)[0])).sum().backward()
        assert bias.grad.shape == (3,)
        assert net.weight.grad.placements == (Shard(0),)

    on_ranks(2, filled(nn.Linear(4, 3)), program)


def test_hooks_of_parameters_hear_of_reduced_gradients() -> None:
    def program(net: Any) -> Any:
        fully_shard(net)
        heard: list[Any] = []
        net.weight.register_post_accumulate_grad_hook(lambda p: heard.append(whole(p.grad)))
        net(part(batch(0)[0])).sum().backward()
        return heard, whole(net.weight.grad)

    for heard, grad in on_ranks(2, filled(nn.Linear(4, 3)), program):
        agree(heard, [grad])


def test_modules_keep_their_class() -> None:
    def program(net: Any) -> None:
        assert fully_shard(net) is net
        assert isinstance(net, FSDPModule)
        assert isinstance(net, nn.Sequential)
        assert type(net).__name__ == "FSDPSequential"
        assert type(net[:2]) is nn.Sequential

    on_ranks(2, mlp(), program)
