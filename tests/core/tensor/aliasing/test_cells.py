"""What tensors on immutable arrays keep of each other, in long loops, in threads, in traces."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.dispatch.local_state import current_state
from plugrad.plugins.tracing import Listener
from plugrad.tensor.aliasing import cells
from plugrad.tensor.aliasing.array_log import FormerArray
from plugrad.tensor.base import TensorBase


def test_what_is_gone_is_forgotten(immutable: str) -> None:
    gc.collect()
    before = len(cells._aliases)
    x = plugrad.zeros(3, device=immutable)
    views = [x[i] for i in range(3)]
    place = cells.alias_of(x)
    assert place is not None
    assert len(place.cell.members) == 4
    del views
    gc.collect()
    assert len(place.cell.members) == 1
    del x, place
    gc.collect()
    assert len(cells._aliases) == before


def test_tensors_without_views_pay_nothing(immutable: str) -> None:
    before = len(cells._aliases)
    x = plugrad.zeros(3, device=immutable)
    x.add_(1)
    assert len(cells._aliases) == before


def test_a_view_keeps_what_it_shared_with_a_base_that_is_gone(immutable: str) -> None:
    base = plugrad.arange(6.0, device=immutable)
    gone = weakref.ref(base)
    first, second = base.data[1:4], base.data[2:].view(2, 2)
    del base
    assert gone() is None
    first.mul_(10)
    assert second.tolist() == [[20.0, 30.0], [4.0, 5.0]]
    assert first.as_strided((6,), (1,), 0).tolist() == [0.0, 10.0, 20.0, 30.0, 4.0, 5.0]


def test_the_array_of_a_group_goes_with_its_last_member(immutable: str) -> None:
    x = plugrad.arange(6.0, device=immutable)
    view = x[2:]
    place = cells.alias_of(view)
    assert place is not None
    array = weakref.ref(place.cell.array)
    del x, place
    assert array() is not None
    del view
    gc.collect()
    assert array() is None


def test_a_long_loop_of_views_and_writes_leaves_nothing(immutable: str) -> None:
    gc.collect()
    before = len(cells._aliases)
    x = plugrad.zeros(4, device=immutable)
    for i in range(50):
        part = x[i % 4 :].unsqueeze(0).view(-1)
        part.add_(1)
        x.detach().mul_(0.5)
    place = cells.alias_of(x)
    assert place is not None
    del part
    assert list(place.cell.members.values()) == [place]
    assert place.steps == []
    del x, place
    gc.collect()
    assert len(cells._aliases) == before


def test_a_write_to_a_view_is_one_update_of_the_base(immutable: str) -> None:
    x = plugrad.zeros(4, 5, device=immutable)
    for view, update in ((x[1:3], "slice_scatter"), (x[2], "select_scatter")):
        with plugrad.record_dispatch_trace() as events:
            view.add_(1)
        written = [event.op for event in events if "scatter" in event.op]
        assert {op.partition(".")[0] for op in written} == {f"plugrad::{update}"}
        # Two for the call, the sum, the update, and one for the other view.
        assert len(events) == 5


def test_threads_that_write_to_parts_of_one_tensor_lose_nothing(immutable: str) -> None:
    x = plugrad.zeros(4, 3, device=immutable)
    errors: list[Exception] = []

    def work(row: int) -> None:
        try:
            for _ in range(25):
                x[row].add_(1)
                x[row, 1:].add_(1)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(row,)) for row in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert x.tolist() == [[25.0, 50.0, 50.0]] * 4


def test_a_view_that_is_taken_while_another_thread_writes_is_up_to_date(immutable: str) -> None:
    x = plugrad.zeros(3, device=immutable)
    first = x[:1]

    class Meddler(Listener):
        def dispatch(self, kind: str, op: Any, keyset: int, args: Any) -> Any:
            result = super().dispatch(kind, op, keyset, args)
            if op.name == "slice" and x.sum().item() == 0:
                thread = threading.Thread(target=lambda: x.add_(1))
                thread.start()
                thread.join()
            return result

    state = current_state()
    state.trace = Meddler()
    try:
        view = x[1:]
    finally:
        state.trace = None
    assert [first.tolist(), view.tolist()] == [[1.0], [1.0, 1.0]]


class Notes:
    """A thread's `array_log`: it is notified of tensors before they change."""

    def __init__(self) -> None:
        self.former: dict[int, FormerArray] = {}

    def note(self, tensor: TensorBase) -> None:
        if id(tensor) not in self.former:
            self.former[id(tensor)] = FormerArray(tensor)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "a write": lambda x: x.add_(1),
    "a write to a view": lambda x: x[0].zero_(),
    "a write to a transpose": lambda x: x.t()[1:].mul_(3),
    "t_": lambda x: x.t_(),
    "assigned data": lambda x: setattr(x, "data", x * 2),
    "resize_": lambda x: x.resize_(2),
    "out": lambda x: plugrad.add(x, x, out=x),
}


