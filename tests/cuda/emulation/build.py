"""Compiles the fused kernels for the host: one shared library for each source, kept by its hash."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

HEADER: Final = Path(__file__).with_name("cuda_on_host.h")
# Without contraction a * b + c rounds twice, as NumPy does; errors of indices do not depend on it.
# Some systems' compilers check by default that longjmp goes up the stack; threads go sideways.
FLAGS: Final = (
    *("-std=c++17", "-O1", "-fPIC", "-shared", "-ffp-contract=off", "-w"),
    "-U_FORTIFY_SOURCE",
)


def compiler() -> str | None:
    """The host's C++ compiler, if there is one."""
    return os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")


def _folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path(tempfile.gettempdir()) / f"cache-{os.getuid()}"
    return Path(base) / "plugrad-cuda-emulation"


def _program(text: str, kernels: Sequence[str]) -> str:
    """A source behind the emulation's header, and a function that launches by number."""
    cases = "\n".join(
        f"    case {number}: return emulation::launch({kernel}, count, grid, x, y, arguments);"
        for number, kernel in enumerate(kernels)
    )
    return f"""{HEADER.read_text("utf-8")}
{text}
extern "C" const char* last_message() {{ return emulation::message; }}
extern "C" int launch(int kernel, int count, int grid, int x, int y, void** arguments) {{
    switch (kernel) {{
{cases}
    }}
    return 2;
}}
"""


def build(source: str, text: str, kernels: Sequence[str]) -> ctypes.CDLL:
    """The library of a source; RuntimeError with the compiler's words if it does not compile."""
    program = _program(text, kernels)
    chosen = compiler()
    assert chosen is not None
    key = hashlib.sha256("\0".join((program, chosen, *FLAGS)).encode()).hexdigest()[:20]
    library = _folder() / f"{source}-{key}.so"
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=library.parent) as folder:
            written, made = Path(folder) / f"{source}.cpp", Path(folder) / "made.so"
            written.write_text(program, "utf-8")
            done = subprocess.run(
                [chosen, *FLAGS, str(written), "-o", str(made)], capture_output=True, text=True
            )
            if done.returncode:
                raise RuntimeError(done.stderr)
            made.replace(library)
    found = ctypes.CDLL(str(library))
    found.last_message.restype = ctypes.c_char_p
    return found
