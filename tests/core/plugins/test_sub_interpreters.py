"""plugrad in a sub-interpreter: refused in one sentence, and the main interpreter takes no harm."""

from __future__ import annotations

import subprocess
import sys

import pytest

INNER = """
import sys
try:
    import plugrad
except ImportError as error:
    print("refused:", error)
print("numpy" in sys.modules)
"""

PROGRAM = """
import importlib

try:
    interpreters = importlib.import_module("_interpreters")  # Python 3.13
except ImportError:
    interpreters = importlib.import_module("_xxsubinterpreters")

if {first}:
    import plugrad
other = interpreters.create()
interpreters.run_string(other, {inner!r})
interpreters.destroy(other)

import plugrad
x = plugrad.ones(2, requires_grad=True)
(x * x).sum().backward()
print(x.grad.tolist())
"""


@pytest.mark.parametrize("first", [True, False], ids=["after the main one", "before it"])
def test_a_sub_interpreter_is_refused_and_harms_nobody(first: bool) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(first=first, inner=INNER)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert answer.stderr == ""
    assert answer.stdout.splitlines() == [
        "refused: plugrad cannot be imported in a sub-interpreter, since NumPy and the compiled "
        "core exist once per process: use threads, which plugrad supports, or processes",
        "False",
        "[2.0, 2.0]",
    ]
