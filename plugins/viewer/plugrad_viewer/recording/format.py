"""The recording as data: the content of `Recording.data`, which the page reads. It fits JSON.

Times are microseconds since the recording began, rounded to hundredths. Entries refer to other
entries by their index in that list; -1 stands for none.
"""

from __future__ import annotations

import datetime
import platform
from typing import Any, TypedDict

import plugrad

VERSION = 1
# Each kind of event, and its fields besides `t`, `th` and `k`.
KINDS: dict[str, tuple[str, ...]] = {
    "call": ("c",),
    "step": ("c", "s"),
    "end": ("c",),
    "node": ("n",),
    "save": ("n", "bytes"),
    "backward": ("roots", "b"),
    "dependencies": ("counts",),
    "ready": ("n", "q"),
    "pop": ("n", "q"),
    "capture": ("n", "i", "bytes"),
    "run": ("n",),
    "ran": ("n",),
    "buffer": ("n", "i", "bytes", "sum"),
    "count": ("n", "left"),
    "hook": ("n", "what", "name"),
    "free": ("n", "bytes"),
    "grad": ("n", "label", "bytes"),
    "backward_end": ("b",),
    "memory": ("device", "bytes"),
    "optimizer": ("name",),
}


class About(TypedDict):
    """About the whole recording; `truncated` is the reason why it ends early, or empty."""

    title: str
    plugrad: str
    python: str
    when: str
    truncated: str | None


class Source(TypedDict):
    """Lines of a file, from line number `first` on; some of them were run."""

    file: str
    first: int
    lines: list[str]


class Module(TypedDict):
    """A module that was called; the name starts at its outermost module."""

    name: str
    kind: str
    parent: int


class Thread(TypedDict):
    """A thread that did something."""

    name: str


class Value(TypedDict):
    """An argument or result of an operator; the name is a parameter's, or empty."""

    name: str
    shape: list[int]
    dtype: str
    device: str


class Step(TypedDict):
    """A dispatch key of a call, with the kernel that ran for it.

    `keyset` is one of the recording's: the key is the highest in it that has a kernel.
    """

    key: str
    keyset: int
    kernel: str
    start: float
    end: float
    depth: int


class Call(TypedDict):
    """An operator that was called; `source` is a source and a line number of its file.

    `raised`: it ended with an exception.
    """

    op: str
    source: list[int] | None
    module: int
    thread: int
    start: float
    end: float
    parent: int
    inputs: list[Value]
    outputs: list[Value]
    steps: list[Step]
    node: int
    raised: bool


class Saved(TypedDict):
    """A tensor that a node saved; without a dtype, it is the packed value of a hook.

    `version`: how often it had been changed in place when it was saved.
    """

    name: str
    shape: list[int]
    dtype: str
    bytes: int
    version: int


class Node(TypedDict):
    """A node of the graph; `edges` are pairs of a node and the number of its input.

    `sequence` is its sequence number; -1 is the highest one, of AccumulateGrad, or marks a node
    without one.
    """

    name: str
    call: int
    module: int
    kind: str
    label: str
    shape: list[int]
    edges: list[list[int]]
    saved: list[Saved]
    sequence: int
    x: float
    y: float


class Data(TypedDict):
    """A recording; a key set is the names of its keys, the highest first."""

    version: int
    about: About
    sources: list[Source]
    modules: list[Module]
    threads: list[Thread]
    keysets: list[list[str]]
    calls: list[Call]
    nodes: list[Node]
    events: list[dict[str, Any]]


def about_now(title: str) -> About:
    """Of something that begins now."""
    return {
        "title": title,
        "plugrad": plugrad.__version__,
        "python": platform.python_version(),
        "when": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "truncated": None,
    }


def empty(about: About) -> Data:
    """An empty recording."""
    return {
        "version": VERSION,
        "about": about,
        "sources": [],
        "modules": [],
        "threads": [],
        "keysets": [],
        "calls": [],
        "nodes": [],
        "events": [],
    }
