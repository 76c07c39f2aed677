"""Where plugrad differs from PyTorch and is meant to; docs/reliability.md gives the reasons."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Difference:
    """Findings that are none.

    Attributes:
        op: matches the operator's whole name.
        kind: is found in the kind of difference.
        reason: a sentence.
    """

    op: str
    kind: str
    reason: str
    details: str = ""


DIFFERENCES: tuple[Difference, ...] = ()


def known(call: Any, kind: str, details: str) -> bool:
    return any(
        re.fullmatch(difference.op, call.op)
        and re.search(difference.kind, kind)
        and re.search(difference.details, details)
        for difference in DIFFERENCES
    )


@dataclass(frozen=True)
class Refusal:
    """Calls that PyTorch accepts and plugrad refuses.

    Attributes:
        path: matches the function's whole name.
        message: is found in plugrad's error.
        reason: a sentence.
    """

    path: str
    message: str
    reason: str


REFUSALS: tuple[Refusal, ...] = ()


def known_refusal(path: str, error: BaseException, expected: BaseException | None) -> bool:
    return expected is None and any(
        re.fullmatch(refusal.path, path) and re.search(refusal.message, str(error))
        for refusal in REFUSALS
    )
