"""Dispatch traces: the printed form, the environment variable, the recorded form."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import threading

import plugrad
from plugrad.dispatch import ExcludeKeys, IncludeKeys, keys
from plugrad.dispatch.local_state import Snapshot, current_state

# What a line looks like in PyTorch: one space of indentation per level, starting with one.
LINE = re.compile(r"^( +)\[(call|redispatch)\] op=\[(\w+::[\w.]+)\], key=\[(\w+)\]$")


def traced(text: str) -> list[tuple[int, str, str, str]]:
    """Depth, kind, operator and key of each line."""
    rows = []
    for line in text.splitlines():
        match = LINE.match(line)
        assert match, line
        rows.append((len(match[1]) - 1, match[2], match[3], match[4]))
    return rows


def test_a_product_is_called_at_autograd_and_redispatched_to_the_backend() -> None:
    x = plugrad.ones(2)
    file = io.StringIO()
    with plugrad.show_dispatch_trace(file=file):
        x * x
    assert file.getvalue() == (
        " [call] op=[plugrad::mul.Tensor], key=[AutogradCPU]\n"
        "  [redispatch] op=[plugrad::mul.Tensor], key=[CPU]\n"
    )


def test_a_factory_function_goes_through_backend_select() -> None:
    file = io.StringIO()
    with plugrad.show_dispatch_trace(file=file):
        plugrad.zeros(2)
    rows = traced(file.getvalue())
    assert rows[0][1:] == ("call", rows[0][2], "BackendSelect")
    assert rows[1] == (1, "redispatch", rows[0][2], "CPU")


def test_a_view_passes_adinplaceorview() -> None:
    x = plugrad.ones(2, requires_grad=True)
    with plugrad.record_dispatch_trace() as events:
        x.view(2, 1)
    assert [(e.depth, e.kind, e.op, e.key) for e in events] == [
        (0, "call", "plugrad::view", "AutogradCPU"),
        (1, "redispatch", "plugrad::view", "ADInplaceOrView"),
        (2, "redispatch", "plugrad::view", "CPU"),
    ]


def test_an_inplace_operation_passes_adinplaceorview() -> None:
    x = plugrad.ones(2)
    with plugrad.record_dispatch_trace() as events:
        x.mul_(2)
    kinds = [(e.kind, e.key) for e in events if e.op.startswith("plugrad::mul_")]
    assert kinds[:3] == [
        ("call", "AutogradCPU"),
        ("redispatch", "ADInplaceOrView"),
        ("redispatch", "CPU"),
    ]


def test_what_a_composite_calls_is_one_level_deeper() -> None:
    x = plugrad.ones(3, 2, requires_grad=True)
    with plugrad.record_dispatch_trace() as events:
        x.movedim(0, 1)
    first, second = events[0], events[1]
    assert (first.depth, first.kind, first.op, first.key) == (
        0, "call", "plugrad::movedim.int", "AutogradCPU",
    )  # fmt: skip
    assert (second.depth, second.kind) == (1, "call")
    assert second.op != first.op


def test_backward_is_traced_too() -> None:
    x = plugrad.ones(2, requires_grad=True)
    y = (x * x).sum()
    with plugrad.record_dispatch_trace() as events:
        y.backward()
    assert "plugrad::mul.Tensor" in {event.op for event in events}


def test_without_the_guard_there_is_no_autograd_key() -> None:
    x = plugrad.ones(2)
    with ExcludeKeys(keys.AUTOGRAD_KEYS), plugrad.record_dispatch_trace() as events:
        x * x
    assert [(e.kind, e.key) for e in events] == [("call", "CPU")]


def test_an_event_prints_as_its_line() -> None:
    x = plugrad.ones(2)
    with plugrad.record_dispatch_trace() as events:
        x.exp()
    assert [repr(event) for event in events] == [
        " [call] op=[plugrad::exp], key=[AutogradCPU]",
        "  [redispatch] op=[plugrad::exp], key=[CPU]",
    ]


def test_nothing_is_traced_outside_the_block() -> None:
    x = plugrad.ones(2)
    with plugrad.record_dispatch_trace() as events:
        pass
    x * x
    assert events == []


def test_traces_nest_the_outer_one_sees_all() -> None:
    x = plugrad.ones(2)
    with plugrad.record_dispatch_trace() as outer:
        x * x
        with plugrad.record_dispatch_trace() as inner:
            x.exp()
    assert [event.op for event in inner] == ["plugrad::exp"] * 2
    assert [event.op for event in outer] == ["plugrad::mul.Tensor"] * 2 + ["plugrad::exp"] * 2


def test_a_trace_belongs_to_its_thread() -> None:
    x = plugrad.ones(2)
    with plugrad.record_dispatch_trace() as events:
        thread = threading.Thread(target=lambda: x * x)
        thread.start()
        thread.join()
    assert events == []


def test_depth_is_right_again_after_an_error() -> None:
    x = plugrad.ones(2)
    with plugrad.record_dispatch_trace() as events:
        try:
            x + plugrad.ones(3)
        except RuntimeError:
            x * x
    assert [e.depth for e in events if e.op == "plugrad::mul.Tensor"] == [0, 1]


def test_the_calls_key_is_the_one_that_serves() -> None:
    x = plugrad.ones(2)
    with IncludeKeys(1 << keys.TRACER), plugrad.record_dispatch_trace() as events:
        x * x
    assert events[0].key == "AutogradCPU"


def run_script(value: str | None) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "PLUGRAD_SHOW_DISPATCH_TRACE"}
    if value is not None:
        environment["PLUGRAD_SHOW_DISPATCH_TRACE"] = value
    script = "import plugrad, threading\nx = plugrad.ones(2)\nx * x\n"
    script += "t = threading.Thread(target=lambda: x.exp()); t.start(); t.join()\n"
    return subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )


def test_the_environment_variable_traces_every_thread_to_stderr() -> None:
    done = run_script("1")
    assert done.stdout == ""
    rows = traced(done.stderr)
    assert [row[2:] for row in rows[-4:]] == [
        ("plugrad::mul.Tensor", "AutogradCPU"),
        ("plugrad::mul.Tensor", "CPU"),
        ("plugrad::exp", "AutogradCPU"),
        ("plugrad::exp", "CPU"),
    ]
    assert rows[0][3] == "BackendSelect"


def test_without_the_environment_variable_nothing_is_printed() -> None:
    assert run_script(None).stderr == ""
    assert run_script("0").stderr == ""


def test_a_printed_trace_within_a_recorded_one_leaves_the_outer_one_whole() -> None:
    x = plugrad.ones(2)
    file = io.StringIO()
    with plugrad.record_dispatch_trace() as events, plugrad.show_dispatch_trace(file=file):
        x.exp()
    assert [repr(event) for event in events] == file.getvalue().splitlines()


def test_depths_of_threads_that_share_a_trace_do_not_mix() -> None:
    x = plugrad.ones(2)
    inside, go_on = threading.Event(), threading.Event()

    def slow(a: plugrad.Tensor) -> plugrad.Tensor:
        inside.set()
        go_on.wait(10)
        return a.clone()

    with plugrad.library.Library("trace_depths", "DEF") as lib:
        lib.define("slow(Tensor self) -> Tensor")
        lib.impl("slow", slow, "CompositeImplicitAutograd")
        with plugrad.record_dispatch_trace() as events:
            state = Snapshot(current_state())

            def work() -> None:
                state.restore(current_state())
                plugrad.ops.trace_depths.slow(x)

            thread = threading.Thread(target=work)
            thread.start()
            inside.wait(10)
            x.exp()
            go_on.set()
            thread.join()
    assert [e.depth for e in events if e.op == "plugrad::exp"] == [0, 1]
    assert [e.depth for e in events if e.op == "plugrad::clone"] == [1, 2]
