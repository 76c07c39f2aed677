"""Each thread has a state of its own, whatever its number was used for before."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import pytest

import plugrad
from plugrad.dispatch.local_state import LocalState, current_state, set_current_state


def on_thread(action: Callable[[], object]) -> int:
    """Run it on a new thread, and say which number that had."""
    numbers: list[int] = []

    def run() -> None:
        numbers.append(threading.get_ident())
        action()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return numbers[0]


def test_a_thread_starts_anew_though_its_number_was_anothers() -> None:
    found: list[bool] = []

    def look_and_leave_gradients_off() -> None:
        found.append(plugrad.is_grad_enabled())
        plugrad.set_grad_enabled(False)

    numbers = [on_thread(look_and_leave_gradients_off) for _ in range(20)]
    assert len(set(numbers)) < 20  # else this has shown nothing
    assert all(found)
    assert plugrad.is_grad_enabled()


def test_threads_that_take_turns_keep_their_states() -> None:
    turns = [threading.Semaphore(0), threading.Semaphore(0)]
    seen: list[set[int]] = [set(), set()]

    def run(own: int) -> None:
        with plugrad.no_grad() if own else plugrad.enable_grad():
            for _ in range(50):
                turns[own].acquire()
                seen[own].add(id(current_state()))
                assert plugrad.is_grad_enabled() is (own == 0)
                turns[1 - own].release()

    threads = [threading.Thread(target=run, args=(own,)) for own in (0, 1)]
    for thread in threads:
        thread.start()
    turns[0].release()
    for thread in threads:
        thread.join()
    assert [len(states) for states in seen] == [1, 1]
    assert not seen[0] & seen[1]


def test_a_state_can_be_put_in_place_and_taken_back() -> None:
    before = current_state()
    other = LocalState()
    other.grad_enabled = False
    set_current_state(other)
    try:
        assert not plugrad.is_grad_enabled()
    finally:
        set_current_state(before)
    assert current_state() is before
    assert plugrad.is_grad_enabled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_process_keeps_its_threads_state_only() -> None:
    numbers: list[int] = []
    ready, done = threading.Event(), threading.Event()

    def wait() -> None:
        plugrad.set_grad_enabled(False)
        numbers.append(threading.get_ident())
        ready.set()
        done.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    ready.wait()
    child = os.fork()
    if not child:
        wrong = 1
        try:
            found: list[bool] = []
            on_thread(lambda: found.append(plugrad.is_grad_enabled()))
            wrong = int(not (plugrad.is_grad_enabled() and found == [True]))
        finally:
            os._exit(wrong)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    done.set()
    thread.join()
