"""`python -m tests.module_db [NAME...]`: what differs from PyTorch's table of modules.

Without names, all entries. NAME may end with `*`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import torch

from tests.module_db.entries import DTYPES, entries
from tests.torch_tables.command import parser, report
from tests.torch_tables.findings import Finding


def main() -> None:
    taken = parser("module_db", __doc__ or "", DTYPES)
    taken.add_argument("--device", default="cpu", help="where plugrad computes")
    given = taken.parse_args()
    if given.device.startswith("jax"):
        os.environ.setdefault("JAX_ENABLE_X64", "1")
    from tests.module_db.check import error_findings, findings

    def both_modes(entry: Any, dtype: torch.dtype) -> Iterator[Finding]:
        for training in (True, False):
            yield from findings(entry, dtype, training, given.samples, given.device)

    report(given, entries(), both_modes, error_findings)


if __name__ == "__main__":
    main()
