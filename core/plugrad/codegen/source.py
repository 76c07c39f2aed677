"""Collects lines of generated Python, with indentation and the imports they turn out to need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Source:
    """A growing Python text."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0

    def line(self, text: str = "") -> None:
        self._lines.append("    " * self._depth + text if text else "")

    def lines(self, text: str) -> None:
        for part in text.splitlines():
            self.line(part)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Lines inside are indented below `header`."""
        self.line(header)
        self._depth += 1
        yield
        self._depth -= 1

    def docstring(self, text: str) -> None:
        lines = text.strip().splitlines()
        if len(lines) == 1:
            self.line(f'"""{lines[0]}"""')
            return
        self.line(f'"""{lines[0]}')
        for part in lines[1:]:
            self.line(part.rstrip())
        self.line('"""')

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"
