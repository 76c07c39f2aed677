"""Mixed precision computes in one dtype, averages in another and keeps parameters in their own. The
oracle is the same arithmetic, written out on one process."""

from __future__ import annotations

import copy
import gc
from typing import Any

import pytest

import plugrad
import plugrad.distributed as dist
from plugrad import nn
from plugrad.distributed.algorithms.ddp_comm_hooks import default_hooks
from plugrad.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook import hook_with_zero_step
from plugrad.distributed.optim import ZeroRedundancyOptimizer
from plugrad.nn.parallel.distributed import DistributedDataParallel, _MixedPrecision
from plugrad.utils.checkpoint import checkpoint
from tests.distributed.training import agree, mlp, numbers, part, values

HALF, SINGLE = plugrad.bfloat16, plugrad.float32
RANKS = 2


def small() -> Any:
    return mlp().float()


def batch(step: int) -> tuple[Any, Any]:
    return values(100 + step, 8, 4).float(), values(200 + step, 8, 3).float()


def sgd(parameters: Any) -> Any:
    return plugrad.optim.SGD(parameters, lr=0.1, momentum=0.9)


def loss_of(output: Any, target: Any) -> Any:
    return ((output - target.to(output.dtype)) ** 2).mean()


def low_gradients(model: Any, dtype: Any, x: Any, target: Any) -> list[Any]:
    """Gradients of a copy in another dtype."""
    low = copy.deepcopy(model).to(dtype)
    loss_of(low(x.to(dtype)), target).backward()
    return [parameter.grad for parameter in low.parameters()]


def averages(model: Any, compute: Any, reduce: Any, x: Any, target: Any) -> list[Any]:
    """The averages over ranks of their gradients."""
    by_rank = [
        [grad.to(reduce) / RANKS for grad in low_gradients(model, compute, *share)]
        for share in zip(x.chunk(RANKS), target.chunk(RANKS), strict=True)
    ]
    return [sum(grads[1:], grads[0]) for grads in zip(*by_rank, strict=True)]


def trained(compute: Any, reduce: Any, steps: int = 4) -> list[Any]:
    model = small()
    optimizer = sgd(model.parameters())
    for step in range(steps):
        found = averages(model, compute, reduce, *batch(step))
        for parameter, grad in zip(model.parameters(), found, strict=True):
            parameter.grad = grad.to(parameter.dtype)
        optimizer.step()
    return numbers(model.parameters())


def wrapped(model: Any, *dtypes: Any, **options: Any) -> Any:
    return DistributedDataParallel(model, mixed_precision=_MixedPrecision(*dtypes), **options)


@pytest.mark.parametrize(
    ("dtypes", "compute", "reduce"),
    [
        ((HALF,), HALF, HALF),
        ((HALF, SINGLE), HALF, SINGLE),
        ((plugrad.float16, HALF), plugrad.float16, HALF),
        ((None, HALF), SINGLE, HALF),
        ((), SINGLE, SINGLE),
    ],
)
@pytest.mark.parametrize(
    "options",
    [{}, {"gradient_as_bucket_view": True}, {"static_graph": True}, {"bucket_cap_mb": 1e-4}],
)
def test_training_is_the_same_arithmetic_on_one_process(
    dtypes: Any, compute: Any, reduce: Any, options: dict[str, Any]
) -> None:
    expected = trained(compute, reduce)
    models = [small() for _ in range(RANKS)]

    def program() -> Any:
        net = wrapped(models[dist.get_rank()], *dtypes, **options)
        optimizer = sgd(net.parameters())
        for step in range(4):
            optimizer.zero_grad()
            x, y = batch(step)
            loss_of(net(part(x)), part(y)).backward()
            assert {parameter.grad.dtype for parameter in net.parameters()} == {SINGLE}
            optimizer.step()
        return numbers(net.parameters())

    for found in dist.run_ranks(program, RANKS):
        agree(found, expected, 1e-6)


