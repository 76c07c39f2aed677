"""`python -m tests.op_db [NAME...]`: what differs from PyTorch's table of operators.

Without names, all entries. NAME may end with `*`.
"""

from __future__ import annotations

import argparse
import fnmatch

import torch

from tests.op_db.check import error_findings, findings
from tests.op_db.entries import DTYPES, entries


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.op_db", description=__doc__)
    parser.add_argument("names", nargs="*", default=["*"], metavar="NAME")
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    parser.add_argument("--samples", type=int, default=1_000_000, help="of each entry and dtype")
    parser.add_argument("--show", type=int, default=3, help="findings of each entry and kind")
    given = parser.parse_args()
    dtypes = [getattr(torch, name) for name in given.dtypes.split(",")]
    right = wrong = 0
    for name, entry in entries().items():
        if not any(fnmatch.fnmatch(name, pattern) for pattern in given.names):
            continue
        found = [
            (str(dtype).partition(".")[2], finding)
            for dtype in dtypes
            if dtype in entry.dtypes
            for finding in findings(entry, dtype, given.samples)
        ]
        found += [("", finding) for finding in error_findings(entry)]
        counts: dict[str, int] = {}
        for dtype, finding in found:
            counts[finding.kind] = counts.get(finding.kind, 0) + 1
            if counts[finding.kind] <= given.show:
                print(f"    {dtype} {finding}"[:300])
        right, wrong = (right, wrong + 1) if found else (right + 1, wrong)
        print(f"{name}: {'right' if not found else counts}", flush=True)
    print(f"{right} entries right, {wrong} not")


if __name__ == "__main__":
    main()
