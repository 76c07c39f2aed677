"""Fully sharded training on JAX's arrays, which cannot be written to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("plugrad_distributed", reason="plugrad-distributed is not installed")

import plugrad
from plugrad import distributed as dist
from tests.distributed.sharded_training import batch, sharded
from tests.distributed.training import agree, loss_of, mlp, part


def trained(place: str) -> list[Any]:
    """By rank, all parameters after some steps."""

    def program() -> list[Any]:
        net = sharded(mlp().float().to(place))
        optimizer = plugrad.optim.Adam(net.parameters(), lr=0.05)
        for step in range(3):
            optimizer.zero_grad()
            x, y = (part(each).float().to(place) for each in batch(step))
            loss_of(net(x), y).backward()
            optimizer.step()
        wholes = [each.detach().full_tensor() for each in net.parameters()]
        assert {each.device.type for each in wholes} == {place}
        return [np.asarray(each.cpu().array) for each in wholes]

    return dist.run_ranks(program, 2)


def test_training_is_that_of_the_host() -> None:
    for found, expected in zip(trained("jax"), trained("cpu"), strict=True):
        agree(found, expected, 1e-5)
