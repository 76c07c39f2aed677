"""Recorder: records the run of a block.

The core's `Journal` writes the events. This module adds the names of leaves, the program's lines,
modules and optimizers. `assembly.py` connects them at the end.
"""

from __future__ import annotations

import threading
from typing import Any

from plugrad.plugins.watching import Book, Journal, hears, watching
from plugrad_viewer.recording.names import Names
from plugrad_viewer.recording.sources import is_library


class Recorder:
    """Writes into a book.

    Args:
        limit: after so many events, it listens no longer.

    Attributes:
        book: what journals have written, with notes: ("enter", number of a module) as its forward
            begins, ("leave",) as it ends, ("optimizer", name) before a step.
    """

    def __init__(self, limit: int) -> None:
        self.names = Names()
        self.book = Book(limit, self.names.tensors, self.names.find, is_library)
        self._modules: dict[int, list[int]] = {}

    @property
    def full(self) -> bool:
        """Whether it listens no longer."""
        return self.book.closed

    def listening(self) -> watching:
        """A context manager: records this thread, and threads that begin within the block."""
        return watching(Journal(self.book), started=Journal(self.book))

    def stop(self) -> None:
        """Stop recording, and release everything that belongs to the program."""
        self.book.close()
        self.names.forget()

    def enter_module(self, module: Any) -> None:
        """A module's forward begins."""
        if hears(self.book):
            modules = self._modules.setdefault(threading.get_ident(), [-1])
            modules.append(self.names.index(module, modules[-1]))
            self.book.note(("enter", modules[-1]))

    def leave_module(self, module: Any) -> None:
        """It ends."""
        modules = self._modules.get(threading.get_ident())
        if modules is not None and len(modules) > 1:
            modules.pop()
            self.book.note(("leave",))

    def step_optimizer(self, optimizer: Any) -> None:
        """An optimizer's step begins."""
        if hears(self.book):
            self.book.note(("optimizer", type(optimizer).__name__))
