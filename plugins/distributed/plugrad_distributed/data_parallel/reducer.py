"""Reducer: averages gradients over ranks, bucket by bucket, while backward still runs."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import plugrad
from plugrad import Tensor
from plugrad._C import _current_autograd_node
from plugrad_distributed.data_parallel.buckets import Bucket, GradBucket, assign_buckets
from plugrad_distributed.distributed.collectives import all_reduce, broadcast
from plugrad_distributed.futures import Future
from plugrad_distributed.groups.process_group import ProcessGroup
from plugrad_distributed.groups.work import Work
from plugrad_distributed.reduce_op import ReduceOp

__all__ = ["CommHook", "Reducer", "after_pass"]

CommHook = Callable[[Any, GradBucket], Any]


class Reducer:
    """Reduces the gradients of a model's parameters.

    A hook on each parameter runs when its gradient of this backward pass is complete. When all
    gradients of a bucket are complete, the bucket is filled and its reduction starts; all ranks
    reduce buckets in the same order. At the end of the backward pass, a callback of the engine
    waits for the reductions and distributes the results. After the first pass the buckets are
    rebuilt in the order in which gradients arrived on the first rank.

        forward ─ prepare ─ backward ─ arrived(i) … ─ start bucket 0 … ─ arrived(j) … ─ finish
                                          │ fill, divide, all_reduce ─────── wait ────────┘

    Args:
        named: the parameters and their names.
        limits: bytes after which a bucket is full; see `assign_buckets`.
        as_view: gradients are views of the buckets afterwards.
        find_unused: each pass determines which parameters are used.
        static_graph: the first pass determines it, and how often each gradient arrives.
        dtype: the dtype in which floating point gradients are reduced; by default their own.
    """

    def __init__(
        self,
        named: Sequence[tuple[str, Tensor]],
        group: ProcessGroup,
        limits: Sequence[int],
        *,
        as_view: bool = False,
        find_unused: bool = False,
        static_graph: bool = False,
        dtype: Any = None,
    ) -> None:
        self.dtype = dtype
        self.names = [name for name, _ in named]
        self.parameters = [parameter for _, parameter in named]
        self.group = group
        self.limits = list(limits)
        self.as_view = as_view
        self.find_unused = find_unused and not static_graph
        self.static_graph = static_graph
        self.divisor = group.size()
        self.comm_hook: tuple[Any, CommHook] | None = None
        self._lock = threading.RLock()
        count = len(self.parameters)
        # Gradients of later layers arrive first.
        self.order = list(range(count))[::-1]
        self._make_buckets()
        self.rebuilt = False
        self._arrived_once: list[int] | None = None
        self._expecting = False
        self._unfinished = False
        self._finished_inside = False
        self._arrivals: list[int] = []
        self._unused: list[int] = []
        self._marked_unused = False
        self._used = [0] * count
        # How often gradients arrived on all ranks together, if that is needed.
        self._somewhere: list[int] | None = None
        # How often gradients arrive in a static graph, once it is known.
        self._visits: list[int] | None = None
        self._left: list[int] = [0] * count
        self._register_hooks()

    def _register_hooks(self) -> None:
        """The hooks refer to the reducer weakly and are removed with it."""
        weak = weakref.ref(self)

        def hook(index: int, parameter: Tensor) -> None:
            reducer = weak()
            if reducer is not None:
                reducer._arrived(index)

        handles = [
            parameter.register_post_accumulate_grad_hook(partial(hook, index))
            for index, parameter in enumerate(self.parameters)
        ]
        self.remove_hooks = weakref.finalize(self, _remove, handles)

    def _make_buckets(self) -> None:
        self.buckets = [
            Bucket(indices, [self.parameters[index] for index in indices], self.dtype)
            for indices in assign_buckets(self.parameters, self.order, self.limits)
        ]
        self._bucket_of = {index: bucket for bucket in self.buckets for index in bucket.indices}
        self._next = 0
        self._ready: set[int] = set()

    # Before backward

    def check_finished(self) -> None:
        """Raise if the reduction of the previous pass is not finished.

        Raises:
            RuntimeError: parameters got no gradient in it.
        """
        if not self._unfinished:
            return
        missing = [index for index in range(len(self.parameters)) if index not in self._ready]
        names = ", ".join(self.names[index] for index in missing)
        raise RuntimeError(
            "Expected to have finished reduction in the prior iteration before starting a new one. "
            f"These parameters got no gradient on rank {self.group.ranks[self.group.rank()]}: "
            f"{names} (parameter indices {missing}). If forward does not use them in every "
            "iteration, pass find_unused_parameters=True to DistributedDataParallel, and make the "
            "loss of the tensors in forward's return value. If backward failed half way, make the "
            "DistributedDataParallel module anew."
        )

    def rebuild(self) -> bool:
        """Rebuild the buckets once, after the first reduction, in the order of arrival on the first
        rank. All ranks call this before forward."""
        self.check_finished()
        self._finished_inside = False
        if self.rebuilt or self._arrived_once is None or self.find_unused:
            return False
        order = plugrad.tensor(self._arrived_once)
        broadcast(order, group=self.group, group_src=0)
        found = order.tolist()
        self.rebuilt = True
        if found == self.order:
            return True
        self.order = found
        former = {id(view) for bucket in self.buckets for view in bucket.views}
        kept = {id(p): p.grad for p in self.parameters if id(p.grad) in former}
        self._make_buckets()
        with plugrad.no_grad():
            # Gradients that were views of the old buckets become views of the new ones.
            for bucket in self.buckets:
                for parameter, view in zip(bucket.parameters, bucket.views, strict=True):
                    grad = kept.get(id(parameter))
                    if grad is not None:
                        view.copy_(grad)
                        parameter.grad = view
        return True

    def prepare(self, outputs: Sequence[Tensor]) -> None:
        """Expect a backward pass, from these outputs if unused parameters are to be found."""
        self._expecting = True
        self._arrivals = []
        self._marked_unused = False
        self._reset()
        if self.find_unused:
            reached = _reached(outputs)
            self._unused = [
                index for index, p in enumerate(self.parameters) if id(p) not in reached
            ]
        elif self._visits is not None:
            self._left = list(self._visits)
            self._unused = [index for index, count in enumerate(self._visits) if count == 0]
        else:
            self._unused = []

    def _reset(self) -> None:
        self._next = 0
        self._ready = set()
        for bucket in self.buckets:
            bucket.pending = len(bucket.indices)
            bucket.future = None

    # During backward

    def _arrived(self, index: int) -> None:
        """A gradient was accumulated."""
        with self._lock:
            asked = self.find_unused or (self.static_graph and self._visits is None)
            # Also in passes without reduction: they count for the next pass with reduction.
            if asked and self.parameters[index].grad is not None:
                self._used[index] += 1
            if self._finished_inside:
                # Reentrant: the pass around the reduced one is still running.
                self._raise_twice(index)
            if not self._expecting:
                return
            self._arrivals.append(index)
            if self.static_graph and self._visits is None:
                # How often gradients arrive is known only at the end of the pass.
                return
            if not self._marked_unused:
                self._marked_unused = True
                self._unfinished = True
                for unused in self._unused:
                    self._mark(unused)
            if self._visits is not None:
                self._left[index] -= 1
                if self._left[index] > 0:
                    return
            self._mark(index)

    def _mark(self, index: int) -> None:
        """The gradient of a parameter is complete."""
        if index in self._ready:
            self._raise_twice(index)
        self._ready.add(index)
        bucket = self._bucket_of[index]
        bucket.pending -= 1
        while self._next < len(self.buckets) and not self.buckets[self._next].pending:
            self._start(self._next)
            self._next += 1
            if self._next == len(self.buckets):
                after_pass(self._finish)

    def _raise_twice(self, index: int) -> NoReturn:
        raise RuntimeError(
            "Expected to mark a variable ready only once. The gradient of parameter "
            f"{self.names[index]!r} (index {index}) arrived twice in one backward pass, or "
            "although the outputs of forward do not depend on it. Reasons are: the parameter "
            "is used outside of forward; or it is used in several parts of the model that run "
            "backward on their own, as reentrant checkpoints do. If the graph is the same in "
            "every iteration, pass static_graph=True to DistributedDataParallel."
        )

    def _start(self, number: int) -> None:
        """Start the reduction of a bucket, and let earlier ones progress."""
        bucket = self.buckets[number]
        with plugrad.no_grad():
            bucket.gather()
            bucket.future = self.reduce(self._shown(number, bucket.flat))
        for former in self.buckets[:number]:
            if isinstance(former.future, Work):
                former.future.is_completed()

    def _shown(self, number: int, flat: Tensor) -> GradBucket:
        bucket = self.buckets[number]
        return GradBucket(number, flat, bucket.parameters, number == len(self.buckets) - 1)

    def reduce(self, bucket: GradBucket) -> Work | Future[Any]:
        """Start to average a bucket over the ranks."""
        if self.comm_hook is not None:
            state, hook = self.comm_hook
            found = hook(state, bucket)
            # Any library's future will do.
            if isinstance(found, Tensor) or not callable(getattr(found, "wait", None)):
                raise TypeError(
                    "communication hook: must return a Future of a tensor "
                    f"(plugrad.futures.Future), got {type(found).__name__}"
                )
            future: Future[Any] = found
            return future
        flat = bucket.buffer()
        # Before the sum, which then cannot overflow.
        flat.div_(self.divisor)
        work = all_reduce(flat, ReduceOp.SUM, self.group, async_op=True)
        assert work is not None
        return work

    # After backward

    @property
    def is_learnt(self) -> bool:
        """Whether a static graph is known."""
        return self._visits is not None

    def begun(self) -> None:
        """The backward pass has reached the outputs of the model."""
        if self.static_graph and self._visits is None:
            after_pass(self.finish_first)

    def finish_first(self) -> None:
        """Reduce everything after the first backward pass of a static graph, and record the
        graph."""
        with self._lock:
            if not self._expecting or self._visits is not None:
                return
            self._visits = [0] * len(self.parameters)
            for index in self._arrivals:
                self._visits[index] += 1
            for number in range(len(self.buckets)):
                self._start(number)
            self._finish()

    def _finish(self) -> None:
        """Wait for all reductions and distribute the gradients."""
        with self._lock, plugrad.no_grad():
            for bucket in self.buckets:
                bucket.fill(reduced(bucket.future, bucket.flat))
            used = self._agree_on_used()
            for bucket in self.buckets:
                for position, index in enumerate(bucket.indices):
                    if used is None or used[index]:
                        bucket.hand_out(position, self.as_view)
            if self._arrived_once is None:
                self._arrived_once = _whole(self._arrivals, self.order)
            self._expecting = self._unfinished = False
            # Within a node of another pass, which continues and may bring more gradients.
            self._finished_inside = _current_autograd_node() is not None
            self._reset()

    def _agree_on_used(self) -> list[int] | None:
        """Which parameters got a gradient on any rank; None for all. The others keep their previous
        gradient."""
        if self.find_unused or (self.static_graph and self._somewhere is None):
            sums = plugrad.tensor(self._used, dtype=plugrad.int32)
            all_reduce(sums, ReduceOp.SUM, self.group)
            self._somewhere = sums.tolist()
            self._used = [0] * len(self._used)
        return self._somewhere

    def unused_anywhere(self) -> set[int]:
        """The ids of the parameters that no rank uses, in a static graph that is known."""
        if not self.static_graph or self._somewhere is None:
            return set()
        return {id(p) for p, used in zip(self.parameters, self._somewhere, strict=True) if not used}

    # On a rank that has run out of inputs, while others continue

    def shadow(self) -> None:
        """Take part in the reductions of a backward pass with zeros. The gradients are then the
        other ranks', which optimizers that join need."""
        self._arrivals = []
        self._used = [0] * len(self.parameters)
        with plugrad.no_grad():
            for number, bucket in enumerate(self.buckets):
                bucket.future = self.reduce(self._shown(number, bucket.flat.zero_()))
        self._finish()


