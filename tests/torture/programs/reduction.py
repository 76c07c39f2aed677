"""Finds the smallest part of a program that still shows a fault."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from plugrad.testing.random_programs import Program, Statement

_MODE = re.compile(r"^with [^:]*: ")
_OPTION = re.compile(r", (create_graph|retain_graph|inputs)=(True|\[[^]]*\])")


def reduced(program: Program, fails: Callable[[Program], bool]) -> Program:
    """The program without whatever it fails without, statements first, then their modes."""
    size = max(1, len(program.statements) // 2)
    while True:
        position, changed = len(program.statements) - size, False
        while position > -size:
            gone = range(max(0, position), position + size)
            smaller = program.without(gone)
            if smaller.statements and fails(smaller):
                program, changed = smaller, True
            position -= size
        if size > 1:
            size //= 2
        elif not changed:
            break
    for position in range(len(program.statements)):
        for simpler in _simpler(program.statements[position]):
            candidate = Program(
                tuple(simpler if i == position else s for i, s in enumerate(program.statements))
            )
            if fails(candidate):
                program = candidate
    return program


def _simpler(statement: Statement) -> list[Statement]:
    texts = [_MODE.sub("", statement.text)]
    texts += [statement.text.replace(m.group(), "") for m in _OPTION.finditer(statement.text)]
    return [replace(statement, text=text) for text in texts if text != statement.text]
