"""CUDA graphs: a step is captured once, and replayed with one launch.

A capture contains the kernels and the addresses they work on. So memory that is allocated during
the capture belongs to the graph, and new inputs are copied to the addresses of the captured ones.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import plugrad
from plugrad.plugins.arguments import explains
from plugrad.plugins.scopes import Locked, Scope, hold_while_forking
from plugrad_cuda import library
from plugrad_cuda.devices import synchronize
from plugrad_cuda.generator import default_generator
from plugrad_cuda.memory import empty_cache, lent
from plugrad_cuda.streams import Stream, StreamContext, current_of, current_stream, default_stream

_NOTHING: Final = object()
_MODES: Final = ("global", "thread_local", "relaxed")


class GraphPool:
    """Memory of graphs. Graphs that share one must be replayed in the order of their capture."""

    def __init__(self) -> None:
        self.pool: Any = library.require().cuda.MemoryPool()


def graph_pool_handle() -> GraphPool:
    """Memory for several graphs, to be passed as `pool=`."""
    return GraphPool()


class _Router:
    """Directs requests on a stream that is being captured to the graph's memory.

    CuPy has one allocator for all threads, and the engine's threads allocate, too.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        hold_while_forking(self._lock)
        self._pools: dict[tuple[int, int], GraphPool] = {}
        self._before: Any = _NOTHING

    def add(self, stream: Stream, pool: GraphPool) -> None:
        cuda = library.cupy().cuda
        with Locked(self._lock):
            if not self._pools:
                self._before = cuda.get_allocator()
                cuda.set_allocator(self.allocate)
            self._pools[stream.device_index, stream.cuda_stream] = pool

    def remove(self, stream: Stream) -> None:
        """Idempotent."""
        with Locked(self._lock):
            self._pools.pop((stream.device_index, stream.cuda_stream), None)
            if not self._pools and self._before is not _NOTHING:
                library.cupy().cuda.set_allocator(self._before)
                self._before = _NOTHING

    def allocate(self, size: int) -> Any:
        cuda = library.cupy().cuda
        index = cuda.runtime.getDevice()
        pool = self._pools.get((index, cuda.get_current_stream(index).ptr))
        return self._before(size) if pool is None else pool.pool.malloc(size)


_router: Final = _Router()


class CUDAGraph:
    """Work that was captured from one stream, and can be replayed any number of times.

    Between `capture_begin` and `capture_end` nothing runs: kernels go into the graph. Nothing may
    wait for the GPU then: no `.item()`, no copies to the host, no decisions by values.
    """

    def __init__(self) -> None:
        self._graph: Any = None
        self._pool: GraphPool | None = None
        self._stream: Stream | None = None
        self._draws: list[_Draws] = []

    def capture_begin(
        self, pool: GraphPool | None = None, capture_error_mode: str = "global"
    ) -> None:
        """Capture the work of the current stream from now on.

        Args:
            pool: memory that is shared with other graphs, by default the graph's own.
            capture_error_mode: as in PyTorch; CuPy always captures in the mode "relaxed", so the
                caller must avoid what a capture forbids.

        Raises:
            ValueError: no such mode.
            RuntimeError: the stream is the default one, which CUDA does not capture; the graph was
                captured already.
        """
        if capture_error_mode not in _MODES:
            raise ValueError(f"capture_error_mode must be one of {_MODES}")
        if self._graph is not None or self._stream is not None:
            raise RuntimeError("This CUDAGraph instance already owns a captured graph.")
        stream = current_stream()
        if stream == default_stream(stream.device_index):
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream. (However, after capture, "
                "it's ok to replay them on the default stream.)"
            )
        self._pool = graph_pool_handle() if pool is None else pool
        self._draws = [_Draws(stream.device_index)]
        self._stream = stream
        try:
            _router.add(stream, self._pool)
            lent.capturing.add(self)
            stream._raw.begin_capture()
            for draws in self._draws:
                draws.begin()
        except BaseException:
            self.abandon()
            raise

    def capture_end(self) -> None:
        """End the capture that `capture_begin` began, on the same stream.

        Raises:
            RuntimeError: there is none; or CUDA reports an operation that a graph cannot
                contain.
        """
        stream = self._stream
        if stream is None:
            raise RuntimeError("capture_end() called without capture_begin()")
        try:
            self._graph = stream._raw.end_capture()
        except BaseException:
            # It need not have come to the end of the capture.
            self.abandon()
            raise
        self._leave(stream)

    def abandon(self) -> None:
        """End a failed capture at any point, and discard it."""
        stream = self._stream
        if stream is not None:
            try:
                if stream._raw.is_capturing():
                    stream._raw.end_capture()
            finally:
                self._leave(stream)

    def _leave(self, stream: Stream) -> None:
        """Undo what `capture_begin` did beside the capture. Idempotent."""
        for draws in self._draws:
            draws.end()
        lent.capturing.discard(self)
        _router.remove(stream)
        self._stream = None

    def replay(self) -> None:
        """Run the captured work on the current stream, with one launch.

        Random numbers continue from the generator's state; this costs one more launch.
        """
        if self._graph is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        for draws in self._draws:
            draws.go_on()
        self._graph.launch(current_stream()._raw)

    def pool(self) -> GraphPool:
        """The graph's memory, to be passed to another one's `capture_begin`."""
        if self._pool is None:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return self._pool

    def reset(self) -> None:
        """Discard the captured work; its memory is freed once no tensor refers to it."""
        self._graph = None
        self._pool = None
        self._draws = []

    def debug_dump(self, debug_path: str) -> None:
        """Write the graph as a text for Graphviz."""
        if self._graph is None:
            raise RuntimeError("there is nothing to dump before a capture")
        with open(debug_path, "w", encoding="utf-8") as file:
            file.write(self._graph.debug_dot_str())


