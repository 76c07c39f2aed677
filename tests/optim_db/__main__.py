"""`python -m tests.optim_db [NAME...]`: what differs from PyTorch's table of optimizers.

Without names, all entries. NAME may end with `*`.
"""

from __future__ import annotations

from tests.optim_db.check import error_findings, findings
from tests.optim_db.entries import DTYPES, entries
from tests.torch_tables.command import parser, report


def main() -> None:
    given = parser("optim_db", __doc__ or "", DTYPES).parse_args()
    report(
        given,
        entries(),
        lambda entry, dtype: findings(entry, dtype, given.samples),
        error_findings,
    )


if __name__ == "__main__":
    main()