def test_only_forward_and_backward_see_the_narrow_parameters() -> None:
    seen: list[Any] = []

    class Watched(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 3)
            self.first.requires_grad_(False)

        def forward(self, x: Any, more: Any) -> Any:
            seen.append((x.dtype, more["scale"].dtype, more["index"].dtype))
            seen.append((self.first.weight.dtype, self.last.bias.dtype))
            return self.last(self.first(x)) * more["scale"]

    def program() -> Any:
        model = Watched()
        before = dict(model.named_parameters())
        net = wrapped(model, HALF)
        x = plugrad.ones(2, 4, requires_grad=True)
        more = {"scale": plugrad.ones(3), "index": plugrad.arange(3)}

        def unchanged() -> bool:
            now = dict(model.named_parameters())
            return all(now[name] is each for name, each in before.items())

        with plugrad.no_grad():
            net(x, more)
        assert unchanged()
        output = net(x, more)
        assert output.dtype == HALF
        assert unchanged()
        assert {each.dtype for each in net.state_dict().values()} == {SINGLE}
        output.sum().backward()
        assert unchanged()
        assert x.grad.dtype == SINGLE
        return None

    dist.run_ranks(program, 1)
    assert seen == [(HALF, HALF, plugrad.int64), (HALF, HALF)] * 2


def test_ignored_parameters_keep_their_dtype() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.narrow, self.wide = nn.Linear(4, 3), nn.Linear(3, 2)
            self.register_buffer("kept", plugrad.zeros(2))

        def forward(self, x: Any) -> Any:
            return self.wide(self.narrow(x).float()) + self.kept

    def program() -> Any:
        model = Mixed()
        names = ["wide.weight", "wide.bias", "kept"]
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, names)
        return wrapped(model, HALF, None, HALF)(plugrad.ones(2, 4)).dtype

    assert dist.run_ranks(program, 1) == [SINGLE]


def test_floating_point_buffers_are_cast_once() -> None:
    def program() -> Any:
        model = nn.BatchNorm1d(3)
        net = wrapped(model, None, None, plugrad.float64)
        return {name: buffer.dtype for name, buffer in net.module.named_buffers()}

    for found in dist.run_ranks(program, RANKS):
        assert found == {
            "running_mean": plugrad.float64,
            "running_var": plugrad.float64,
            "num_batches_tracked": plugrad.int64,
        }


def test_hooks_get_gradients_in_the_dtype_of_averages() -> None:
    def program() -> Any:
        seen = []

        def hook(state: Any, bucket: Any) -> Any:
            seen.append(bucket.buffer().dtype)
            return default_hooks.allreduce_hook(state, bucket)

        net = wrapped(small(), plugrad.float16, HALF)
        net.register_comm_hook(None, hook)
        loss_of(net(plugrad.ones(2, 4)), plugrad.ones(2, 3)).backward()
        return seen

    assert dist.run_ranks(program, RANKS) == [[HALF]] * RANKS


def test_gradients_are_accumulated_in_the_dtype_of_parameters() -> None:
    model = small()
    (x, y), (other_x, other_y) = batch(0), batch(1)
    sums = [
        [
            first.float() + second.float()
            for first, second in zip(
                low_gradients(model, HALF, x.chunk(RANKS)[rank], y.chunk(RANKS)[rank]),
                low_gradients(model, HALF, other_x.chunk(RANKS)[rank], other_y.chunk(RANKS)[rank]),
                strict=True,
            )
        ]
        for rank in range(RANKS)
    ]
    expected = [(a / RANKS + b / RANKS) for a, b in zip(*sums, strict=True)]
    models = [small() for _ in range(RANKS)]

    def program() -> Any:
        net = wrapped(models[dist.get_rank()], HALF, SINGLE)
        with net.no_sync():
            loss_of(net(part(x)), part(y)).backward()
        assert isinstance(net.module[0].weight, nn.Parameter)
        loss_of(net(part(other_x)), part(other_y)).backward()
        return numbers(parameter.grad for parameter in net.parameters())

    for found in dist.run_ranks(program, RANKS):
        agree(found, numbers(expected), 1e-6)


