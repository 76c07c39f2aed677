"""`python -m tests.module_db.page`: writes counts and differences into docs/module_db.md."""

from __future__ import annotations

from tests.module_db.entries import entries
from tests.module_db.known import KNOWN
from tests.torch_tables.page import DOCS, differences, rendered

PAGE = DOCS / "module_db.md"


def render() -> str:
    """The whole page."""
    lines = [
        f"PyTorch 2.13 has {len(entries())} entries, one for each module. All are tested with "
        f"plugrad. {len(KNOWN)} are known to differ in some way.",
        "",
        *differences(KNOWN),
    ]
    return rendered(PAGE, "module_db", lines)


if __name__ == "__main__":
    PAGE.write_text(render(), "utf-8")
