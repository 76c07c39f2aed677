"""Tables, groups and units, beside those that PyTorch makes of the same events."""

from __future__ import annotations

import importlib
import io
from types import ModuleType
from typing import Any

import pytest

import plugrad
from plugrad.autograd import profiler, profiler_util
from plugrad.autograd.profiler import EventList, FunctionEvent, FunctionEventAvg

# name, thread, start, end, bytes, shapes, stack, operations
EVENTS: list[tuple[str, int, float, float, int, list[list[int]], list[str], int]] = [
    ("outer", 1, 0.0, 2_500_000.0, 4096, [], ["main.py(3): run", "main.py(9): <module>"], 0),
    ("ns::mul", 1, 10.0, 1510.5, 2048, [[2, 3], [3]], ["model.py(5): forward"], 6),
    ("ns::mul", 1, 1600.0, 1602.25, -300, [[2, 3], []], ["model.py(6): forward"], 3_000_000),
    ("a_name_that_is_far_too_long_to_be_printed_in_one_column_of_a_table", 2, 0.0, 5.0, 0,
     [[1] * 40], ["x" * 100 + ".py(1): f"], 0),
    ("ns::mul", 2, 1.0, 2.0, 3 << 20, [[2, 3], [3]], [], 0),
]  # fmt: skip


def events(util: Any, **options: Any) -> Any:
    made = [
        util.FunctionEvent(
            id=number,
            name=name,
            thread=thread,
            start_us=start,
            end_us=end,
            cpu_memory_usage=nbytes,
            input_shapes=shapes,
            stack=stack,
            flops=flops,
            overload_name="",
            fwd_thread=0,
        )
        for number, (name, thread, start, end, nbytes, shapes, stack, flops) in enumerate(EVENTS)
    ]
    found = util.EventList(made, **options)
    found._build_tree()
    return found


@pytest.fixture(scope="module")
def torch_util(torch_oracle: ModuleType) -> Any:
    return importlib.import_module("torch.autograd.profiler_util")


TABLES: list[dict[str, Any]] = [
    {},
    {"sort_by": "self_cpu_time_total", "row_limit": 2},
    {"sort_by": "cpu_memory_usage", "header": "A header"},
    {"sort_by": "count", "row_limit": -1, "time_unit": "ms"},
    {"sort_by": "self_cuda_time_total", "time_unit": "s"},
    {"max_name_column_width": 20, "max_shapes_column_width": 12, "max_src_column_width": 30},
    {"top_level_events_only": True},
]


@pytest.mark.parametrize("arguments", TABLES)
@pytest.mark.parametrize(
    "grouping", [None, {}, {"group_by_input_shapes": True}, {"group_by_stack_n": 2}]
)
def test_a_table_is_pytorchs(
    torch_util: Any, arguments: dict[str, Any], grouping: dict[str, Any] | None
) -> None:
    # With stacks, PyTorch prints operations under "Source Location", and the source under "FLOPs".
    has_stacks = grouping is None or "group_by_stack_n" in grouping
    options = {"profile_memory": True, "with_flops": not has_stacks}
    texts = []
    for util in (profiler_util, torch_util):
        found = events(util, **options)
        if grouping is not None:
            found = found.key_averages(**grouping)
        texts.append(found.table(**arguments))
    assert texts[0] == texts[1]


def test_without_memory_and_operations_their_columns_are_missing(torch_util: Any) -> None:
    table = events(profiler_util).key_averages().table()
    assert "CPU Mem" not in table
    assert "FLOPs" not in table
    assert table == events(torch_util).key_averages().table()


def test_an_empty_list_is_an_empty_table() -> None:
    assert EventList().table() == ""


def test_the_text_of_a_list_is_its_table() -> None:
    found = events(profiler_util)
    assert str(found) == found.table()


