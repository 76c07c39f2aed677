"""Information about other processes from `plugrad.distributed`, if it is installed and in use."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any

__all__ = ["distributed_package", "group_of_several"]


def distributed_package() -> Any:
    """`plugrad.distributed`, or None where its package is not installed."""
    if importlib.util.find_spec("plugrad_distributed") is None:
        return None
    return importlib.import_module("plugrad_distributed.distributed")


def group_of_several(process_group: Any) -> Any:
    """A group of several processes: the given one, else the group of all; None if there is one
    process or no group."""
    # A program with a group has imported it; others should not pay for the import.
    package = sys.modules.get("plugrad_distributed.distributed")
    if package is None or not package.is_initialized():
        return None
    group = package.group.WORLD if process_group is None else process_group
    return group if package.get_world_size(group) > 1 else None
