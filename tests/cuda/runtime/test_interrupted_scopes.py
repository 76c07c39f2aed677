"""An interrupt between any two bytecodes leaves no stream, GPU or capture behind."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad
from plugrad_cuda import memory
from plugrad_cuda.generator import default_generator
from tests.core.dispatch.test_scope import interrupted
from tests.cuda.runtime.fake_cupy import FakeCupy

BLOCKS = (
    "with plugrad.cuda.device(1): pass",
    "with plugrad.cuda.stream(side): pass",
    "with plugrad.cuda.stream(side), plugrad.cuda.stream(None): pass",
    "with plugrad.cuda.graph(plugrad.cuda.CUDAGraph(), stream=side): pass",
    "memory.lent.collect()",
)


def situation(fake: FakeCupy) -> list[Any]:
    streams = [plugrad.cuda.current_stream(index).cuda_stream for index in range(2)]
    return [
        plugrad.get_default_device(),
        plugrad.cuda.current_device(),
        streams,
        list(fake.capturing),
        fake.allocator,
        set(memory.lent.capturing),
        memory.lent._lock.locked(),
        default_generator(1).later,
    ]


@pytest.mark.parametrize("block", BLOCKS)
def test_an_interrupt_at_any_bytecode_leaves_nothing(cuda: FakeCupy, block: str) -> None:
    names = {"plugrad": plugrad, "memory": memory, "side": plugrad.cuda.Stream(1)}
    program = compile(f"def run():\n    {block}\nrun()", "<program>", "exec")
    exec(program, dict(names))
    before = situation(cuda)
    event = 1
    while interrupted(program, event, names):
        assert situation(cuda) == before, f"at bytecode {event}"
        event += 1 + event // 200
    assert event > 5
