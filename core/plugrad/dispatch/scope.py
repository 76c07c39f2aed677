"""Scopes: blocks that change state and always restore it when they end.

KeyboardInterrupt, or any exception that comes from outside, is raised between two bytecodes. If
`__enter__` is a Python function, this may happen after the change and before `with` has registered
the block; in `__exit__` it may happen before the change is undone. Even `with` itself drops the
block a few bytecodes before it calls `__exit__`. So all context managers get three things from
`Scope`:

* `__enter__` and `__exit__`, which have no bytecodes when compiled.
* The change belongs to the scope: if the object is freed while it is entered, it restores the
  state. `with no_grad():` holds the only reference, so this happens as soon as the block is lost.
  In an interpreted core it happens when the exception's traceback is freed.
* An object that is entered by a direct call, `no_grad().__enter__()`, and is not stored, changes
  the state permanently.

A subclass defines how the former state is read, changed and restored. It may be interpreted: if an
interrupt comes while `change` runs, `restore` undoes what was done; if it comes while `restore`
runs, `restore` runs again. So `restore` must be idempotent, and correct after half a `change`.

A function that changes state temporarily also uses a scope. `try` and `finally` are enough only in
compiled modules, and only if no Python code runs between the change and the `try`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from opcode import opmap
from typing import Any, Final, final

from mypy_extensions import mypyc_attr

from plugrad.dispatch.local_state import LocalState, current_state


@final
class Entry:
    """One time that a scope was entered: the thread's state, and what `read` returned."""

    def __init__(self, state: LocalState, before: Any) -> None:
        self.state = state
        self.before = before


@mypyc_attr(allow_interpreted_subclasses=True)
class Scope:
    """A context manager. It may be entered within itself and on several threads.

    Subclasses need not call `__init__`.
    """

    # One for each time that it was entered and not left yet.
    _entries: list[Entry] | None = None

    def read(self, state: LocalState) -> Any:
        """Read the part of the current state that `restore` needs."""
        raise NotImplementedError

    def change(self, state: LocalState) -> None:
        """Change the state of a thread, or of the process."""
        raise NotImplementedError

    def restore(self, state: LocalState, before: Any) -> None:
        """Restore the state that `read` returned as `before`."""
        raise NotImplementedError

    def value(self) -> Any:
        """What `with ... as` gets."""
        return None

    def leave_unentered(self, state: LocalState) -> None:
        """`__exit__` without `__enter__`, or once more."""
        raise RuntimeError(f"{type(self).__name__} is left, but was not entered")

    def __enter__(self) -> Any:
        state = current_state()
        before = self.read(state)
        entries = self._entries
        if entries is None:
            entries = []
            self._entries = entries
        entry = Entry(state, before)
        kept = sys.getrefcount(self) > _KEPT_BY_NOBODY
        if kept:
            # Before the change, so that the scope owns it at all times.
            entries.append(entry)
            state.scopes.append(entry)
        try:
            self.change(state)
            return self.value()
        except BaseException:
            _put_back(self, state, before)
            if kept:
                _drop(entries, entry)
                _close(state, entry)
            raise

    def __exit__(self, *exc_info: object) -> None:
        entries = self._entries
        state = current_state()
        if not entries:
            self.leave_unentered(state)
            return
        entry = _own(entries, state)
        _put_back(self, state, entry.before)
        _close(state, entry)
        _drop(entries, entry)

    def __del__(self) -> None:
        if self._entries:
            # An error may be on its way. Only the end of a native object sets it aside.
            _Abandoned(self)


