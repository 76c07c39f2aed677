"""Scopes: every block that changes state and puts it back, however it is left.

KeyboardInterrupt, or any exception that comes from outside, is raised between two bytecodes. If
`__enter__` is a Python function, that may be after the change and before `with` knows of the block;
in `__exit__` it may be before the change is undone. Either way the state stays changed for good. So
all context managers get `__enter__` and `__exit__` from `Scope`. Compiled they have no bytecodes,
and nothing comes between. `interpreted_scopes.py` sees to it that the same holds where the core is
not compiled.

A subclass says how the former state is read, changed and put back. It may be interpreted: then an
interrupt that comes while `change` runs has `restore` undo what was done, and one that comes while
`restore` runs has it run again. So `restore` must be idempotent, and right after half a `change`.

A function that changes state for a while uses a scope, too. `try` and `finally` are enough only in
compiled modules, and there only if no Python code runs between the change and the `try`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from mypy_extensions import mypyc_attr

from plugrad.dispatch.local_state import LocalState, current_state


@mypyc_attr(allow_interpreted_subclasses=True)
class Scope:
    """A context manager. It may be entered within itself and on several threads.

    Subclasses need not call `__init__`.
    """

    # One for each time that it was entered: the thread's state, and what `read` returned.
    _entries: list[tuple[LocalState, Any]] | None = None

    def read(self, state: LocalState) -> Any:
        """What `restore` needs to know of the state as it is now."""
        raise NotImplementedError

    def change(self, state: LocalState) -> None:
        """Change the state of a thread, or of the process."""
        raise NotImplementedError

    def restore(self, state: LocalState, before: Any) -> None:
        """Make it what it was when `read` returned `before`."""
        raise NotImplementedError

    def value(self) -> Any:
        """What `with ... as` gets."""
        return None

    def __enter__(self) -> Any:
        state = current_state()
        before = self.read(state)
        try:
            self.change(state)
            value = self.value()
        except BaseException:
            self.restore(state, before)
            raise
        entries = self._entries
        if entries is None:
            self._entries = [(state, before)]
        else:
            entries.append((state, before))
        return value

    def __exit__(self, *exc_info: object) -> None:
        state = current_state()
        _put_back(self, state, _taken(self._entries, state))


def _taken(entries: list[tuple[LocalState, Any]] | None, state: LocalState) -> Any:
    """What `read` returned when this thread entered a scope last; it is no entry any more."""
    if not entries:
        raise RuntimeError("a context manager is left that was not entered")
    index = len(entries) - 1
    while index > 0 and entries[index][0] is not state:
        index -= 1
    return entries.pop(index)[1]


def _put_back(scope: Scope, state: LocalState, before: Any) -> None:
    """Call `restore`, twice if an interrupt stops it."""
    try:
        scope.restore(state, before)
    except BaseException as error:
        if not isinstance(error, Exception):
            scope.restore(state, before)
        raise


@final
class Within(Scope):
    """Another scope, entered for one call of a function that it decorates."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def read(self, state: LocalState) -> Any:
        return self.scope.read(state)

    def change(self, state: LocalState) -> None:
        self.scope.change(state)

    def restore(self, state: LocalState, before: Any) -> None:
        self.scope.restore(state, before)


@final
class Swapped(Scope):
    """An attribute of an object has another value in the block."""

    def __init__(self, owner: object, name: str, new: object) -> None:
        self.owner = owner
        self.name = name
        self.new = new

    def read(self, state: LocalState) -> Any:
        return getattr(self.owner, self.name)

    def change(self, state: LocalState) -> None:
        setattr(self.owner, self.name, self.new)

    def restore(self, state: LocalState, before: Any) -> None:
        setattr(self.owner, self.name, before)


@final
class Undone(Scope):
    """A function is called when the block is left; it must be idempotent.

    It undoes what happens in the block, not before.
    """

    def __init__(self, undo: Callable[[], object]) -> None:
        self.undo = undo

    def read(self, state: LocalState) -> Any:
        return None

    def change(self, state: LocalState) -> None:
        pass

    def restore(self, state: LocalState, before: Any) -> None:
        self.undo()


@final
class SwappedItems(Scope):
    """Items of dicts have other values in the block.

    Args:
        items: dict, key and new value of each.
    """

    def __init__(self, items: list[tuple[dict[Any, Any], Any, Any]]) -> None:
        self.items = items

    def read(self, state: LocalState) -> Any:
        return [table[key] for table, key, _ in self.items]

    def change(self, state: LocalState) -> None:
        for table, key, value in self.items:
            table[key] = value

    def restore(self, state: LocalState, before: Any) -> None:
        for (table, key, _), value in zip(self.items, before):  # noqa: B905  # of one length
            table[key] = value


@final
class ExcludeKeys(Scope):
    """Context manager: take the bits of a mask out of every call's key set on this thread."""

    def __init__(self, mask: int) -> None:
        self.mask = mask

    def read(self, state: LocalState) -> Any:
        return state.kept

    def change(self, state: LocalState) -> None:
        state.kept = state.kept & ~self.mask

    def restore(self, state: LocalState, before: Any) -> None:
        state.kept = before

    def value(self) -> Any:
        return self


@final
class IncludeKeys(Scope):
    """Context manager: add the bits of a mask to every call's key set on this thread."""

    def __init__(self, mask: int) -> None:
        self.mask = mask

    def read(self, state: LocalState) -> Any:
        return state.included

    def change(self, state: LocalState) -> None:
        state.included = state.included | self.mask

    def restore(self, state: LocalState, before: Any) -> None:
        state.included = before

    def value(self) -> Any:
        return self


@mypyc_attr(allow_interpreted_subclasses=True)
class GradScope(Scope):
    """Operations are recorded in the block, or they are not. Native, since it is entered often."""

    # Whether they are.
    mode: bool = True

    def read(self, state: LocalState) -> Any:
        return state.grad_enabled

    def change(self, state: LocalState) -> None:
        state.grad_enabled = self.mode

    def restore(self, state: LocalState, before: Any) -> None:
        state.grad_enabled = before