def test_units_are_pytorchs(torch_util: Any) -> None:
    for time in (0.0, 0.5, 999.9994, 1000.0, 1234.5, 1e6, 2.5e9):
        assert profiler_util._format_time(time) == torch_util._format_time(time)
        assert profiler_util._format_time_share(time, 3e9) == torch_util._format_time_share(
            time, 3e9
        )
    assert profiler_util._format_time_share(0, 0) == "NaN"
    for size in (0, 1, -1023, 1024, -1536, 1 << 20, 5 << 30):
        assert profiler_util._format_memory(size) == torch_util._format_memory(size)


def test_intervals_nest_by_thread_and_the_later_of_two_that_overlap_wins() -> None:
    found = EventList()
    for thread, ranges in [(1, [(0, 1), (1, 2)]), (0, [(0, 2), (1, 2), (1, 3)])]:
        for start, end in ranges:
            found.append(
                FunctionEvent(
                    id=len(found), node_id=0, name="", thread=thread, start_us=start, end_us=end
                )
            )
    found._populate_cpu_children()
    assert [[child.id for child in event.cpu_children] for event in found] == [
        [], [], [], [], [3],
    ]  # fmt: skip


def test_averages_add_up() -> None:
    average = FunctionEventAvg()
    average.add(FunctionEvent(id=0, name="foo", thread=0, start_us=10, end_us=15))
    average.add(FunctionEvent(id=1, name="foo", thread=0, start_us=20, end_us=30))
    average.add(average)
    assert (average.key, average.count) == ("foo", 4)
    assert average.cpu_time_total == average.self_cpu_time_total == 30
    assert average.device_time_total == 0
    assert average.cpu_time == 7.5
    with pytest.raises(AssertionError, match="Expected keys to match"):
        average.add(FunctionEvent(id=2, name="bar", thread=0, start_us=0, end_us=1))


def test_averages_need_the_tree() -> None:
    with pytest.raises(AssertionError, match="Expected tree to be built"):
        EventList().key_averages()


def test_overloads_have_a_column_only_when_they_are_kept_apart() -> None:
    found = events(profiler_util)
    found[1].overload_name = "Tensor"
    assert "Overload Name" not in found.table()
    assert "Overload Name" in found.key_averages(group_by_overload_name=True).table()


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_a_printed_table_fits_the_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    with profiler.profile() as prof:
        x = plugrad.ones(2, 2, requires_grad=True)
        (x @ x).relu().sum().backward()
    assert prof.function_events is not None
    for event in prof.function_events:
        event.kernel = ""  # else there is one more column where a package brings variants
    monkeypatch.setattr("plugrad.autograd.profiler.event_list.terminal_width", lambda: width)
    for text in (str(prof), str(prof.key_averages())):
        lines = [line.rstrip() for line in text.splitlines()]
        assert max(map(len, lines)) <= width
        assert "# of Calls" in lines[1]
        assert ("CPU time avg" in lines[1]) == (width >= 100)
    assert max(map(len, prof.table().splitlines())) > 100


@pytest.mark.parametrize(
    ("is_terminal", "columns", "width"),
    [
        (False, None, None),
        (False, "70", 70),
        (False, "0", None),
        (False, "wide", None),
        (True, "70", 70),
        (True, None, 80),
    ],
)
def test_a_printed_table_is_as_wide_as_the_environment_says_or_the_terminal(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, columns: str | None, width: int | None
) -> None:
    """`shutil` falls back to 80 columns if a terminal does not report its width."""

    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return is_terminal

    monkeypatch.setattr("sys.__stdout__", None)
    monkeypatch.setattr("sys.stdout", Stream())
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    with profiler.profile() as prof:
        plugrad.ones(2, 2).relu().sum()
    averages = prof.key_averages()
    for found in (prof.function_events, averages):
        assert found is not None
        longest = max(len(line.rstrip()) for line in str(found).splitlines())
        if width is None:
            assert str(found) == found.table()
            assert longest > 80
        else:
            assert longest <= width
    # An option that a program passes does not depend on where it runs.
    assert max(map(len, averages.table().splitlines())) > 80
