"""Programs as data: statements on named variables, for any library with PyTorch's names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_VARIABLE = re.compile(r"\b[vgwh]\d+\b")
_HEADER = """\
import {library} as lib
from plugrad.testing.random_programs import Stage
stage = Stage(lib)
globals().update(stage.names)
"""


@dataclass(frozen=True)
class Statement:
    """One line of a program.

    Attributes:
        text: Python source; names other than variables come from `Stage.names`.
        uses: variables it reads or writes to. The line is skipped if one of them is missing or
            None.
        defines: variables it binds.
    """

    text: str
    uses: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Program:
    """Statements in order; printed, it is Python that runs on either library.

    >>> from plugrad.testing.random_programs import Program, Statement
    >>> program = Program((Statement("v0 = leaf((2,), 'float64', 0, True)", (), ("v0",)),))
    >>> print(program.source("torch"))
    import torch as lib
    from plugrad.testing.random_programs import Stage
    stage = Stage(lib)
    globals().update(stage.names)
    v0 = leaf((2,), 'float64', 0, True)
    """

    statements: tuple[Statement, ...]

    @classmethod
    def parse(cls, text: str) -> Program:
        """The program with these lines; each is a statement.

        >>> from plugrad.testing.random_programs import Program
        >>> Program.parse("v1 = leaf((), 'float64', 0, True)").statements[0].defines
        ('v1',)
        """
        statements = []
        for line in text.strip().splitlines():
            left, equals, _ = line.partition(" = ")
            names = tuple(dict.fromkeys(_VARIABLE.findall(line)))
            defines = [name for name in names if equals and name in _VARIABLE.findall(left)]
            made = () if "[" in left or "." in left else tuple(defines)
            uses = tuple(name for name in names if name not in made)
            statements.append(Statement(line, uses, made))
        return cls(tuple(statements))

    def source(self, library: str = "plugrad") -> str:
        """The program as Python source, for `plugrad` or `torch`."""
        lines = [statement.text for statement in self.statements]
        return _HEADER.format(library=library) + "\n".join(lines)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How hypothesis prints a failing example."""
        for line in self.source().split("\n"):
            printer.break_()
            printer.text(line)

    def without(self, positions: Sequence[int]) -> Program:
        """The program without some of its statements; those that use their results do nothing."""
        return Program(tuple(s for i, s in enumerate(self.statements) if i not in positions))