@mypyc_attr(allow_interpreted_subclasses=True)
class SetAtOnce(Scope):
    """Changes the state when it is made; as a context manager it puts the former state back.

    Subclasses have `prepare` in place of `__init__`, after which nothing interpreted runs. What a
    program makes for a `with` is entered at once, so that an interrupt before `__enter__` puts the
    state back as well.
    """

    # What `read` returned when it was made.
    prev: Any = None
    _is_set: bool = False
    _pending: bool = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if self._is_set:
            # A compiled subclass runs this in `__new__` and, inheriting it, once more; the former
            # state is what was read at first.
            return
        try:
            self.prepare(*args, **kwargs)
        except TypeError as error:
            # If the arguments do not fit, Python's sentence names the method.
            method, found, problem = str(error).partition(".prepare() ")
            if not found or not method.isidentifier():
                raise
            raise TypeError(f"{type(self).__name__}.__init__() {problem}") from None
        self.set_now()

    def prepare(self, *args: Any, **kwargs: Any) -> None:
        """Check the arguments of the constructor, and keep them."""
        raise NotImplementedError

    def set_now(self) -> None:
        """Change the state."""
        state = current_state()
        before = self.read(state)
        self.prev = before
        self._is_set = True
        if is_made_for_with():
            entry = Entry(state, before)
            self._entries = [entry]
            self._pending = True
            state.scopes.append(entry)
        try:
            self.change(state)
        except BaseException:
            _put_back(self, state, before)
            raise

    def leave_unentered(self, state: LocalState) -> None:
        if not self._is_set:
            super().leave_unentered(state)
        _put_back(self, state, self.prev)

    def unset(self) -> None:
        """Put the former state back: it was made to decorate a function."""
        state = current_state()
        entries = self._entries
        if entries:
            _close(state, entries.pop())
        self._pending = False
        self._is_set = False
        _put_back(self, state, self.prev)

    def __enter__(self) -> Any:
        state = current_state()
        if not self._pending:
            entry = Entry(state, self.prev if self._is_set else self.read(state))
            entries = self._entries
            if entries is None:
                entries = []
                self._entries = entries
            entries.append(entry)
            state.scopes.append(entry)
        try:
            if not self._pending:
                self.change(state)
            self._pending = False
            return self.value()
        except BaseException:
            # `with` has not registered the block yet.
            self.__exit__()
            raise


def is_made_for_with() -> bool:
    """Whether the program enters next what the call that runs returns to it."""
    frame: Any = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__") in _MAKERS:
        frame = frame.f_back
    if frame is None:
        return False
    code: bytes = frame.f_code.co_code
    place: int = frame.f_lasti + 2
    while place < len(code) and code[place] == 0:  # the interpreter's notes on the call
        place += 2
    if place >= len(code):
        return False
    return code[place] in _WITH or (code[place] == _COPY and code[place + 2] == _LOAD_SPECIAL)


# The modules between the program and `is_made_for_with`; compiled ones have no frames.
_MAKERS: Final = (__name__, "plugrad._tensor.classes")
_WITH: Final[set[int]] = {opmap[name] for name in ("BEFORE_WITH",) if name in opmap}
_COPY: Final[int] = opmap["COPY"]
_LOAD_SPECIAL: Final[int] = opmap.get("LOAD_SPECIAL", -1)


@final
class _Abandoned:
    """Stands for a scope that was freed while entered; when it is freed itself, it restores the
    state."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def __del__(self) -> None:
        scope = self.scope
        entries = scope._entries
        state = current_state()
        while entries:
            entry = entries.pop()
            # What another thread entered ended with it; what was entered within a block that has
            # been left since ended with that.
            if entry.state is state and _close(state, entry):
                _put_back(scope, state, entry.before)


def _own(entries: list[Entry], state: LocalState) -> Entry:
    """A thread's last entry; the first of all if the thread has none."""
    entry = entries[-1]
    if entry.state is state:
        return entry
    for other in reversed(entries.copy()):
        if other.state is state:
            return other
    return entries[0]


def _drop(entries: list[Entry], entry: Entry) -> None:
    """Take an entry out, wherever it is by now: other threads enter and leave meanwhile."""
    if entries[-1] is entry:
        entries.pop()
    elif entry in entries:
        entries.remove(entry)


def _close(state: LocalState, entry: Entry) -> bool:
    """Note that an entry of a thread ends, and those within it; False if it had ended before."""
    scopes = state.scopes
    index = len(scopes) - 1
    while index >= 0:
        if scopes[index] is entry:
            del scopes[index:]
            return True
        index -= 1
    return False


def _put_back(scope: Scope, state: LocalState, before: Any) -> None:
    """Call `restore`, twice if an interrupt stops it."""
    try:
        scope.restore(state, before)
    except BaseException as error:
        if not isinstance(error, Exception):
            scope.restore(state, before)
        raise


@final
class _Nobodys(Scope):
    """Measures how many references there are to a scope that is entered by a direct call and not
    stored."""

    def __init__(self) -> None:
        self.references: int = 0

    def __enter__(self) -> Any:
        return sys.getrefcount(self)


# They are more for one that `with` holds.
_KEPT_BY_NOBODY: Final[int] = getattr(_Nobodys(), "__enter__")()  # noqa: B009  # as from Python


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
class Locked(Scope):
    """A lock is held in the block.

    For interpreted modules, where `with lock:` may be interrupted just before it is released.
    """

    def __init__(self, lock: Any) -> None:
        self.lock = lock
        self.held = False

    def read(self, state: LocalState) -> Any:
        return None

    def change(self, state: LocalState) -> None:
        self.lock.acquire()
        self.held = True

    def restore(self, state: LocalState, before: Any) -> None:
        if self.held:
            self.held = False
            self.lock.release()


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
