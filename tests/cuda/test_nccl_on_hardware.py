"""NCCL itself, on GPUs: with one, a group of one rank; with two, two processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cupy
import pytest

import plugrad
from plugrad import distributed as dist
from tests.cuda.test_on_hardware import _gpus
from tests.distributed.under_mpi import needs_mpi, run

pytestmark = [
    pytest.mark.skipif(_gpus() == 0, reason="CUDA finds no GPU"),
    pytest.mark.skipif(not dist.is_nccl_available(), reason="CuPy does not find NCCL"),
]

OPS = ["SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"]


@pytest.fixture
def carrier() -> Iterator[Any]:
    """The carrier of a group of one rank."""
    dist.init_process_group("nccl", rank=0, world_size=1, device_id="cuda:0")
    group = dist.group.WORLD
    assert group is not None
    yield group.carrier("cuda")
    dist.destroy_process_group()


def done(request: Any) -> None:
    if request is not None:
        request.follow()


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64", "int16", "int64", "bool"])
def test_collectives_of_one_rank_keep_what_it_has(carrier: Any, dtype: str) -> None:
    given = cupy.arange(1000).astype(dtype)
    ops = OPS if dtype in ("int16", "int64", "bool") else OPS[:1]
    for name in ops:
        for call in (carrier.all_reduce, carrier.reduce_scatter):
            out = cupy.zeros_like(given)
            done(call(out, given, dist.ReduceOp[name]))
            assert (out == given).all(), name
    for call in (carrier.all_gather, lambda o, x: carrier.all_to_all(o, x, None, None)):
        out = cupy.zeros_like(given)
        done(call(out, given))
        assert (out == given).all()
    done(carrier.broadcast(given, 0))


def test_work_follows_the_kernels_before_it_and_comes_before_those_after_it(carrier: Any) -> None:
    x = cupy.zeros(1 << 24, "float32")
    out = cupy.empty_like(x)
    for step in range(1, 20):
        x += 1
        done(carrier.all_gather(out, x))
        out *= 2
        assert float(out.min()) == float(out.max()) == 2 * step


def test_messages_to_itself(carrier: Any) -> None:
    x, got = plugrad.arange(5, device="cuda"), plugrad.zeros(5, dtype=plugrad.int64, device="cuda")
    dist.send(x, 0)
    dist.recv(got, 0)
    assert got.tolist() == [0, 1, 2, 3, 4]


@needs_mpi
@pytest.mark.skipif(_gpus() < 2, reason="two GPUs are needed")
def test_every_collective_between_two_gpus(tmp_path: Path) -> None:
    program = Path(__file__).with_name("nccl_program.py")
    outcome = run(program, 2, folder=tmp_path, variables={"PLUGRAD_DISABLE": ""})
    assert outcome.code == 0, outcome.err
    for rank in range(2):
        for name, (found, expected) in outcome.value(rank).items():
            assert found == json.loads(json.dumps(expected)), name
