"""Runs a program as Python itself would, but on plugrad: `python -m plugrad.as_torch`."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from typing import Final

from plugrad.random import use_host_numbers
from plugrad_as_torch.finder import install

AS_MODULE: Final = "python -m plugrad.as_torch"
USAGE: Final = """\
usage: {command} [--host-numbers] SCRIPT [ARGUMENT...]
       {command} [--host-numbers] -m MODULE [ARGUMENT...]

Runs a program that was written for PyTorch on plugrad: in its process,
torch means plugrad.

--host-numbers  The CPU draws the random numbers of all devices, so a seed
                gives PyTorch's."""


def run(words: Sequence[str], command: str = AS_MODULE) -> None:
    """Run a script or, after `-m`, a module; `sys.argv` and `sys.path` are what they would be.

    `--host-numbers` before it has the CPU draw all random numbers: see
    `plugrad.random.use_host_numbers`. Messages call the program that reads `words` `command`.

    Raises:
        SystemExit: there is no script, or the program raises it.
    """
    host_numbers = words[:1] == ["--host-numbers"]
    words = words[host_numbers:]
    is_module = bool(words) and words[0] == "-m"
    program = list(words[is_module:])
    if not program or (program[0].startswith("-") and not is_module):
        raise SystemExit(USAGE.format(command=command))
    install()
    if host_numbers:
        use_host_numbers()
    sys.argv[:] = program
    if is_module:
        _search_first(os.getcwd())
        runpy.run_module(program[0], run_name="__main__", alter_sys=True)
        return
    script = program[0]
    if not os.path.exists(script):
        raise SystemExit(f"{command}: can't open file {os.path.abspath(script)!r}")
    _search_first(os.path.dirname(os.path.abspath(script)))
    runpy.run_path(script, run_name="__main__")


def _search_first(folder: str) -> None:
    """Put the program's folder first on `sys.path`, as Python does for a script."""
    if not sys.flags.safe_path:
        sys.path[0] = folder


def main() -> None:
    """Run the program that the command line names."""
    words = sys.argv[1:]
    if words and words[0] in ("-h", "--help"):
        print(USAGE.format(command=AS_MODULE))
        return
    run(words)
