"""Sizes that no memory can hold, found before anything is computed."""

from __future__ import annotations

# Interpreted: runs once for a call that makes much of little.
import os


def _limit() -> int:
    """The bytes that this process can have at most."""
    limit = 1 << 62
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limit = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        import resource
    except ImportError:  # not on Windows
        return limit
    allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
    return limit if allowed == resource.RLIM_INFINITY else min(limit, allowed)


def check_memory(nbytes: int) -> None:
    """RuntimeError in PyTorch's words if there cannot be so much memory for a result.

    >>> from plugrad.tensor.creation.allocation import check_memory
    >>> check_memory(1 << 60)
    Traceback (most recent call last):
        ...
    RuntimeError: can't allocate memory: you tried to allocate 1152921504606846976 bytes
    """
    if nbytes > _limit():
        raise_too_large(nbytes)


def raise_too_large(nbytes: int) -> None:
    raise RuntimeError(f"can't allocate memory: you tried to allocate {nbytes} bytes")
