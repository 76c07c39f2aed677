"""`python -m tests.op_db.page`: writes counts and the list of differences into docs/op_db.md."""

from __future__ import annotations

from pathlib import Path

from torch.testing._internal.common_methods_invocations import op_db

from tests.op_db.entries import ABSENT_DTYPES, LEFT_OUT, entries
from tests.op_db.known import KNOWN

PAGE = Path(__file__).parents[2] / "docs" / "op_db.md"
START = "<!-- Below: written by `python -m tests.op_db.page`. -->\n"


def generated() -> str:
    """What the page says after `START`."""
    asked = entries()
    differing = [name for name in asked if name in KNOWN or asked[name].name in ABSENT_DTYPES]
    lines = [
        f"PyTorch 2.13 has {len(op_db)} entries, variants of an operator counted one by one. "
        f"{len(asked)} of them are tested with plugrad. {len(differing)} are known to differ in "
        "some way.",
        "",
        "## Differences",
        "",
        "| entry | what differs | why |",
        "| --- | --- | --- |",
    ]
    for name in sorted(KNOWN, key=str.lower):
        lines += [f"| `{name}` | {kind} | {why} |" for kind, why in sorted(KNOWN[name].items())]
    for name, dtypes in sorted(ABSENT_DTYPES.items()):
        lines.append(f"| `{name}` | dtypes | plugrad refuses {', '.join(dtypes)} |")
    lines += ["", "## Not tested", "", "| entry | why |", "| --- | --- |"]
    lines += [f"| `{name}` | {why} |" for name, why in sorted(LEFT_OUT.items())]
    lines.append("| names that begin with `_`, `torch.ops.` or `sparse.` | private, or sparse |")
    return "\n".join([*lines, ""])


def render() -> str:
    """The whole page."""
    return PAGE.read_text("utf-8").partition(START)[0] + START + "\n" + generated()


if __name__ == "__main__":
    PAGE.write_text(render(), "utf-8")
