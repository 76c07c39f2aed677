"""The name under which plugrad's objects print: `plugrad.float32`, or `torch.float32` in a process
where plugrad stands for PyTorch."""

from __future__ import annotations

from typing import Final, final


@final
class _Printed:
    def __init__(self) -> None:
        self.name = "plugrad"


_printed: Final = _Printed()


def printed_name() -> str:
    """The name that dtypes, sizes, memory formats and types of tensors print before their own."""
    return _printed.name


def set_printed_name(name: str) -> str:
    """Change the name for the whole process; returns the one before."""
    before = _printed.name
    _printed.name = name
    return before
