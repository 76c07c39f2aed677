"""`plugrad.plugins.watching.Journal`: what is written of calls, passes, threads and memory."""

from __future__ import annotations

import threading
from types import FrameType
from typing import Any

import pytest

import plugrad
from plugrad.plugins.watching import Book, Journal, Trace, hears, read, watching


def is_library(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "plugrad"


def new_book(limit: int = 1000, labels: list[Any] | None = None) -> Book:
    def label(leaf: Any, frame: FrameType | None) -> str:
        if labels is not None:
            labels.append((leaf, None if frame is None else frame.f_code.co_name))
        return "leaf"

    return Book(limit, {}, label, is_library)


def of_kind(book: Book, *kinds: str) -> list[tuple[Any, ...]]:
    return [event[2:] for event in read(book) if event[2] in kinds]


def test_a_call_has_its_line_what_it_was_given_and_what_it_returned() -> None:
    book = new_book()
    x = plugrad.ones(2, 3)
    with watching(Journal(book)):
        y = x.sum()  # the line
    book.close()
    ((_, op, _, place, given),) = of_kind(book, "call")
    assert op.qualified_name == "plugrad::sum"
    assert place is not None
    assert place[0] == __file__
    with open(__file__, encoding="utf-8") as file:
        assert file.readlines()[place[1] - 1].endswith("# the line\n")
    assert given == [((2, 3), x.dtype, x.device, "")]
    ((_, returned, node),) = of_kind(book, "end")
    assert returned == [((), y.dtype, y.device, "")]
    assert node == -1


def test_events_are_in_the_order_of_time() -> None:
    book = new_book()
    x = plugrad.ones(2, requires_grad=True)
    with watching(Journal(book)):
        x.exp().sum().backward()
    times = [event[0] for event in read(book)]
    assert times == sorted(times)
    assert min(times) > 0


def test_nodes_are_written_once_with_what_they_lead_to_and_save() -> None:
    labels: list[Any] = []
    book = new_book(labels=labels)
    x = plugrad.ones(2, requires_grad=True)
    with watching(Journal(book)):
        x.exp().sum().backward()
    book.close()
    leaf, exp, total = of_kind(book, "node")
    assert leaf[1:] == (1, "AccumulateGrad", -1, "leaf", (2,), [], [], 2**64 - 1)
    saved = [("result", (2,), x.dtype, 8, 0)]
    assert exp[1:-1] == (0, "ExpBackward0", -1, None, (2,), [[1, 0]], saved)
    assert total[-1] == exp[-1] + 1  # sequence numbers, in the order of forward
    assert total[2] == "SumBackward0"
    assert labels == [(x, "test_nodes_are_written_once_with_what_they_lead_to_and_save")]
    assert [event[1] for event in of_kind(book, "run")] == [total[1], 0, 1]
    assert of_kind(book, "grad") == [("grad", 1, 8)]


def test_what_a_node_calls_has_no_line_and_what_a_users_backward_calls_has() -> None:
    class Double(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, value: Any) -> Any:
            return value.exp()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad.sin()

    book = new_book()
    x = plugrad.ones(2, requires_grad=True)
    y = Double.apply(x).cos().sum()
    with watching(Journal(book)):
        y.backward()
    lines = {event[1].name: event[3] for event in of_kind(book, "call")}
    assert lines["sin"] is not None
    assert lines["mul"] is None  # of the formula of cos


def test_saved_tensors_have_the_version_that_they_had_when_they_were_saved() -> None:
    class Keep(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, value: Any) -> Any:
            ctx.save_for_backward(value)
            return value * 2

    book = new_book()
    x = plugrad.ones(2)
    x.add_(1)
    x.add_(1)
    w = plugrad.ones(2, requires_grad=True)
    with watching(Journal(book)):
        product = w * x
        x.add_(1)
        kept = Keep.apply(product).sum()
        with plugrad.autograd.graph.saved_tensors_hooks(lambda t: "packed", lambda p: x):
            packed = w * x
    book.close()
    versions = {node[2]: {each[0]: each[4] for each in node[7]} for node in of_kind(book, "node")}
    assert versions["KeepBackward"] == {"tensors[0]": 0}
    (first, second) = [node[7] for node in of_kind(book, "node") if node[2] == "MulBackward0"]
    assert [(each[0], each[4]) for each in first] == [("other", 2)]
    assert [(each[0], each[2], each[4]) for each in second] == [("other", None, 3)]
    assert kept.requires_grad
    assert packed.requires_grad


def test_a_queued_node_tells_which_of_its_gradients_are_captured() -> None:
    book = new_book()
    x = plugrad.ones(2, requires_grad=True)
    y = x.exp()
    loss = y.sum()
    with watching(Journal(book)):
        plugrad.autograd.grad(loss, [x, y], retain_graph=True)
        loss.backward()
    names = {node[1]: node[2] for node in of_kind(book, "node")}
    ready = [(names[event[1]], event[4]) for event in of_kind(book, "ready")]
    order = ("SumBackward0", "ExpBackward0", "AccumulateGrad")
    assert ready == list(zip(order * 2, [(), (0,), (0,), (), (), ()], strict=True))


def test_memory_comes_with_a_result_and_goes_when_it_is_freed() -> None:
    book = new_book()
    x = plugrad.ones(4)
    with watching(Journal(book)):
        y = x + 1
        view = y[1:]
        y.add_(1)
        del y, view
    assert [event[2] for event in of_kind(book, "memory")] == [16, -16]


def test_an_error_ends_steps_and_calls() -> None:
    book = new_book()
    with watching(Journal(book)), pytest.raises(RuntimeError):
        plugrad.ones(2, 3) @ plugrad.ones(2, 3)
    kinds = [event[2] for event in read(book)]
    assert kinds.count("call") == kinds.count("end")
    nodes = [event[2] for event in of_kind(book, "end")]
    assert nodes[:2] == [-1, -1]  # the arguments were made
    assert set(nodes[2:]) == {-2}
    assert kinds.count("step") == kinds.count("back")


def test_after_the_limit_nothing_is_written_and_the_thread_is_left_alone() -> None:
    book = new_book(limit=20)
    x = plugrad.ones(2)
    with watching(Journal(book)):
        for _ in range(50):
            x = x + 1
        assert book.closed
        assert not hears(book)
    assert len(of_kind(book, "call")) < 10


def test_traces_around_a_journal_hear_as_well() -> None:
    heard: list[str] = []

    class Names(Trace):
        def dispatch(self, kind: str, op: Any, keyset: int, args: tuple[object, ...]) -> Any:
            heard.append(kind)
            return super().dispatch(kind, op, keyset, args)

    x = plugrad.ones(2)
    for order in (0, 1):
        book = new_book()
        traces: list[Trace] = [Names(), Journal(book)]
        with watching(traces[order]), watching(traces[1 - order]):
            x.exp()
        assert len(of_kind(book, "call")) == 1
    assert heard == ["call", "redispatch"] * 2


def test_a_started_thread_is_heard_by_the_trace_for_those() -> None:
    book = new_book()
    heard: list[bool] = []

    def work() -> None:
        plugrad.ones(2)
        heard.append(hears(book))

    def start() -> None:
        thread = threading.Thread(target=work, name="worker")
        thread.start()
        thread.join()

    with watching(Journal(book), started=Journal(book)):
        start()
    start()
    assert book.threads == [threading.current_thread().name, "worker"]
    assert [event[1] for event in read(book) if event[2] == "call"] == [1]
    assert heard == [True, False]


def test_traces_for_new_threads_may_end_in_any_order() -> None:
    class Count(Trace):
        calls = 0

        def dispatch(self, kind: str, op: Any, keyset: int, args: tuple[object, ...]) -> Any:
            if kind == "call":
                self.calls += 1
            return super().dispatch(kind, op, keyset, args)

    def start() -> None:
        thread = threading.Thread(target=lambda: plugrad.ones(2))
        thread.start()
        thread.join()

    first, second = Count(), Count()
    one, two = watching(Trace(), started=first), watching(Trace(), started=second)
    ended = threading.Event()
    entered = threading.Event()

    def other() -> None:
        with two:
            entered.set()
            ended.wait(60)

    with one:
        thread = threading.Thread(target=other)
        thread.start()
        entered.wait(60)
        start()
    start()
    ended.set()
    thread.join()
    start()
    assert (first.calls, second.calls) == (1, 2)


def test_nodes_and_tensors_are_not_kept_alive() -> None:
    book = new_book()
    x = plugrad.ones(2, requires_grad=True)
    with watching(Journal(book)):
        for _ in range(3):
            y = x.exp()
            del y
    assert [event[2] for event in of_kind(book, "memory")] == [8, -8] * 3
    assert [event[2] for event in of_kind(book, "node")].count("ExpBackward0") == 3
