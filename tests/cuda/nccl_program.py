"""A program for ranks with a GPU each: it reports what collectives give there and on the host."""

from __future__ import annotations

import os

import plugrad
from plugrad import distributed as dist
from tests.cuda.collectives import test_collectives as checks
from tests.distributed.under_mpi import report


def main() -> None:
    dist.init_process_group("nccl", timeout=60)
    rank = int(os.environ["LOCAL_RANK"])
    plugrad.cuda.set_device(rank)
    found = {}
    for device in (f"cuda:{rank}", "cpu"):
        cases = {
            **{f"moved {d}": checks.moved(device, d) for d in checks.DTYPES},
            **{f"reduced {d}": checks.reduced(device, d, ["sum"]) for d in checks.DTYPES},
            **{f"gradient {name}": checks.gradient(device, name) for name in checks.GRADIENTS},
            "uneven": checks.uneven(device),
            "both send first": checks.both_send_first(device),
            "objects": checks.objects(device),
        }
        for name, value in cases.items():
            found.setdefault(name, []).append(checks.plain(value))
    report(found)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
