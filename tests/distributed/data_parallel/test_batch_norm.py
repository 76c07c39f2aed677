"""SyncBatchNorm on several ranks is BatchNorm on the joined batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrad
import plugrad.distributed as dist
from plugrad import nn
from plugrad.nn.parallel import DistributedDataParallel
from tests.distributed.training import agree, filled, numbers, values

SHAPES = [(12, 3), (12, 3, 5), (12, 3, 2, 4), (12, 3, 2, 2, 2)]
SIZES = (4, 1, 7)
PLAIN = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}


def state(net: Any) -> list[Any]:
    return numbers(net.buffers())


def on_one(shape: tuple[int, ...], **options: Any) -> tuple[Any, ...]:
    """Result, gradients of input and parameters, and buffers, of a weighted sum."""
    net = filled(PLAIN[len(shape)](3, **options))
    x = values(1, *shape).requires_grad_()
    out = net(x)
    (out * values(2, *shape)).sum().backward()
    return (
        out.detach().numpy(),
        x.grad.numpy(),
        numbers(p.grad for p in net.parameters()),
        state(net),
    )


def on_ranks(shape: tuple[int, ...], sizes: Any, **options: Any) -> list[Any]:
    def program() -> Any:
        net = filled(nn.SyncBatchNorm(3, **options))
        rank = dist.get_rank()
        x = values(1, *shape).split(list(sizes))[rank].clone().requires_grad_()
        out = net(x)
        (out * values(2, *shape).split(list(sizes))[rank]).sum().backward()
        grads = numbers(p.grad for p in net.parameters())
        return out.detach().numpy(), x.grad.numpy(), grads, state(net)

    return dist.run_ranks(program, len(sizes))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("sizes", [SIZES, (6, 6), (0, 12)], ids=str)
def test_values_gradients_and_statistics_are_those_of_the_joined_batch(
    shape: tuple[int, ...], sizes: Any
) -> None:
    out, x_grad, grads, buffers = on_one(shape)
    found = on_ranks(shape, sizes)
    agree([np.concatenate([each[0] for each in found])], [out], 1e-11)
    agree([np.concatenate([each[1] for each in found])], [x_grad], 1e-10)
    # Each rank has its part of the parameters' gradients.
    agree([sum(parts) for parts in zip(*(each[2] for each in found), strict=True)], grads, 1e-11)
    for each in found:
        agree(each[3], buffers, 1e-11)


@pytest.mark.parametrize(
    "options",
    [
        {"affine": False},
        {"momentum": None},
        {"track_running_stats": False},
        {"bias": False, "eps": 0.1, "momentum": 0.5},
    ],
    ids=str,
)
def test_options_are_those_of_batch_norm(options: dict[str, Any]) -> None:
    out, x_grad, _, buffers = on_one((12, 3, 5), **options)
    found = on_ranks((12, 3, 5), SIZES, **options)
    agree([np.concatenate([each[0] for each in found])], [out], 1e-11)
    agree([np.concatenate([each[1] for each in found])], [x_grad], 1e-10)
    for each in found:
        agree(each[3], buffers, 1e-11)


def test_second_derivatives_are_those_of_the_joined_batch() -> None:
    def twice(net: Any, x: Any, weights: Any) -> Any:
        (first,) = plugrad.autograd.grad((net(x) ** 2 * weights).sum(), x, create_graph=True)
        (second,) = plugrad.autograd.grad((first**2).sum(), x)
        return second.numpy()

    x, weights = values(1, 12, 3), values(2, 12, 3)
    expected = twice(filled(nn.BatchNorm1d(3)), x.clone().requires_grad_(), weights)

    def program() -> Any:
        rank = dist.get_rank()
        part = x.split(list(SIZES))[rank].clone().requires_grad_()
        return twice(filled(nn.SyncBatchNorm(3)), part, weights.split(list(SIZES))[rank])

    agree([np.concatenate(dist.run_ranks(program, 3))], [expected], 1e-8)


def test_half_precision_is_normalised_in_single() -> None:
    x = values(1, 8, 3, 6).half()
    expected = nn.BatchNorm1d(3)(x.float()).detach().numpy()

    def program() -> Any:
        out = nn.SyncBatchNorm(3)(x.chunk(2)[dist.get_rank()])
        return str(out.dtype), out.detach().float().numpy()

    found = dist.run_ranks(program, 2)
    assert [dtype for dtype, _ in found] == ["plugrad.float16"] * 2
    agree([np.concatenate([each for _, each in found])], [expected], 2e-3)


def test_evaluation_needs_no_other_ranks() -> None:
    def program() -> Any:
        net = nn.SyncBatchNorm(3).eval()
        # Only this rank calls it.
        return net(plugrad.ones(2, 3)).shape if dist.get_rank() == 0 else None

    assert dist.run_ranks(program, 2) == [(2, 3), None]


def test_groups_normalise_over_their_own_ranks() -> None:
    x = values(1, 8, 3)

    def program() -> Any:
        pairs, own = dist.new_subgroups(2)
        del own
        net = filled(nn.SyncBatchNorm(3, process_group=pairs))
        return net(x.chunk(4)[dist.get_rank()]).detach().numpy()

    found = dist.run_ranks(program, 4)
    plain = [filled(nn.BatchNorm1d(3))(half).detach().numpy() for half in x.chunk(2)]
    agree([np.concatenate(found)], [np.concatenate(plain)], 1e-11)


def test_converted_models_train_as_on_one_process() -> None:
    def model() -> Any:
        return filled(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)))

    x, weights = values(1, 8, 3), values(2, 8, 2)
    one = model()
    (one(x) * weights).mean().backward()
    expected = numbers(p.grad for p in one.parameters())

    def program() -> Any:
        net = DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(model()))
        rank = dist.get_rank()
        (net(x.chunk(2)[rank]) * weights.chunk(2)[rank]).mean().backward()
        return numbers(p.grad for p in net.parameters())

    for found in dist.run_ranks(program, 2):
        agree(found, expected, 1e-10)


def test_one_value_per_channel_cannot_be_normalised() -> None:
    def program() -> None:
        with pytest.raises(ValueError, match="Expected more than 1 value per channel"):
            nn.SyncBatchNorm(3)(plugrad.ones(1 - dist.get_rank(), 3))

    dist.run_ranks(program, 2)
