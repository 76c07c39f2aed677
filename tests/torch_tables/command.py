"""The commands `python -m tests.TABLE [NAME...]`, which print what differs."""

from __future__ import annotations

import argparse
import fnmatch
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from tests.torch_tables.findings import Finding


def parser(table: str, doc: str, dtypes: Iterable[str]) -> argparse.ArgumentParser:
    """What every such command takes."""
    made = argparse.ArgumentParser(prog=f"python -m tests.{table}", description=doc)
    made.add_argument("names", nargs="*", default=["*"], metavar="NAME")
    made.add_argument("--dtypes", default=",".join(dtypes))
    made.add_argument("--samples", type=int, default=1_000_000, help="of each entry and dtype")
    made.add_argument("--show", type=int, default=3, help="findings of each entry and kind")
    return made


def report(
    given: argparse.Namespace,
    entries: Mapping[str, Any],
    findings: Callable[[Any, torch.dtype], Iterable[Finding]],
    errors: Callable[[Any], Iterable[Finding]],
) -> None:
    """Print the findings of the entries that the command line names, and a line for each entry.

    Args:
        findings: what differs for an entry and a dtype.
        errors: what differs where an entry's inputs have to fail.
    """
    dtypes = [getattr(torch, name) for name in given.dtypes.split(",")]
    right = wrong = 0
    for name, entry in entries.items():
        if not any(fnmatch.fnmatch(name, pattern) for pattern in given.names):
            continue
        found = [
            (str(dtype).partition(".")[2], finding)
            for dtype in dtypes
            for finding in findings(entry, dtype)
        ]
        found += [("", finding) for finding in errors(entry)]
        counts: dict[str, int] = {}
        for dtype, finding in found:
            counts[finding.kind] = counts.get(finding.kind, 0) + 1
            if counts[finding.kind] <= given.show:
                print(f"    {dtype} {finding}"[:300])
        right, wrong = (right, wrong + 1) if found else (right + 1, wrong)
        print(f"{name}: {'right' if not found else counts}", flush=True)
    print(f"{right} entries right, {wrong} not")
