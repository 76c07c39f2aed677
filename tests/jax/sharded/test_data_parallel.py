"""Data parallel training of models on JAX's arrays, where views do not share memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("plugrad_distributed", reason="plugrad-distributed is not installed")

import plugrad
from plugrad import distributed as dist
from plugrad import nn
from tests.distributed.training import agree, filled, loss_of, part, values


def trained(place: str, divided: bool, options: dict[str, Any]) -> list[Any]:
    """By rank, parameters and buffers after some steps."""
    from plugrad.distributed.optim import ZeroRedundancyOptimizer
    from plugrad.nn.parallel import DistributedDataParallel

    def program() -> list[Any]:
        model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.BatchNorm1d(6), nn.Linear(6, 3))
        model = nn.SyncBatchNorm.convert_sync_batchnorm(filled(model).float())
        net = DistributedDataParallel(model.to(place), bucket_cap_mb=1e-4, **options)
        if divided:
            optimizer: Any = ZeroRedundancyOptimizer(
                net.parameters(), plugrad.optim.Adam, parameters_as_bucket_view=True, lr=0.05
            )
        else:
            optimizer = plugrad.optim.Adam(net.parameters(), lr=0.05)
        for step in range(3):
            optimizer.zero_grad()
            x = part(values(100 + step, 8, 4)).float().to(place)
            y = part(values(200 + step, 8, 3)).float().to(place)
            loss_of(net(x), y).backward()
            optimizer.step()
        return [np.asarray(each.detach().cpu().array) for each in net.state_dict().values()]

    return dist.run_ranks(program, 2)


@pytest.mark.parametrize("divided", [False, True])
@pytest.mark.parametrize(
    "options", [{}, {"gradient_as_bucket_view": True}, {"static_graph": True}], ids=str
)
def test_training_is_that_of_the_host(options: dict[str, Any], divided: bool) -> None:
    for found, expected in zip(
        trained("jax", divided, options), trained("cpu", divided, options), strict=True
    ):
        agree(found, expected, 1e-5)