class Checkpointed(nn.Module):
    """Its parameters are used in a checkpoint that does not call their modules."""

    def __init__(self, reentrant: bool | None) -> None:
        super().__init__()
        self.inner = small()
        self.reentrant = reentrant

    def forward(self, x: Any) -> Any:
        def run(h: Any) -> Any:
            first, last = self.inner[0], self.inner[4]
            h = nn.functional.linear(h, first.weight, first.bias).tanh()
            # The same parameter twice.
            h = nn.functional.linear(h, self.inner[2].weight, self.inner[2].bias)
            h = nn.functional.linear(h, self.inner[2].weight).tanh()
            return nn.functional.linear(h, last.weight, last.bias)

        return (
            run(x) if self.reentrant is None else checkpoint(run, x, use_reentrant=self.reentrant)
        )


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_compute_the_same_again(reentrant: bool) -> None:
    def gradients(kind: bool | None) -> list[Any]:
        models = [Checkpointed(kind) for _ in range(RANKS)]

        def program() -> Any:
            net = wrapped(models[dist.get_rank()], HALF, SINGLE, static_graph=True)
            x = part(batch(0)[0]).requires_grad_()
            for _ in range(2):
                net.zero_grad()
                loss_of(net(x), part(batch(0)[1])).backward()
            return numbers(parameter.grad for parameter in net.parameters())

        return dist.run_ranks(program, RANKS)[0]

    agree(gradients(reentrant), gradients(None), 0.0)


def test_several_forwards_may_precede_a_backward() -> None:
    def program() -> Any:
        model = small()
        (x, y), (more, z) = batch(0), batch(1)
        first, second = low_gradients(model, HALF, x, y), low_gradients(model, HALF, more, z)
        net = wrapped(model, HALF)
        (loss_of(net(x), y).float() + loss_of(net(more), z).float()).backward()
        assert isinstance(model[0].weight, nn.Parameter)
        found = [parameter.grad for parameter in net.parameters()]
        sums = [a.float() + b.float() for a, b in zip(first, second, strict=True)]
        return numbers(found), numbers(sums)

    ((found, expected),) = dist.run_ranks(program, 1)
    agree(found, expected, 1e-6)


@pytest.mark.parametrize("kept", [False, True], ids=["forgotten error", "kept error"])
def test_a_failed_backward_does_not_leave_narrow_parameters_for_the_next(kept: bool) -> None:
    def program() -> Any:
        model = small()
        before = list(model.parameters())
        net = wrapped(model, HALF)
        x, y = batch(0)
        expected = low_gradients(model, HALF, x, y)
        handle = model[2].register_full_backward_hook(lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError) as error:
            loss_of(net(x), y).backward()
        handle.remove()
        if not kept:
            del error
            gc.collect()
            assert all(isinstance(each, nn.Parameter) for each in model.parameters())
        for parameter in before:
            parameter.grad = None
        loss_of(net(x), y).backward()
        assert all(isinstance(each, nn.Parameter) for each in model.parameters())
        return numbers(parameter.grad for parameter in model.parameters()), numbers(
            each.float() for each in expected
        )

    ((found, expected),) = dist.run_ranks(program, 1)
    agree(found, expected, 0.0)


def test_the_optimizer_may_step_in_backward() -> None:
    expected = trained(HALF, SINGLE, 2)
    models = [small() for _ in range(RANKS)]

    def program() -> Any:
        net = wrapped(models[dist.get_rank()], HALF, SINGLE)
        zero = ZeroRedundancyOptimizer(
            net.parameters(), plugrad.optim.SGD, overlap_with_ddp=True, lr=0.1, momentum=0.9
        )
        net.register_comm_hook(None, hook_with_zero_step(default_hooks.allreduce_hook, net, zero))
        for step in (0, 0, 0, 1):
            zero.zero_grad()
            x, y = batch(step)
            loss_of(net(part(x)), part(y)).backward()
        return numbers(net.parameters())

    for found in dist.run_ranks(program, RANKS):
        agree(found, expected, 1e-6)