@pytest.mark.parametrize("viewed", [False, True])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_changes_can_be_put_back(
    change: Callable[[Any], Any], viewed: bool, immutable: str
) -> None:
    x = plugrad.arange(4.0, device=immutable).view(2, 2).clone()
    column = x[:, 1] if viewed else None
    array = x.array
    notes = Notes()
    state = current_state()
    state.array_log = notes
    try:
        change(x)
    finally:
        state.array_log = None
    assert id(x) in notes.former
    for former in notes.former.values():
        former.restore()
    assert x.array is array
    assert (x.tolist(), x.stride()) == ([[0.0, 1.0], [2.0, 3.0]], (2, 1))
    x[0].add_(10)
    assert x.tolist() == [[10.0, 11.0], [2.0, 3.0]]
    assert column is None or column.tolist() == [11.0, 3.0]


OUT: dict[str, Callable[..., Any]] = {
    "add": lambda device, out: plugrad.add(
        plugrad.ones(2, device=device), plugrad.ones(2, device=device), out=out
    ),
    "mm": lambda device, out: plugrad.mm(
        plugrad.ones(1, 2, device=device), plugrad.ones(2, 2, device=device), out=out
    ),
    "sum": lambda device, out: plugrad.sum(plugrad.ones(3, 2, device=device), 0, out=out),
}
TARGETS: dict[str, Callable[[str], Any]] = {
    "a tensor": lambda device: plugrad.zeros(2, device=device),
    "a row": lambda device: plugrad.zeros(2, 2, device=device)[1],
    "a column": lambda device: plugrad.zeros(2, 2, device=device)[:, 0],
    "an empty one": lambda device: plugrad.empty(0, device=device),
    "another shape": lambda device: plugrad.zeros(3, device=device),
    "another dtype": lambda device: plugrad.zeros(2, dtype=plugrad.float64, device=device),
    "integers": lambda device: plugrad.zeros(2, dtype=plugrad.int64, device=device),
}


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("call", OUT.values(), ids=OUT)
def test_out(
    call: Callable[..., Any], target: Callable[[str], Any], on_both: Callable[..., Any]
) -> None:
    def program(device: str) -> Any:
        out = target(device)
        base = out if out._base is None else out._base
        array = out.array
        try:
            returned = call(device, out)
        except RuntimeError as error:
            assert out.array is array
            return str(error)
        assert returned is out
        return [out.tolist(), str(out.dtype), out._version, base.tolist()]

    got, expected = on_both(program)
    assert got == expected


def test_out_of_another_shape_warns(immutable: str) -> None:
    ones = plugrad.ones(2, device=immutable)
    with pytest.warns(UserWarning, match=r"since it had shape \[3\], which does not match"):
        plugrad.add(ones, ones, out=plugrad.zeros(3, device=immutable))


def test_a_copy_of_the_host_is_not_written_to(immutable: str) -> None:
    host = np.zeros(3, np.float32)
    x = plugrad.tensor(host, device=immutable)
    host += 1
    x[:2].add_(2)
    assert (x.tolist(), host.tolist()) == ([2.0, 2.0, 0.0], [1.0, 1.0, 1.0])
