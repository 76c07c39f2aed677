"""`python -m tests.op_db [NAME...]`: what differs from PyTorch's table of operators.

Without names, all entries. NAME may end with `*`.
"""

from __future__ import annotations

from tests.op_db.check import error_findings, findings
from tests.op_db.entries import DTYPES, entries
from tests.torch_tables.command import parser, report

if __name__ == "__main__":
    given = parser("op_db", __doc__, DTYPES).parse_args()
    report(
        given,
        entries(),
        lambda entry, dtype: findings(entry, dtype, given.samples) if dtype in entry.dtypes else (),
        error_findings,
    )
