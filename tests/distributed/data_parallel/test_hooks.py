"""Communication hooks, against what DistributedDataParallel does without one."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import numpy as np
import pytest

import plugrad
import plugrad.distributed as dist
import plugrad.distributed.algorithms.ddp_comm_hooks.default_hooks as default
from plugrad import nn
from plugrad.distributed.algorithms import ddp_comm_hooks
from plugrad.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powerSGD
from plugrad.distributed.algorithms.ddp_comm_hooks.debugging_hooks import noop_hook
from plugrad.futures import Future
from plugrad.nn.parallel import DistributedDataParallel
from tests.distributed.training import agree, filled, loss_of, mlp, numbers, part, values

TINY = 300 / (1 << 20)


def gradients(
    hook: Any, state: Any = lambda: None, passes: int = 1, ranks: int = 2, **options: Any
) -> list[Any]:
    """By rank, the gradients of the last of several passes."""

    def program() -> Any:
        net = DistributedDataParallel(mlp(), bucket_cap_mb=TINY, **options)
        if hook is not None:
            net.register_comm_hook(state(), hook)
        for _ in range(passes):
            net.zero_grad()
            loss_of(net(part(values(1, 12, 4))), part(values(2, 12, 3))).backward()
        return numbers(p.grad for p in net.parameters())

    return dist.run_ranks(program, ranks)


@pytest.mark.parametrize(
    ("hook", "tolerance"),
    [
        (default.allreduce_hook, 1e-14),
        (default.fp16_compress_hook, 2e-3),
        (default.bf16_compress_hook, 2e-2),
        (default.fp16_compress_wrapper(default.allreduce_hook), 2e-3),
        (default.bf16_compress_wrapper(default.allreduce_hook), 2e-2),
    ],
    ids=["plain", "fp16", "bf16", "fp16 wrapper", "bf16 wrapper"],
)
@pytest.mark.parametrize("as_view", [False, True])
def test_hooks_average_gradients(hook: Any, tolerance: float, as_view: bool) -> None:
    expected = gradients(None)[0]
    for found in gradients(hook, gradient_as_bucket_view=as_view):
        agree(found, expected, tolerance)
        assert found[0].dtype == np.float64


def test_compressed_gradients_have_fewer_digits() -> None:
    plain, half = gradients(None)[0], gradients(default.fp16_compress_hook)[0]
    assert any((a != b).any() for a, b in zip(plain, half, strict=True))


def test_a_hook_changes_gradients_of_one_rank_as_well() -> None:
    found = gradients(default.bf16_compress_hook, ranks=1)[0]
    plain = gradients(None, ranks=1)[0]
    assert any((a != b).any() for a, b in zip(found, plain, strict=True))


def test_a_hook_may_return_another_tensor_by_a_future_of_its_own() -> None:
    def hook(state: float, bucket: dist.GradBucket) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(bucket.buffer() * 0 + state)
        return future

    def program() -> Any:
        net = DistributedDataParallel(nn.Linear(1, 1))
        net.register_comm_hook(3.0, hook)
        net(plugrad.ones(1, 1)).sum().backward()
        return net.module.weight.grad.item()

    assert dist.run_ranks(program, 2) == [3.0, 3.0]


def test_buckets_tell_hooks_what_they_hold() -> None:
    seen = []

    def hook(_: Any, bucket: dist.GradBucket) -> Future[Any]:
        gradients = bucket.gradients()
        same = [
            p.grad is not None and plugrad.equal(p.grad, g)
            for p, g in zip(bucket.parameters(), gradients, strict=True)
        ]
        seen.append((bucket.index(), bucket.is_last(), [list(g.shape) for g in gradients], same))
        return noop_hook(None, bucket)

    def program() -> None:
        net = DistributedDataParallel(
            nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1)), bucket_cap_mb=16 / (1 << 20)
        )
        net.register_comm_hook(None, hook)
        net(plugrad.ones(1, 2)).sum().backward()

    dist.run_ranks(program, 1)
    assert seen == [
        (0, False, [[1], [1, 3]], [True, True]),
        (1, True, [[3], [3, 2]], [True, True]),
    ]


def test_the_table_registers_hooks() -> None:
    def program() -> Any:
        net = DistributedDataParallel(nn.Linear(1, 1, bias=False))
        ddp_comm_hooks.register_ddp_comm_hook(ddp_comm_hooks.DDPCommHookType.NOOP, net)
        net(plugrad.tensor([[dist.get_rank() + 1.0]])).sum().backward()
        return net.module.weight.grad.item()

    assert dist.run_ranks(program, 2) == [1.0, 2.0]
    assert {kind.name for kind in ddp_comm_hooks.DDPCommHookType} >= {
        "ALLREDUCE",
        "FP16_COMPRESS",
        "BF16_COMPRESS",
        "POWER_SGD",
        "BATCHED_POWER_SGD_RANK2",
    }


def power(rank: int, **options: Any) -> Any:
    return lambda: powerSGD.PowerSGDState(
        None,
        matrix_approximation_rank=rank,
        start_powerSGD_iter=2,
        **{"min_compression_rate": 0.01, **options},
    )


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("by_shape", [False, True])
def test_power_sgd_of_full_rank_is_exact(batched: bool, by_shape: bool) -> None:
    expected = gradients(None)[0]
    hook = powerSGD.batched_powerSGD_hook if batched else powerSGD.powerSGD_hook
    state = power(64, batch_tensors_with_same_shape=by_shape)
    for found in gradients(hook, state, passes=4):
        agree(found, expected, 1e-10)


@pytest.mark.parametrize("hook", [powerSGD.powerSGD_hook, powerSGD.batched_powerSGD_hook])
def test_power_sgd_of_rank_one_is_the_same_on_all_ranks_and_what_it_loses_comes_later(
    hook: Any,
) -> None:
    """With error feedback, the sum of the results approaches the sum of the gradients."""
    expected = gradients(None)[0]

    def program() -> Any:
        net = DistributedDataParallel(mlp())
        net.register_comm_hook(power(1)(), hook)
        sums = [0.0] * 6
        for _ in range(82):
            net.zero_grad()
            loss_of(net(part(values(1, 12, 4))), part(values(2, 12, 3))).backward()
            grads = numbers(p.grad for p in net.parameters())
            sums = [a + g for a, g in zip(sums, grads, strict=True)]
        return [each / 82 for each in sums], grads

    (first, last), (second, same) = dist.run_ranks(program, 2)
    agree(last, same, 0)
    agree(first, second, 0)
    agree(first, expected, 0.1)
    assert any(abs(a - b).max() > 1e-3 for a, b in zip(last, expected, strict=True))


def test_power_sgd_trains() -> None:
    def program() -> Any:
        net = DistributedDataParallel(mlp())
        net.register_comm_hook(power(1)(), powerSGD.powerSGD_hook)
        optimizer = plugrad.optim.SGD(net.parameters(), lr=0.1)
        losses = []
        for _ in range(60):
            optimizer.zero_grad()
            loss = loss_of(net(part(values(1, 12, 4))), part(values(2, 12, 3)))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses[0], losses[-1]

    for before, after in dist.run_ranks(program, 2):
        assert after < 0.6 * before


def test_power_sgd_compresses_what_is_worth_it() -> None:
    def program() -> Any:
        net = DistributedDataParallel(filled(nn.Linear(30, 20)))
        state = power(1, min_compression_rate=2)()
        net.register_comm_hook(state, powerSGD.powerSGD_hook)
        for _ in range(3):
            net(values(1, 2, 30)).sum().backward()
        return state.compression_stats()[1:], list(state.error_dict[0].shape)

    # The weight becomes 30 + 20 numbers, the bias stays.
    assert dist.run_ranks(program, 2) == [((620, 70), [620])] * 2


def test_the_state_of_power_sgd_is_copied_without_its_group() -> None:
    def program() -> Any:
        state = powerSGD.PowerSGDState(dist.new_group([0, 1]), 3)
        other = pickle.loads(pickle.dumps(state))
        return other.process_group is dist.group.WORLD, other.matrix_approximation_rank

    assert dist.run_ranks(program, 2) == [(True, 3)] * 2


def test_wrong_hooks_raise() -> None:
    def wrong(state: Any, bucket: int) -> Any: ...

    wrong.__annotations__["bucket"] = int

    def program() -> None:
        net = DistributedDataParallel(nn.Linear(1, 1))
        with pytest.raises(TypeError, match="must be callable"):
            net.register_comm_hook(None, 1)
        with pytest.raises(ValueError, match=r"bucket annotation should be dist\.GradBucket"):
            net.register_comm_hook(None, wrong)
        net.register_comm_hook(None, lambda state, bucket: bucket.buffer())
        with pytest.raises(RuntimeError, match="can only be called once"):
            net.register_comm_hook(None, noop_hook)
        with pytest.raises(TypeError, match=r"must return a Future of a tensor.*got Tensor"):
            net(plugrad.ones(1, 1)).sum().backward()
        with pytest.raises(ValueError, match="Expect `start_powerSGD_iter` > 1"):
            powerSGD.PowerSGDState(None, start_powerSGD_iter=1)

    dist.run_ranks(program, 2)


def test_futures_keep_errors_and_values() -> None:
    future: Future[int] = Future()
    after = future.then(lambda done: 1 // done.value())
    assert not after.done()
    with pytest.raises(RuntimeError, match="the value is not set yet"):
        future.value()
    future.set_result(0)
    assert after.done()
    with pytest.raises(ZeroDivisionError):
        after.wait()
    with pytest.raises(RuntimeError, match="only be marked completed once"):
        future.set_result(1)
    assert plugrad.futures.wait_all([Future.found_by(lambda: 1)]) == [1]


def test_another_thread_may_set_a_future() -> None:
    future: Future[int] = Future()
    chained = future.then(lambda done: done.value() + 1).then(lambda done: done.value() * 10)
    setter = threading.Thread(target=future.set_result, args=(1,))
    setter.start()
    assert chained.wait() == 20
    setter.join()
