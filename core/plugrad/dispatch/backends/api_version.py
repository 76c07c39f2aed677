"""The version of the contract between plugrad and its plugins, and the rule of compatibility.

A plugin declares the version that it was written for; it fits if

* its major number is this plugrad's: another major number means that the contract was broken,
* its minor number is not newer: newer ones add what an older plugrad does not have.

A deprecated part of the contract still works in the minor version that deprecates it, with a
warning; from the next minor version on it raises. `deprecated` implements that rule.
"""

from __future__ import annotations

# Interpreted: it runs seldom, and warnings find their place by counting interpreted frames.
import warnings
from typing import Final

from plugrad.errors import PluginDeprecationWarning, PluginError

API_VERSION: Final = (1, 0)


def as_api_version(version: object) -> tuple[int, int]:
    """A version as ``(major, minor)``; an integer ``n`` means ``(n, 0)``.

    Raises:
        TypeError: it is neither, or a number in it is negative.

    >>> from plugrad.dispatch.backends.api_version import as_api_version
    >>> as_api_version((1, 2)), as_api_version(1)
    ((1, 2), (1, 0))
    """
    if isinstance(version, int) and not isinstance(version, bool) and version >= 0:
        return version, 0
    if isinstance(version, tuple | list) and len(version) == 2:
        major, minor = version
        if _is_number(major) and _is_number(minor):
            return int(major), int(minor)
    raise TypeError(
        "a version of the plugin contract is a tuple (major, minor) of integers, such as "
        f"{API_VERSION}, got {version!r}"
    )


def _is_number(part: object) -> bool:
    return isinstance(part, int) and not isinstance(part, bool) and part >= 0


def format_api_version(version: tuple[int, int]) -> str:
    """A version as people write it: ``1.0``."""
    return f"{version[0]}.{version[1]}"


def check_api_version(
    version: object,
    who: str,
    distribution: str = "",
    *,
    current: tuple[int, int] = API_VERSION,
) -> tuple[int, int]:
    """The version as a tuple, if plugins written for it work with this plugrad.

    Args:
        version: the plugin's declaration: ``(major, minor)``, or an integer.
        who: the subject of the error's sentence, such as ``backend 'foo'``.
        distribution: what to pip install, empty if unknown.
        current: the version to compare with.

    Raises:
        PluginError: it does not; the message says what to upgrade or downgrade.

    >>> from plugrad.dispatch.backends.api_version import check_api_version
    >>> check_api_version((1, 0), "backend 'foo'")
    (1, 0)
    """
    try:
        wanted = as_api_version(version)
    except TypeError as error:
        raise PluginError(f"{who} declares an invalid api_version: {error}") from None
    if wanted[0] == current[0] and wanted[1] <= current[1]:
        return wanted
    plugin = distribution or "the plugin"
    wanted_text = format_api_version(wanted)
    if wanted < current:
        remedy = (
            f"that is too old; upgrade {plugin}{_pip_upgrade(distribution)}, or downgrade plugrad "
            f"to a release with version {wanted[0]}.x"
        )
    else:
        remedy = (
            f"that is newer; upgrade plugrad{_pip_upgrade('plugrad')}, or downgrade {plugin} to a "
            f"release for version {format_api_version(current)}"
        )
    raise PluginError(
        f"{who} was written for version {wanted_text} of the plugin contract, and this plugrad "
        f"has version {format_api_version(current)}: {remedy}"
    )


def _pip_upgrade(distribution: str) -> str:
    return f" (pip install --upgrade {distribution})" if distribution else ""


def deprecated(
    what: str,
    since: tuple[int, int],
    instead: str,
    *,
    current: tuple[int, int] = API_VERSION,
    stacklevel: int = 2,
) -> None:
    """Say that a plugin uses what the contract is about to lose; called where it is used.

    In version `since` this warns, from the next version on it raises.

    Args:
        what: the subject of the sentence, such as ``Backend.old_name()``.
        since: the version that deprecates it.
        instead: what to do, as an imperative: ``use Backend.new_name()``.
        current: the version to compare with.
        stacklevel: as in `warnings.warn`, counted from the caller of this function.

    Raises:
        PluginError: the one version in which it warned has passed.
    """
    if current < since:
        return
    since_text = format_api_version(since)
    if current > since:
        raise PluginError(
            f"{what} was deprecated in version {since_text} of the plugin contract, and was "
            f"removed in version {format_api_version(current)}: {instead}"
        )
    warnings.warn(
        f"{what} is deprecated since version {since_text} of the plugin contract, and will be "
        f"removed in the next one: {instead}",
        PluginDeprecationWarning,
        stacklevel=stacklevel + 1,
    )
