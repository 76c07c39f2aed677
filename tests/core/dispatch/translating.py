"""The C that the installed mypyc writes, for the tests of what is changed in it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def translate(folder: Path, modules: Mapping[str, str]) -> None:
    """Write the files of modules into a folder, and their C into its folder `build`."""
    from mypyc.build import mypycify

    for name, text in modules.items():
        (folder / name).write_text(text)
    before = Path.cwd()
    os.chdir(folder)
    try:
        mypycify(
            [f"--cache-dir={os.devnull}", *modules],
            multi_file=True,
            target_dir="build",
            group_name="both",
        )
    finally:
        os.chdir(before)
