"""Errors between processes, under the names of `torch.distributed`."""

from __future__ import annotations

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistTimeoutError"]


class DistError(RuntimeError):
    """Something went wrong between the processes of a group."""


class DistBackendError(DistError):
    """The carrier failed, or another rank did."""


class DistNetworkError(DistError):
    """The processes cannot reach one another."""


class DistTimeoutError(DistBackendError):
    """An operation did not end in time. The message names the operation and, if known, the missing
    ranks."""
