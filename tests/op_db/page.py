"""`python -m tests.op_db.page`: writes counts and the list of differences into docs/op_db.md."""

from __future__ import annotations

from torch.testing._internal.common_methods_invocations import op_db

from tests.op_db.entries import ABSENT_DTYPES, LEFT_OUT, entries
from tests.op_db.known import KNOWN
from tests.torch_tables.page import DOCS, differences, rendered

PAGE = DOCS / "op_db.md"


def render() -> str:
    """The whole page."""
    asked = entries()
    differing = [name for name in asked if name in KNOWN or asked[name].name in ABSENT_DTYPES]
    lines = [
        f"PyTorch 2.13 has {len(op_db)} entries, variants of an operator counted one by one. "
        f"{len(asked)} of them are tested with plugrad. {len(differing)} are known to differ in "
        "some way.",
        "",
        *differences(KNOWN),
    ]
    for name, dtypes in sorted(ABSENT_DTYPES.items()):
        lines.append(f"| `{name}` | dtypes | plugrad refuses {', '.join(dtypes)} |")
    lines += ["", "## Not tested", "", "| entry | why |", "| --- | --- |"]
    lines += [f"| `{name}` | {why} |" for name, why in sorted(LEFT_OUT.items())]
    lines.append("| names that begin with `_`, `torch.ops.` or `sparse.` | private, or sparse |")
    return rendered(PAGE, "op_db", lines)


if __name__ == "__main__":
    PAGE.write_text(render(), "utf-8")
