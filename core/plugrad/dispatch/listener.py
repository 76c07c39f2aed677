"""Listeners of a thread: a chain of objects that calls, nodes and ranges pass through."""

from __future__ import annotations

from typing import Any

from mypy_extensions import i64, mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Trace:
    """Observes the work of its threads: each call passes through it before it runs.

    Listeners form a chain: each does its own part and passes the work on to `outer`; the last one
    runs it. `LocalState.trace` is the innermost. This base class only passes the work on.
    """

    def __init__(self, outer: Trace | None = None) -> None:
        self.outer = outer

    def dispatch(self, kind: str, op: Any, keyset: i64, args: tuple[object, ...]) -> Any:
        """Run the kernel of a key set; `op` is an `Operator`, `kind` is "call" or "redispatch"."""
        outer = self.outer
        if outer is not None:
            return outer.dispatch(kind, op, keyset, args)
        return op.run_heard(kind, keyset, args)

    def decline(self, operator: str, owner: str) -> None:
        """A kernel on arrays has declined a call of an operator, and the next one is tried.

        Args:
            owner: the package of the kernel.
        """
        outer = self.outer
        if outer is not None:
            outer.decline(operator, owner)

    def choose(self, operator: str, kernel: str) -> None:
        """A variant of an operator's kernel has computed a call.

        Args:
            kernel: its package and its name.
        """
        outer = self.outer
        if outer is not None:
            outer.choose(operator, kernel)

    def run_node(self, node: Any, grads: Any) -> Any:
        """Have a backward node compute the gradients of its inputs."""
        outer = self.outer
        if outer is not None:
            return outer.run_node(node, grads)
        return node.apply(grads)

    def enter_pass(self, task: Any, root: Any, counts: Any) -> None:
        """A backward pass begins; `task` identifies it until it ends.

        Args:
            root: the node that it starts with; a `GraphRoot` leads to several.
            counts: pairs of a node and the number of gradients it waits for, for all nodes that the
                root reaches.
        """
        outer = self.outer
        if outer is not None:
            outer.enter_pass(task, root, counts)

    def leave_pass(self, task: Any) -> None:
        """It ends, well or badly."""
        outer = self.outer
        if outer is not None:
            outer.leave_pass(task)

    def arrive(
        self, task: Any, node: Any, input_nr: int, grad: Any, is_sum: bool, left: int
    ) -> None:
        """A gradient, or None for zero, arrives at an input of a node.

        Args:
            is_sum: whether it is added to an earlier one.
            left: how many the node still waits for.
        """
        outer = self.outer
        if outer is not None:
            outer.arrive(task, node, input_nr, grad, is_sum, left)

    def queue_node(self, task: Any, node: Any, device: str) -> None:
        """A node with complete inputs is about to be queued.

        Args:
            device: the device with the thread that will run it; empty for the thread that waits for
                the pass.
        """
        outer = self.outer
        if outer is not None:
            outer.queue_node(task, node, device)

    def run_hook(self, node: Any, kind: str, hook: Any) -> None:
        """A hook is about to run: "tensor", "pre" or "post" of a node, "accumulate" of a leaf."""
        outer = self.outer
        if outer is not None:
            outer.run_hook(node, kind, hook)

    def release(self, node: Any) -> None:
        """A node is about to release its saved tensors."""
        outer = self.outer
        if outer is not None:
            outer.release(node)

    def enter_node(self, node: Any) -> None:
        """The engine begins with a node: hooks, `run_node`, passing on the results."""
        outer = self.outer
        if outer is not None:
            outer.enter_node(node)

    def leave_node(self, node: Any) -> None:
        """The engine is done with a node, well or badly."""
        outer = self.outer
        if outer is not None:
            outer.leave_node(node)

    def enter_function(
        self, ctx: Any, name: str, inputs: tuple[object, ...], recorded: bool
    ) -> None:
        """The forward of an `autograd.Function` begins; `ctx` is its node, in the graph if
        `recorded`."""
        outer = self.outer
        if outer is not None:
            outer.enter_function(ctx, name, inputs, recorded)

    def leave_function(self, ctx: Any, raised: bool) -> None:
        """It returns, or it has raised an exception."""
        outer = self.outer
        if outer is not None:
            outer.leave_function(ctx, raised)

    def enter_range(self, key: object, label: str, inputs: tuple[object, ...]) -> None:
        """A named block of the program begins; `key` identifies this entry."""
        outer = self.outer
        if outer is not None:
            outer.enter_range(key, label, inputs)

    def leave_range(self, key: object) -> None:
        """It ends."""
        outer = self.outer
        if outer is not None:
            outer.leave_range(key)
