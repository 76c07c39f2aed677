"""A program with a compiled step that communicates; reports its gradients, and the plain step's."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad import distributed as dist
from plugrad.distributed import functional


def step(x: Any) -> Any:
    (grad,) = plugrad.autograd.grad((functional.all_reduce(x.sin()) ** 2).sum(), x)
    return grad


if __name__ == "__main__":
    from tests.distributed.under_mpi import report

    dist.init_process_group(timeout=60)
    inputs = [(plugrad.arange(4.0) + dist.get_rank() + turn).requires_grad_() for turn in range(3)]
    compiled = plugrad.compile(step)
    found = [compiled(x).tolist() for x in inputs]
    wanted = [step(x).tolist() for x in inputs]
    report({"found": found, "wanted": wanted, "hits": compiled.cache_info().hits})