def reduced(future: Work | Future[Any], flat: Tensor) -> Tensor:
    """The result of a reduction, once it is complete."""
    if isinstance(future, Work):
        future.wait()
        return flat
    found = future.wait()
    if isinstance(found, list | tuple) and len(found) == 1:
        # The future of a plain operation, without `then`.
        found = found[0]
    if not isinstance(found, Tensor) or found.numel() != flat.numel():
        raise TypeError(
            f"communication hook: its future must give a tensor of {flat.numel()} elements, got "
            f"{list(found.shape) if isinstance(found, Tensor) else type(found).__name__}"
        )
    return found


def _whole(arrivals: Sequence[int], order: Sequence[int]) -> list[int]:
    """The order of arrival, each parameter once; those that did not arrive come last."""
    return list(dict.fromkeys([*arrivals, *order]))


def _reached(outputs: Sequence[Tensor]) -> set[int]:
    """The ids of the leaves that tensors were computed from."""
    waiting: list[Any] = [t.grad_fn for t in outputs if t.grad_fn is not None]
    found = {id(t) for t in outputs if t.grad_fn is None}
    seen = {id(node) for node in waiting}
    nodes = list(waiting)
    while waiting:
        node = waiting.pop()
        variable = getattr(node, "variable", None)
        if variable is not None:
            found.add(id(variable))
        for following, _ in node.next_functions:
            if following is not None and id(following) not in seen:
                seen.add(id(following))
                # Kept alive, so that no other node gets its id.
                nodes.append(following)
                waiting.append(following)
    return found


def after_pass(callback: Callable[[], None]) -> None:
    """Call a function when the running backward pass is complete."""
    engine: Any = getattr(Tensor, "_execution_engine")  # noqa: B009 - missing from the types
    engine.queue_callback(callback)


def _remove(handles: Sequence[Any]) -> None:
    for handle in handles:
        handle.remove()