class _Draws:
    """The random numbers of a graph: each replay draws others, as the step itself would."""

    def __init__(self, index: int) -> None:
        self._generator = default_generator(index)
        self._cell = library.cupy().zeros((1,), "int64")
        self._first = 0
        self._count = 0

    def begin(self) -> None:
        self._first = self._generator.draws
        self._generator.later = self._cell

    def end(self) -> None:
        """The draws of the capture were none: the first replay makes them."""
        if self._generator.later is self._cell:
            self._count = self._generator.draws - self._first
            self._generator.later = None
            self._generator.draws = self._first

    def go_on(self) -> None:
        if self._count:
            self._cell.fill(self._generator.draws - self._first)
            self._generator.draws += self._count


class graph(Scope):
    """``with graph(g):`` captures the work inside, on a separate stream.

    Args:
        cuda_graph: receives the captured work.
        pool: memory that is shared with other graphs.
        stream: the stream to capture, by default a new one.
        capture_error_mode: see `CUDAGraph.capture_begin`.
    """

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: GraphPool | None = None,
        stream: Stream | None = None,
        capture_error_mode: str = "global",
    ) -> None:
        self.cuda_graph = cuda_graph
        self.pool = pool
        self.capture_error_mode = capture_error_mode
        # Its own stream: memory that is freed on it is not used elsewhere.
        self.capture_stream = Stream() if stream is None else stream
        self._context = StreamContext(self.capture_stream)
        self._captures = False

    def read(self, state: Any) -> tuple[int, Stream] | None:
        return self._context.read(state)

    def change(self, state: Any) -> None:
        synchronize(self.capture_stream.device_index)
        gc.collect()
        empty_cache()
        self._context.change(state)
        self.cuda_graph.capture_begin(self.pool, self.capture_error_mode)
        self._captures = True

    def restore(self, state: Any, before: tuple[int, Stream] | None) -> None:
        try:
            if self._captures and self.cuda_graph._stream is not None:
                self._captures = False
                self.cuda_graph.capture_end()
        finally:
            self.cuda_graph.abandon()
            self._context.restore(state, before)


class CapturedStep:
    """A step that is replayed. Call it as the step: with tensors of the shapes of the examples.

    Attributes:
        graph: the graph to replay.
        inputs: the tensors that it reads; calls copy their arguments there.
        outputs: the results of the step: every call writes to the same tensors.
    """

    def __init__(self, graph: CUDAGraph, inputs: Sequence[Any], outputs: Any) -> None:
        self.graph = graph
        self.inputs = inputs
        self.outputs = outputs

    def __call__(self, *args: Any) -> Any:
        if len(args) != len(self.inputs):
            raise TypeError(f"expected {len(self.inputs)} tensors, got {len(args)}")
        with plugrad.no_grad():
            for static, given in zip(self.inputs, args, strict=True):
                if given.shape != static.shape or given.dtype != static.dtype:
                    raise RuntimeError(
                        f"the step was captured with {static.dtype} {list(static.shape)}, got "
                        f"{given.dtype} {list(given.shape)}: capture it again"
                    )
                if given is not static:
                    static.copy_(given)
        self.graph.replay()
        return self.outputs


