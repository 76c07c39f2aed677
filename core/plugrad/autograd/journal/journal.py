"""Journal: the listener that writes into a book's logs.

It runs within everything that a recorded program does, so it only writes: `events` finds out what
it means. It is compiled with the core, and it has no subclasses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from mypy_extensions import i64

from plugrad._intrinsics import log0, log1, log2
from plugrad.autograd.journal.book import Book, frame_at
from plugrad.autograd.journal.kinds import (
    BACK,
    BACKWARD,
    BACKWARD_END,
    BUFFER,
    CALL,
    COUNTS,
    DONE,
    END,
    FREE,
    FUNCTION,
    GRAD,
    HOOK,
    KERNEL,
    LEFT,
    POP,
    RAISED,
    RAN,
    READY,
    RETURNED,
    RUN,
    STEP,
)
from plugrad.autograd.variable.accumulate_grad import AccumulateGradBase
from plugrad.dispatch.listener import Trace
from plugrad.dispatch.local_state import current_state
from plugrad.graph.node import Node
from plugrad.tensor.base import TensorBase, sizes_of

if TYPE_CHECKING:
    from plugrad.dispatch.operator import Operator


def hears(book: Book) -> bool:
    """Whether something writes into a book what the calling thread does."""
    trace = current_state().trace
    while trace is not None:
        if isinstance(trace, Journal) and trace._book is book:
            return not book.closed
        trace = trace.outer
    return False


@final
class Journal(Trace):
    """Writes calls, dispatch keys, nodes, backward passes and memory into a book, at little cost.

    Several may write into one book, for example in `watching(Journal(book), Journal(book))`.
    """

    def __init__(self, book: Book) -> None:
        super().__init__(None)
        self._book = book

    # Calls and their steps.

    def dispatch(self, kind: str, op: Operator, keyset: i64, args: tuple[object, ...]) -> Any:
        book = self._book
        if book.closed:
            return self._dispatch_unheard(kind, op, keyset, args)
        if kind == "call":
            return self._call(book, op, keyset, args)
        records = book.log().records
        book.count += 2
        outer = self.outer
        log1(records, STEP, keyset, 0, op)
        try:
            if outer is None:
                result = op.run_heard(kind, keyset, args)
            else:
                result = outer.dispatch(kind, op, keyset, args)
        except BaseException:
            log0(records, BACK, 0, 0)
            raise
        log0(records, BACK, 0, 0)
        return result

    def _call(self, book: Book, op: Operator, keyset: i64, args: tuple[object, ...]) -> Any:
        log = book.log()
        records = log.records
        outer = self.outer
        given = book.note_values(args, records)
        frame = book.program_frame(log.floor)
        book.count += 4
        if book.count >= book.limit:
            book.closed = True
        if frame is None:
            log2(records, CALL, keyset, 0, given, 0, op, None)
        else:
            log2(records, CALL, keyset, frame.f_lasti, given, 0, op, frame.f_code)
        try:
            if outer is None:
                result = op.run_heard("call", keyset, args)
            else:
                result = outer.dispatch("call", op, keyset, args)
        except BaseException:
            log0(records, RETURNED, 0, 0)
            log0(records, END, RAISED, 0)
            raise
        log0(records, RETURNED, 0, 0)
        node = -1
        count = 0
        if isinstance(result, TensorBase):
            node = self._note_result(book, result, args, frame, records)
            book.note_value(result, records)
            count = 1
        elif isinstance(result, (list, tuple)):
            for each in result:
                if isinstance(each, TensorBase):
                    number = self._note_result(book, each, args, frame, records)
                    if node < 0:
                        node = number
            count = book.note_values(result, records)
        log0(records, END, node, count)
        return result

    def _note_result(
        self,
        book: Book,
        result: TensorBase,
        args: tuple[object, ...],
        frame: Any,
        records: Any,
    ) -> int:
        """Write down the node of a result, if it is new, and its memory; returns its number."""
        number: int = -1
        meta = result._autograd_meta
        if meta is not None and meta.grad_fn is not None:
            node = meta.grad_fn
            notes = node._extra
            found: int | None = None if notes is None else notes.get(book.key)
            number = book.add_node(node, frame, records) if found is None else found
        book.arrays.add(result, args, records)
        return number

    def _dispatch_unheard(
        self, kind: str, op: Operator, keyset: i64, args: tuple[object, ...]
    ) -> Any:
        state = current_state()
        outer = self.outer
        if state.trace is self and state.graph_task is None:
            state.trace = outer  # the thread began in a recording, and that is over
        if outer is None:
            return op.run_heard(kind, keyset, args)
        return outer.dispatch(kind, op, keyset, args)

    def choose(self, operator: str, kernel: str) -> None:
        book = self._book
        if not book.closed:
            log1(book.log().records, KERNEL, 0, 0, kernel)
        outer = self.outer
        if outer is not None:
            outer.choose(operator, kernel)

    # Custom Functions.

    def enter_function(
        self, ctx: Node, name: str, inputs: tuple[object, ...], recorded: bool
    ) -> None:
        book = self._book
        if not book.closed:
            number = book.functions
            book.functions = number + 1
            if recorded:
                notes = ctx._extra
                if notes is None:
                    ctx._extra = {book.maker: number}
                else:
                    notes[book.maker] = number
            log = book.log()
            records = log.records
            given = book.note_values(inputs, records)
            frame = book.program_frame(log.floor)
            code = None if frame is None else frame.f_code
            place = 0 if frame is None else frame.f_lasti
            book.count += 2
            log2(records, FUNCTION, number, place, given, 0, name, code)
        super().enter_function(ctx, name, inputs, recorded)

    def leave_function(self, ctx: Node, raised: bool) -> None:
        super().leave_function(ctx, raised)
        book = self._book
        if not book.closed:
            log0(book.log().records, LEFT, int(raised), 0)

    # Backward.

    def enter_pass(self, task: Any, root: Node, counts: Any) -> None:
        book = self._book
        if not book.closed:
            records = book.log().records
            number = book.pass_count
            book.pass_count = number + 1
            book.passes[id(task)] = number
            first = book.number(root, records)
            waiting: list[int] = []
            for node, count in counts:
                waiting.append(book.number(node, records))
                waiting.append(count)
            book.count += 2
            log0(records, BACKWARD, number, first)
            log1(records, COUNTS, 0, 0, waiting)
        outer = self.outer
        if outer is not None:
            outer.enter_pass(task, root, counts)

    def leave_pass(self, task: Any) -> None:
        book = self._book
        number = book.passes.pop(id(task), -1)
        if number >= 0 and not book.closed:
            book.count += 1
            log0(book.log().records, BACKWARD_END, number, 0)
        outer = self.outer
        if outer is not None:
            outer.leave_pass(task)

    def arrive(
        self, task: Any, node: Node, input_nr: int, grad: TensorBase | None, is_sum: bool, left: int
    ) -> None:
        book = self._book
        if not book.closed:
            records = book.log().records
            number = book.number(node, records)
            book.count += 2
            sizes: Any = None
            dtype: Any = None
            if grad is not None:
                sizes = sizes_of(grad)
                dtype = grad.dtype
            log2(records, BUFFER, number, input_nr, int(is_sum), left, sizes, dtype)
        outer = self.outer
        if outer is not None:
            outer.arrive(task, node, input_nr, grad, is_sum, left)

    def queue_node(self, task: Any, node: Node, device: str) -> None:
        book = self._book
        if not book.closed:
            records = book.log().records
            number = book.number(node, records)
            book.count += 1
            pass_number = book.passes.get(id(task), -1)
            log2(records, READY, number, pass_number, 0, 0, device, _captured(task, node))
        outer = self.outer
        if outer is not None:
            outer.queue_node(task, node, device)

    def enter_node(self, node: Node) -> None:
        book = self._book
        if not book.closed:
            records = book.log().records
            number = book.number(node, records)
            book.count += 1
            log0(records, POP, number, 0)
        outer = self.outer
        if outer is not None:
            outer.enter_node(node)

    def leave_node(self, node: Node) -> None:
        outer = self.outer
        if outer is not None:
            outer.leave_node(node)
        book = self._book
        if not book.closed:
            log0(book.log().records, DONE, 0, 0)

    def run_node(self, node: Node, grads: Any) -> Any:
        book = self._book
        outer = self.outer
        if book.closed:
            return node.apply(grads) if outer is None else outer.run_node(node, grads)
        log = book.log()
        records = log.records
        number = book.number(node, records)
        book.count += 2
        sizes: Any = None
        dtype: Any = None
        if isinstance(node, AccumulateGradBase) and grads:
            grad: Any = grads[0]
            if isinstance(grad, TensorBase):
                sizes = sizes_of(grad)
                dtype = grad.dtype
        below: Any = log.floor
        log.floor = frame_at(0)
        log0(records, RUN, number, 0)
        try:
            outputs = node.apply(grads) if outer is None else outer.run_node(node, grads)
        except BaseException:
            log.floor = below
            log0(records, RAN, number, 0)
            raise
        log.floor = below
        log0(records, RAN, number, 0)
        if sizes is not None:
            log2(records, GRAD, number, 0, 0, 0, sizes, dtype)
        return outputs

    def run_hook(self, node: Any, kind: str, hook: Any) -> None:
        book = self._book
        if node is not None and not book.closed:
            name = getattr(hook, "__qualname__", type(hook).__qualname__)
            records = book.log().records
            number = book.number(node, records)
            book.count += 1
            log2(records, HOOK, number, 0, 0, 0, kind, name)
        super().run_hook(node, kind, hook)

    def release(self, node: Node) -> None:
        book = self._book
        if not book.closed:
            records = book.log().records
            log0(records, FREE, book.number(node, records), 0)
        outer = self.outer
        if outer is not None:
            outer.release(node)


def _captured(task: Any, node: Node) -> tuple[int, ...]:
    """The inputs of a node whose gradients the pass returns to its caller."""
    exec_info: Any = task.exec_info
    if exec_info is None:
        return ()
    info: Any = exec_info.get(node)
    if info is None or info.captures is None:
        return ()
    return tuple([int(capture.input_nr) for capture in info.captures])
