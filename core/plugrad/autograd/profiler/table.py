"""Events as a table of text, in PyTorch's layout."""

from __future__ import annotations

# Interpreted: it runs when a profile is over.
from collections.abc import Sequence
from typing import Any, Final

from plugrad.autograd.profiler.columns import GAP, Column
from plugrad.autograd.profiler.fitting import fitted
from plugrad.autograd.profiler.formatting import format_memory, format_time, format_time_share

NUMBER_WIDTH: Final = 12
FLOPS_UNITS: Final = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")


def build_table(
    events: Sequence[Any],
    *,
    sort_by: str | None,
    row_limit: int | None,
    max_src_column_width: int | None,
    max_name_column_width: int | None,
    max_shapes_column_width: int | None,
    header: str | None,
    top_level_events_only: bool,
    time_unit: str | None,
    profile_memory: bool,
    with_flops: bool,
    with_overload_names: bool,
    line_width: int | None = None,
) -> str:
    """See `EventList.table`; "" if there are no events.

    Args:
        line_width: how long a line may be; None for as long as PyTorch's.
    """
    if not events:
        return ""
    total = sum(event.self_cpu_time_total for event in events)
    if sort_by is not None:
        attribute = sort_by.replace("cuda", "device").replace("xpu", "device")
        events = sorted(events, key=lambda event: getattr(event, attribute), reverse=True)
    columns = _name_columns(events, max_name_column_width, with_overload_names)
    columns += _time_columns(total, time_unit)
    if profile_memory:
        columns += [
            Column("CPU Mem", NUMBER_WIDTH, lambda e: format_memory(e.cpu_memory_usage)),
            Column("Self CPU Mem", NUMBER_WIDTH, lambda e: format_memory(e.self_cpu_memory_usage)),
        ]
    columns.append(Column("# of Calls", NUMBER_WIDTH, lambda e: e.count))
    if any(event.kernel for event in events):
        width = _width((event.kernel for event in events), None)
        columns.append(Column("Kernel", width, lambda e: e.kernel))
    if any(event.node_id != -1 for event in events):
        columns.append(Column("Node ID", NUMBER_WIDTH, lambda e: e.node_id))
    if any(event.input_shapes for event in events):
        columns.append(_shapes_column(events, max_shapes_column_width))
    source: Column | None = None
    if any(event.stack for event in events):
        source = _source_column(events, max_src_column_width)
        columns.append(source)
    if with_flops and any(event.flops > 0 for event in events):
        columns.append(_flops_column(min(e.flops for e in events if e.flops > 0)))
    if line_width is not None and source is None:
        columns = fitted(columns, events, line_width)

    rule = "".join("-" * column.width + GAP for column in columns)
    lines: list[str] = []
    if header is not None:
        lines += ["=" * (len(rule) - len(GAP)), header]
    if top_level_events_only:
        lines += [
            "=" * (len(rule) - len(GAP)),
            "This report only display top-level ops statistics",
        ]
    lines += [rule, "".join(c.fit(c.heading) + GAP for c in columns), rule]
    shown = [e for e in events if not (top_level_events_only and e.cpu_parent is not None)]
    for event in shown if row_limit is None or row_limit < 0 else shown[:row_limit]:
        lines.append("".join(column.fit(column.cell(event)) + GAP for column in columns))
        if source is not None:
            for entry in (*event.stack[1:], ""):
                text = _tail(entry, source.width)
                lines.append("".join(c.fit(text if c is source else "") + GAP for c in columns))
    lines += [rule, f"Self CPU time total: {format_time(total, time_unit)}", ""]
    return "\n".join(lines)


def _width(texts: Any, limit: int | None) -> int:
    widest = max((len(text) for text in texts), default=0) + 4
    return widest if limit is None else min(widest, limit)


def _tail(text: str, width: int) -> str:
    """The end of a path matters more than its beginning."""
    return text if len(text) <= width else "..." + text[len(text) - width + 3 :]


def _name_columns(
    events: Sequence[Any], limit: int | None, with_overload_names: bool
) -> list[Column]:
    width = _width((event.key for event in events), limit)

    def shorten(name: str) -> str:
        if limit is not None and len(name) >= limit - 3:
            return name[: limit - 3] + "..."
        return name

    columns = [Column("Name", width, lambda e: shorten(e.key))]
    if with_overload_names:
        columns.append(Column("Overload Name", width, lambda e: shorten(e.overload_name)))
    return columns


def _time_columns(total: float, unit: str | None) -> list[Column]:
    def share_of_all(event: Any) -> object:
        return 0 if event.is_async else format_time_share(event.cpu_time_total, total)

    return [
        Column(
            "Self CPU %", NUMBER_WIDTH, lambda e: format_time_share(e.self_cpu_time_total, total)
        ),
        Column("Self CPU", NUMBER_WIDTH, lambda e: format_time(e.self_cpu_time_total, unit)),
        Column("CPU total %", NUMBER_WIDTH, share_of_all),
        Column("CPU total", NUMBER_WIDTH, lambda e: format_time(e.cpu_time_total, unit)),
        Column("CPU time avg", NUMBER_WIDTH, lambda e: format_time(e.cpu_time, unit)),
    ]


def _shapes_column(events: Sequence[Any], limit: int | None) -> Column:
    width = _width((str(event.input_shapes) for event in events), limit)
    return Column("Input Shapes", width, lambda e: str(e.input_shapes)[:width])


def _source_column(events: Sequence[Any], limit: int | None) -> Column:
    width = _width((entry for event in events for entry in event.stack), limit)

    def innermost(event: Any) -> str:
        return _tail(event.stack[0], width) if event.stack else ""

    return Column("Source Location", width, innermost, "<")


def _flops_column(smallest: int) -> Column:
    """In the unit that suits the smallest number."""
    power = 0
    while power < len(FLOPS_UNITS) - 1 and smallest >= 1000 ** (power + 1):
        power += 1
    return Column(
        f"Total {FLOPS_UNITS[power]}",
        NUMBER_WIDTH,
        lambda e: f"{e.flops / 1000**power:8.3f}" if e.flops > 0 else "--",
    )
