"""Which releases are compatible: the range of plugrad versions that a plugin's distribution
requires.

`tools/release.py` and `plugrad new` write ranges that follow the rule of `fitting_range`. pip
respects the ranges; `misfit` finds installations that bypass it, as by ``pip install --no-deps``.
This module imports nothing from plugrad, since tools load it before plugrad is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

CORE: Final = "plugrad"

# As distributions write the name; "plugrad-cpu" is another one.
_REQUIRES_CORE = re.compile(rf"{CORE}(?:\[[^]]*\])?\s*(?![\w.\-\[])(.*)", re.IGNORECASE)


def fitting_range(version: str) -> str:
    """The releases of plugrad that fit what was made for this one, in pip's words.

    Before 1.0 a minor version may break what a former one promised, from then on a major one.

    >>> from plugrad.plugins.releases import fitting_range
    >>> fitting_range("0.2.3"), fitting_range("1.4.0")
    ('>=0.2,<0.3', '>=1.4,<2')

    A pre-release comes before the release, so it is the lower end itself:

    >>> fitting_range("0.3.0rc1")
    '>=0.3.0rc1,<0.4'
    """
    found = re.match(r"(\d+)\.(\d+)(?:\.\d+)*(.*)", version)
    if found is None:
        raise ValueError(f"{version!r} is not a version such as '0.2.0'")
    major, minor = int(found[1]), int(found[2])
    lower = version if found[3] else f"{major}.{minor}"
    return f">={lower},<{f'0.{minor + 1}' if major == 0 else major + 1}"


def misfit(requirements: Iterable[str], version: str) -> str:
    """The requirement on plugrad that this version does not meet; empty if it fits.

    `packaging`, which `plugrad[cli]` installs, reads ranges other than `fitting_range`'s. Without
    it they are assumed to fit.

    Args:
        requirements: lines of a distribution's metadata, such as ``plugrad<0.3,>=0.2``.
        version: the installed version of plugrad.

    >>> from plugrad.plugins.releases import misfit
    >>> misfit(["numpy", "plugrad[codegen]<0.2,>=0.1"], "0.2.0")
    'plugrad<0.2,>=0.1'
    """
    fits = set(fitting_range(version).split(","))
    for line in requirements:
        found = _REQUIRES_CORE.fullmatch(line.strip())
        if found is None:
            continue
        clauses = found[1].partition(";")[0]
        if {clause.strip() for clause in clauses.split(",")} == fits:
            continue
        # Takes longer to import than a plugin takes to load, so only for other ranges than ours.
        try:
            from packaging.requirements import InvalidRequirement, Requirement
        except ImportError:
            return ""
        try:
            wanted = Requirement(line)
        except InvalidRequirement:
            continue  # pip reports this during installation
        counts = wanted.marker is None or wanted.marker.evaluate({"extra": ""})
        if counts and not wanted.specifier.contains(version, prereleases=True):
            return f"{CORE}{wanted.specifier}"
    return ""
