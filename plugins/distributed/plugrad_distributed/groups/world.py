"""The registry of groups: one world in a process, or one for each thread that acts as a rank."""

from __future__ import annotations

import threading

from plugrad_distributed.groups.names import NAMED, named
from plugrad_distributed.groups.process_group import ProcessGroup

__all__ = ["PROCESS", "WORLDS", "World", "current_world", "group_named", "play"]


class World:
    """The groups of one rank.

    Attributes:
        default: the group of all ranks, or None before `initPROCESS_group`.
        groups: all groups with this rank, by name.
        made: how many groups were requested; all ranks count the same, so names agree.
        suffix: the end of groups' names, because ranks that are threads share one table.
    """

    def __init__(self, suffix: str = "") -> None:
        self.default: ProcessGroup | None = None
        self.groups: dict[str, ProcessGroup] = {}
        self.made = 0
        self.suffix = suffix

    def new_name(self, wanted: str = "") -> str:
        """A name for another group."""
        name = wanted or str(self.made)
        self.made += 1
        return name + self.suffix

    def add(self, group: ProcessGroup) -> None:
        self.groups[group.name] = group
        NAMED[group.name] = group

    def remove(self, group: ProcessGroup) -> None:
        """Close and remove a group."""
        self.groups.pop(group.name, None)
        NAMED.pop(group.name, None)
        if self.default is group:
            self.default = None
        group.close()

    def clear(self) -> None:
        """Close all groups, the last one first."""
        for group in reversed(list(self.groups.values())):
            self.remove(group)


PROCESS = World()
# Of the threads that act as ranks. To look into an empty dictionary is faster than a
# `threading.local`.
WORLDS: dict[int, World] = {}


def current_world() -> World:
    """The world of the calling thread's rank."""
    return WORLDS.get(threading.get_ident(), PROCESS) if WORLDS else PROCESS


def play(world: World | None) -> None:
    """Make the calling thread a rank of this world; None ends that."""
    if world is None:
        WORLDS.pop(threading.get_ident(), None)
    else:
        WORLDS[threading.get_ident()] = world


def group_named(name: str) -> ProcessGroup:
    """The group of a name; the empty name is the default group's.

    Raises:
        ValueError: there is none, or the default group does not exist yet.
    """
    if not name:
        return default_group()
    return named(name)


def default_group() -> ProcessGroup:
    """The group of all ranks.

    Raises:
        ValueError: `initPROCESS_group` was not called.
    """
    found = current_world().default
    if found is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "initPROCESS_group."
        )
    return found