@explains
def capture(step: Callable[..., Any], *example: Any, warmup: int = 3) -> CapturedStep:
    """Capture a step so that it runs with one launch, including backward and the optimizer.

    The step runs `warmup` times, for real, on the stream that is then captured. Objects that
    it makes once (kernels, `.grad`, an optimizer's state) then exist before the capture, which
    itself runs nothing. The step must do the same every time: no decisions by values, no waiting
    for the GPU. Gradients must keep their memory: use ``zero_grad(set_to_none=False)``, or set
    them to None in the step, so that the graph makes them.

    Args:
        step: a function of tensors.
        example: tensors on the GPU, of the shapes and dtypes that the step is called with.
        warmup: how often it runs before; at least once.

    Raises:
        RuntimeError: there is no GPU; or the step cannot be captured, with CUDA's message.

    >>> import plugrad
    >>> def capture(model, loss_of, optimizer, x, y):
    ...     def step(x, y):
    ...         optimizer.zero_grad(set_to_none=True)
    ...         loss = loss_of(model(x), y)
    ...         loss.backward()
    ...         optimizer.step()
    ...         return loss
    ...     return plugrad.cuda.capture(step, x, y)
    """
    if warmup < 1:
        raise ValueError("run the step once before you capture it")
    library.require()
    stream = Stream()
    stream.wait_stream(current_stream())
    with StreamContext(stream):
        inputs = [tensor.detach().clone() for tensor in example]
        for tensor, static in zip(example, inputs, strict=True):
            static.requires_grad_(tensor.requires_grad)
        for _ in range(warmup):
            step(*inputs)
    current_of(stream.device_index).wait_stream(stream)
    captured = CUDAGraph()
    with graph(captured, stream=stream):
        outputs = step(*inputs)
    return CapturedStep(captured, inputs, outputs)


class _Replayed:
    """The graphs of one callable: of its forward, and of its backward."""

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], warmup: int) -> None:
        self.given = len(args)
        self.parameters: list[Any] = (
            list(function.parameters()) if hasattr(function, "parameters") else []
        )
        self.inputs = [*args, *self.parameters]
        stream = Stream()
        stream.wait_stream(current_stream())
        with StreamContext(stream):
            for _ in range(warmup):
                self._gradients(function(*args))
        current_stream().wait_stream(stream)
        pool = graph_pool_handle()
        self.forward = CUDAGraph()
        with graph(self.forward, pool, stream):
            self.outputs = function(*args)
        self.single = not isinstance(self.outputs, tuple)
        self._flat = (self.outputs,) if self.single else self.outputs
        with StreamContext(stream):
            self.grad_outputs = [plugrad.zeros_like(output) for output in self._flat]
        self.backward = CUDAGraph()
        with graph(self.backward, pool, stream):
            self.grad_inputs = self._gradients(self.outputs, self.grad_outputs)

    def _wanted(self) -> list[Any]:
        return [tensor for tensor in self.inputs if tensor.requires_grad]

    def _gradients(self, outputs: Any, grads: Sequence[Any] | None = None) -> list[Any]:
        flat = outputs if isinstance(outputs, tuple) else (outputs,)
        needed = [number for number, one in enumerate(flat) if one.requires_grad]
        if not self._wanted() or not needed:
            return [None] * len(self.inputs)
        given = [plugrad.ones_like(one) for one in flat] if grads is None else grads
        found = iter(
            plugrad.autograd.grad(
                [flat[number] for number in needed],
                self._wanted(),
                [given[number] for number in needed],
                allow_unused=True,
            )
        )
        return [next(found) if tensor.requires_grad else None for tensor in self.inputs]

    def function(self) -> Callable[..., Any]:
        graphs = self

        class Graphed(plugrad.autograd.Function):
            """Replays the forward; its gradient replays the backward."""

            @staticmethod
            def forward(ctx: Any, *args: Any) -> Any:
                for static, given in zip(graphs.inputs[: graphs.given], args, strict=False):
                    static.data.copy_(given)
                graphs.forward.replay()
                found = tuple(output.detach() for output in graphs._flat)
                return found[0] if graphs.single else found

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                for static, given in zip(graphs.grad_outputs, grads, strict=True):
                    if given is not None:
                        static.copy_(given)
                graphs.backward.replay()
                return tuple(None if one is None else one.detach() for one in graphs.grad_inputs)

        def call(*args: Any) -> Any:
            if len(args) != graphs.given:
                raise TypeError(f"expected {graphs.given} tensors, got {len(args)}")
            return Graphed.apply(*args, *graphs.parameters)

        return call


@explains
def make_graphed_callables(
    callables: Callable[..., Any] | tuple[Any, ...],
    sample_args: tuple[Any, ...],
    num_warmup_iters: int = 3,
) -> Any:
    """Versions of functions that replay forward and backward, each with one launch.

    Args:
        callables: a function of tensors or a Module, or a tuple of them. All values except their
            arguments and parameters must be constant.
        sample_args: for each a tuple of tensors on the GPU, with `requires_grad` as later ones.
        num_warmup_iters: how often each runs before its capture.
    """
    if callable(callables):
        return _Replayed(callables, sample_args, num_warmup_iters).function()
    return tuple(
        _Replayed(function, args, num_warmup_iters).function()
        for function, args in zip(callables, sample_args, strict=True)
    )
