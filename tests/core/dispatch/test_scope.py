"""Scopes: an interrupt between any two bytecodes of a program leaves nothing behind."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

import pytest

import plugrad
from plugrad.dispatch.local_state import LocalState, current_state
from plugrad.dispatch.scope import Locked, Scope, Swapped
from tests.torture.families.interrupts import BLOCKS, block_names, is_interpreted
from tests.torture.state import differences, insanity, state

NAMES = block_names()
PROGRAMS = [
    *dict.fromkeys(f"{block.format(flag=flag)} pass" for block in BLOCKS for flag in (True, False)),
    "with plugrad.no_grad(), plugrad.enable_grad(): pass",
    "func.jvp(plugrad.sin, (d,), (d,))",
]


def _is_traced(frame: FrameType) -> bool:
    """The program's own frame and, of plugrad, what stays interpreted where it is compiled."""
    path = frame.f_code.co_filename
    return path == "<program>" or is_interpreted(path)


def interrupted(program: Any, event: int, names: dict[str, Any] = NAMES) -> bool:
    """Run a program with an interrupt before a bytecode; False if there are not so many."""
    left = [event]

    def call(frame: FrameType, kind: str, argument: object) -> Any:
        if not _is_traced(frame):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return step

    def step(frame: FrameType, kind: str, argument: object) -> Any:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return step

    before = sys.gettrace()
    sys.settrace(call)
    try:
        exec(program, dict(names))
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return left[0] <= 0


@pytest.mark.parametrize("text", PROGRAMS)
def test_an_interrupt_at_any_bytecode_leaves_nothing(text: str) -> None:
    program = compile(f"def run():\n    {text}\nrun()", "<program>", "exec")

    def check() -> None:
        exec(program, dict(NAMES))  # what is made at the first use
        before = state()
        event = 1
        while interrupted(program, event):
            assert not differences(before), f"at bytecode {event}"
            event += 1 + event // 40
        assert not insanity()

    # Not in pytest's own thread: CPython takes the exception of a handler that is left between its
    # last bytecodes for one that is still handled, which would be every later error's context.
    with ThreadPoolExecutor(1) as apart:
        apart.submit(check).result()


def test_what_is_entered_by_hand_and_kept_by_nobody_lasts() -> None:
    plugrad.no_grad().__enter__()
    try:
        gc.collect()
        assert not plugrad.is_grad_enabled()
    finally:
        plugrad.set_grad_enabled(True)
    with contextlib.ExitStack() as stack:
        stack.enter_context(plugrad.no_grad())
        assert not plugrad.is_grad_enabled()
    assert plugrad.is_grad_enabled()


def test_a_scope_that_goes_while_it_is_entered_puts_the_state_back() -> None:
    scope = plugrad.no_grad()
    scope.__enter__()
    assert not plugrad.is_grad_enabled()
    del scope
    assert plugrad.is_grad_enabled()


def test_what_goes_after_the_block_around_it_changes_nothing() -> None:
    inner = plugrad.enable_grad()
    with plugrad.no_grad():
        inner.__enter__()
    assert plugrad.is_grad_enabled()
    del inner
    assert plugrad.is_grad_enabled()


def test_one_scope_serves_several_threads() -> None:
    scope, seen = plugrad.no_grad(), []

    def work() -> None:
        with scope:
            seen.append(plugrad.is_grad_enabled())
        seen.append(plugrad.is_grad_enabled())

    with scope:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert not plugrad.is_grad_enabled()
    assert seen == [False, True]
    assert plugrad.is_grad_enabled()


class _Failing(Scope):
    """Changes half of what it should, or is stopped when it puts it back."""

    def __init__(self, where: str) -> None:
        self.where = where

    def read(self, state: LocalState) -> Any:
        return state.grad_enabled

    def change(self, state: LocalState) -> None:
        state.grad_enabled = False
        self._stop("change")

    def restore(self, state: LocalState, before: Any) -> None:
        self._stop("restore")
        state.grad_enabled = before

    def _stop(self, where: str) -> None:
        if self.where == where:
            self.where = ""
            raise KeyboardInterrupt


def test_two_threads_that_leave_a_scope_at_once_do_not_disturb_each_other() -> None:
    restoring, left = threading.Event(), threading.Event()
    slow: list[int] = []

    class Waiting(Scope):
        def read(self, state: Any) -> None:
            return None

        def change(self, state: Any) -> None:
            pass

        def restore(self, state: Any, before: None) -> None:
            if threading.get_ident() in slow:
                restoring.set()
                assert left.wait(10)

    scope = Waiting()
    failures: list[BaseException] = []

    def other() -> None:
        try:
            slow.append(threading.get_ident())
            with scope:
                pass  # what it entered is the second entry; while it leaves, the first goes
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=other)
    with scope:
        thread.start()
        assert restoring.wait(10)
    left.set()
    thread.join()
    assert failures == []
    assert not scope._entries


@pytest.mark.parametrize("where", ["change", "restore"])
def test_an_interrupt_of_an_interpreted_part_is_made_good(where: str) -> None:
    with pytest.raises(KeyboardInterrupt), _Failing(where):
        pass
    assert current_state().grad_enabled


def test_a_lock_and_an_attribute_are_as_before() -> None:
    lock, owner = threading.Lock(), threading.local()
    owner.name = 1
    with Locked(lock), Swapped(owner, "name", 2):
        assert (lock.locked(), owner.name) == (True, 2)
    assert (lock.locked(), owner.name) == (False, 1)


def test_leaving_without_entering_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="no_grad is left, but was not entered"):
        plugrad.no_grad().__exit__(None, None, None)
