"""`record` and `Recording`: a block that records calls and backward passes."""

from __future__ import annotations

import contextlib
import html
import json
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Final

from plugrad_viewer.drawing.modules import place_nodes
from plugrad_viewer.recording.assembly import Assembly
from plugrad_viewer.recording.format import VERSION, About, Data, about_now
from plugrad_viewer.recording.names import hook_modules
from plugrad_viewer.recording.recorder import Recorder
from plugrad_viewer.recording.sources import stretches

LIMIT: Final = 1_000_000


class Recording:
    """A recording of this thread within a `with` block; see `record`.

    Devices' threads that work for a backward pass of the block are recorded, too. It can be
    entered once.

    >>> import plugrad
    >>> x = plugrad.tensor([1.0, 2.0], requires_grad=True)
    >>> with plugrad.viewer.record(title="square") as recording:
    ...     (x * x).sum().backward()
    >>> [node["name"] for node in recording.data["nodes"]]
    ['AccumulateGrad', 'MulBackward0', 'SumBackward0']
    """

    def __init__(self, title: str | None = None, limit: int = LIMIT) -> None:
        if limit < 1:
            raise ValueError(f"limit must be at least 1, got {limit}")
        self._title = title or Path(sys.argv[0] or "python").name
        self._recorder = Recorder(limit)
        self._limit = limit
        self._stack = contextlib.ExitStack()
        self._state = "new"
        self._start = 0
        self._about: About = about_now(self._title)
        self._data: Data | None = None
        self._early = ""

    def __enter__(self) -> Recording:
        if self._state != "new":
            raise RuntimeError("a recording can be made once: call plugrad.viewer.record() again")
        self._state = "running"
        recorder = self._recorder
        self._about = about_now(self._title)
        hooks = hook_modules(recorder.enter_module, recorder.leave_module, recorder.step_optimizer)
        for handle in hooks:
            self._stack.callback(handle.remove)
        self._stack.callback(recorder.stop)
        self._start = time.perf_counter_ns()
        self._stack.enter_context(recorder.listening())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._recorder.full:
            self._early = f"The recording ends after {self._limit} events, its limit."
        elif error is not None:
            self._early = f"The block ended with {_first_line(error)}"
        self._stack.close()
        self._state = "done"

    @property
    def data(self) -> Data:
        """The recording as data that JSON can hold: `plugrad_viewer.recording.format.Data`.

        Raises:
            RuntimeError: the block has not ended.

        >>> import plugrad
        >>> x = plugrad.tensor([1.0, 2.0], requires_grad=True)
        >>> with plugrad.viewer.record() as recording:
        ...     _ = x.exp()
        >>> [call["op"] for call in recording.data["calls"]]
        ['exp']
        """
        if self._state != "done":
            raise RuntimeError("the recording is complete when its `with` block has ended")
        if self._data is None:
            self._data = self._build()
        return self._data

    def to_json(self) -> str:
        """The data as JSON text.

        >>> import json
        >>> import plugrad
        >>> with plugrad.viewer.record(title="square") as recording:
        ...     _ = plugrad.ones(2).square()
        >>> json.loads(recording.to_json())["about"]["title"]
        'square'
        """
        return json.dumps(self.data, separators=(",", ":"))

    def save(self, path: str | Path) -> Path:
        """Write the page that replays the recording, or only the data if the name ends in .json.

        The page is one file, which needs no network. Returns its path.

        Raises:
            ValueError: the name ends in neither .html nor .json.
            RuntimeError: the block has not ended.

        >>> import os, tempfile
        >>> import plugrad
        >>> with plugrad.viewer.record() as recording:
        ...     _ = plugrad.ones(2).square()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     print(recording.save(os.path.join(folder, "run.json")).name)
        run.json
        >>> recording.save("run.txt")
        Traceback (most recent call last):
            ...
        ValueError: path must end in .html or .json, got 'run.txt'
        """
        path = Path(path)
        if path.suffix == ".json":
            text = self.to_json()
        elif path.suffix in (".html", ".htm"):
            text = self.to_html()
        else:
            raise ValueError(f"path must end in .html or .json, got {str(path)!r}")
        path.write_text(text, encoding="utf-8")
        return path

    def to_html(self) -> str:
        """The page as text."""
        from plugrad_viewer.page import page

        return page(self.data)

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.to_html())}" title="{html.escape(self._title)}" '
            'style="width:100%;height:640px;border:0"></iframe>'
        )

    def __repr__(self) -> str:
        if self._state != "done":
            return f"<Recording {self._title!r}: {self._state}>"
        data = self.data
        return (
            f"<Recording {self._title!r}: {len(data['calls'])} calls, {len(data['nodes'])} nodes, "
            f"{len(data['events'])} events>"
        )

    def _build(self) -> Data:
        recorder = self._recorder
        found = Assembly(recorder.book, self._start)
        sources, parts = stretches({place for place in found.places if place})
        for call, place in zip(found.calls, found.places, strict=True):
            if place is not None:
                call["source"] = [parts[place], place[1]]
        place_nodes(found.nodes, recorder.names.modules)
        truncated = self._early or None
        if truncated is None and not found.events:
            truncated = "Nothing was recorded: the block called no operator."
        return {
            "version": VERSION,
            "about": {**self._about, "truncated": truncated},
            "sources": sources,
            "modules": recorder.names.modules,
            "threads": [{"name": name} for name in found.threads],
            "keysets": found.keysets,
            "calls": found.calls,
            "nodes": found.nodes,
            "events": found.events,
        }


def _first_line(error: BaseException) -> str:
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def record(*, title: str | None = None, limit: int = LIMIT) -> Recording:
    """A context manager that records dispatch and engine, for a page that replays them.

    It records the program's lines that call operators, each call's dispatch keys, modules, the
    growing graph with its saved tensors, backward step by step, memory and time. Recording slows a
    program down, several times if its operators are small; without a recording there is no cost.

    Args:
        title: the page's title; by default the program's name.
        limit: the largest number of events; the page says if the recording was cut off there.

    >>> import plugrad
    >>> w = plugrad.ones(3, requires_grad=True)
    >>> with plugrad.viewer.record() as recording:
    ...     loss = (w * w).sum()
    ...     loss.backward()
    >>> [call["op"] for call in recording.data["calls"][:2]]
    ['mul.Tensor', 'sum']
    >>> [node["name"] for node in recording.data["nodes"]]
    ['AccumulateGrad', 'MulBackward0', 'SumBackward0']
    """
    return Recording(title, limit)
