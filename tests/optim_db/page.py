"""`python -m tests.optim_db.page`: writes counts and differences into docs/optim_db.md."""

from __future__ import annotations

from tests.optim_db.entries import entries
from tests.optim_db.known import KNOWN
from tests.torch_tables.page import DOCS, differences, rendered

PAGE = DOCS / "optim_db.md"


def render() -> str:
    """The whole page."""
    lines = [
        f"PyTorch 2.13 has {len(entries())} entries, one for each optimizer. All are tested with "
        f"plugrad. {len(KNOWN)} is known to differ in some way.",
        "",
        *differences(KNOWN),
    ]
    return rendered(PAGE, "optim_db", lines)


if __name__ == "__main__":
    PAGE.write_text(render(), "utf-8")
