"""Puts the built page into wheels and sdists; bundle.py builds it."""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

# Build backends do not add the folder of setup.py.
sys.path.insert(0, str(Path(__file__).resolve().parent))

import bundle


class BuildWithPage(build_py):
    def run(self) -> None:
        bundle.build()
        # setuptools warns, at length, of a folder of data that no list of packages has.
        self.packages = [*self.packages, "plugrad_viewer._page"]
        super().run()


class SdistWithPage(sdist):
    def run(self) -> None:
        bundle.build()
        super().run()


setup(cmdclass={"build_py": BuildWithPage, "sdist": SdistWithPage})
