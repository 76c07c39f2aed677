"""EventList: the result of a profiler; groups events, prints them and writes them to files."""

from __future__ import annotations

# Interpreted: its class subclasses list.
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from plugrad.autograd.profiler.chrome_trace import TraceContext, write_chrome_trace
from plugrad.autograd.profiler.events import FunctionEvent, FunctionEventAvg
from plugrad.autograd.profiler.fitting import terminal_width
from plugrad.autograd.profiler.page import write_page
from plugrad.autograd.profiler.table import build_table
from plugrad.tensor.calls.annotations import explains

STACK_METRICS = ("self_cpu_time_total",)


class EventList(list[Any]):
    """A list of `FunctionEvent`s, in the order in which they began, or of averages.

    >>> import plugrad
    >>> from plugrad.autograd.profiler import EventList, profile
    >>> with profile() as prof:
    ...     _ = plugrad.ones(2).exp()
    >>> isinstance(prof.function_events, EventList), len(prof.function_events)
    (True, 2)
    """

    @explains(name="EventList")
    def __init__(
        self,
        events: Iterable[Any] = (),
        *,
        profile_memory: bool = False,
        with_flops: bool = False,
        by_overload_name: bool = False,
    ) -> None:
        super().__init__(events)
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._by_overload_name = by_overload_name
        self._tree_built = False
        self._context = TraceContext()

    def __str__(self) -> str:
        """The table, as wide as the terminal that it is printed to, or as `COLUMNS` sets."""
        return self._table(line_width=terminal_width())

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds in all events, each one counted once.

        >>> import plugrad
        >>> from plugrad.autograd.profiler import profile
        >>> with profile() as prof:
        ...     _ = plugrad.ones(2).exp()
        >>> prof.function_events.self_cpu_time_total > 0
        True
        """
        return float(sum(event.self_cpu_time_total for event in self))

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int | None = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as a table, one line each.

        Args:
            sort_by: the attribute to sort by, the largest first: ``cpu_time``, ``cpu_time_total``,
                ``self_cpu_time_total``, ``cpu_memory_usage``, ``self_cpu_memory_usage``,
                ``count``, ``flops``. None leaves the order as it is.
            row_limit: the number of rows to print; -1 or None prints all.
            top_level_events_only: leave out events that ran within another event.
            time_unit: "s", "ms" or "us" for all times; None suits the unit to the number.

        >>> import plugrad
        >>> from plugrad.autograd.profiler import profile
        >>> with profile() as prof:
        ...     _ = plugrad.ones(2).exp()
        >>> table = prof.function_events.table(sort_by="cpu_time_total", row_limit=5)
        >>> "plugrad::exp" in table
        True
        """
        return self._table(
            sort_by,
            row_limit,
            max_src_column_width,
            max_name_column_width,
            max_shapes_column_width,
            header,
            top_level_events_only,
            time_unit,
        )

    def _table(
        self,
        sort_by: str | None = None,
        row_limit: int | None = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
        line_width: int | None = None,
    ) -> str:
        return build_table(
            self,
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            top_level_events_only=top_level_events_only,
            time_unit=time_unit,
            line_width=line_width,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
            with_overload_names=self._by_overload_name,
        )

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """One `FunctionEventAvg` for all events of a name.

        Args:
            group_by_input_shapes: keep apart events with arguments of different shapes.
            group_by_stack_n: keep apart events that differ in their innermost callers; how many of
                them.
            group_by_overload_name: keep apart the overloads of an operator.

        >>> import plugrad
        >>> from plugrad.autograd.profiler import profile
        >>> with profile(record_shapes=True) as prof:
        ...     _ = plugrad.ones(2).exp(), plugrad.ones(3).exp()
        >>> averages = prof.function_events.key_averages(group_by_input_shapes=True)
        >>> [(one.input_shapes, one.count) for one in averages if one.key == "plugrad::exp"]
        [([[2]], 1), ([[3]], 1)]
        """
        if not self._tree_built:
            raise AssertionError("Expected tree to be built before calling key_averages")
        groups: dict[tuple[Any, ...], FunctionEventAvg] = {}
        for event in self:
            key = (
                event.key,
                event.node_id,
                event.is_user_annotation,
                event.overload_name if group_by_overload_name else None,
                str(event.input_shapes) if group_by_input_shapes else None,
                *event.stack[:group_by_stack_n],
            )
            groups.setdefault(key, FunctionEventAvg()).add(event)
        for average in groups.values():
            average.stack = average.stack[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = ""
            if not group_by_overload_name:
                average.overload_name = ""
        return EventList(
            groups.values(),
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
            by_overload_name=group_by_overload_name,
        )

    def total_average(self) -> FunctionEventAvg:
        """The sums over all events, under the key "Total".

        What ran within another event counts in `cpu_time_total` twice, in
        `self_cpu_time_total` once.

        >>> import plugrad
        >>> from plugrad.autograd.profiler import profile
        >>> x = plugrad.ones(2)
        >>> with profile() as prof:
        ...     _ = x.exp(), x.sin()
        >>> total = prof.function_events.total_average()
        >>> total.key, total.count
        ('Total', 2)
        """
        return FunctionEventAvg.total_of(self)

    def export_chrome_trace(self, path: str) -> None:
        """Write a trace that https://ui.perfetto.dev and chrome://tracing show."""
        write_chrome_trace(path, self, self._context)

    def export_html(self, path: str) -> None:
        """Write a page of HTML: a flame graph for each thread, and memory over time.

        The page needs no network. Memory is shown with ``profile_memory=True``.
        """
        write_page(path, self, self._context)

    def supported_export_stacks_metrics(self) -> list[str]:
        """What `export_stacks` can weigh stacks by.

        >>> from plugrad.autograd.profiler import EventList
        >>> EventList().supported_export_stacks_metrics()
        ['self_cpu_time_total']
        """
        return list(STACK_METRICS)

    def export_stacks(self, path: str, metric: str) -> None:
        """Write one line per event, for flame graphs: its callers, outermost first, and a number.

        Raises:
            ValueError: the metric is none of `supported_export_stacks_metrics()`.
        """
        if metric not in STACK_METRICS:
            raise ValueError(f"metric should be one of: {list(STACK_METRICS)}")
        # What separates frames and the number must not occur in a frame.
        cleaned = str.maketrans(" ;\t\n", "____")
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                value = int(getattr(event, metric))
                if event.stack and value > 0:
                    frames = [entry.translate(cleaned) for entry in reversed(event.stack)]
                    file.write(f"{';'.join(frames)} {value}\n")

    def _build_tree(self) -> None:
        """Find the nesting of events that were recorded without it."""
        self._populate_cpu_children()
        self._tree_built = True

    def _populate_cpu_children(self) -> None:
        """On each thread, an event is the child of the smallest event that contains it.

        If two events overlap, the later one becomes the parent of the next.
        """
        synchronous = [event for event in self if not event.is_async]

        def thread_of(event: FunctionEvent) -> tuple[int, int]:
            return event.thread, event.node_id

        for _, group in groupby(sorted(synchronous, key=thread_of), key=thread_of):
            open_events: list[FunctionEvent] = []
            for event in sorted(group, key=lambda e: (e.time_range.start, -e.time_range.end)):
                time = event.time_range
                while open_events and (
                    time.start >= open_events[-1].time_range.end
                    or time.end > open_events[-1].time_range.end
                ):
                    open_events.pop()
                if open_events:
                    open_events[-1].append_cpu_child(event)
                    event.set_cpu_parent(open_events[-1])
                open_events.append(event)
