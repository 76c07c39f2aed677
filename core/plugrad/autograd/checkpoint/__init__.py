"""Activation checkpointing: keep only a function's inputs, and run it again in backward."""

from __future__ import annotations

# Interpreted: what it calls takes much longer.
import contextlib
from collections.abc import Callable, Iterable
from typing import Any

from plugrad.autograd.checkpoint.operator_log import OperatorLog, log_operators
from plugrad.autograd.checkpoint.random_states import (
    RandomState,
    get_device_states,
    set_device_states,
)
from plugrad.autograd.checkpoint.recomputation import CheckpointError, Region
from plugrad.autograd.checkpoint.reentrant import (
    CheckpointFunction,
    check_backward_validity,
    detach_variable,
)
from plugrad.autograd.checkpoint.selective import (
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)
from plugrad.autograd.grad_mode import is_grad_enabled
from plugrad.dispatch.autocast import AutocastAsBefore
from plugrad.dispatch.caller import warn_at_caller
from plugrad.dispatch.local_state import LocalState, current_state
from plugrad.dispatch.scope import Scope
from plugrad.tensor.calls.annotations import explains
from plugrad.tensor.calls.arguments import int_argument

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]


class _Overrides:
    """The values that the context managers below set in place of `checkpoint`'s arguments; None:
    nothing."""

    early_stop: bool | None = None
    debug: bool | None = None


class set_checkpoint_early_stop(Scope, contextlib.ContextDecorator):
    """Context manager and decorator: whether recomputation stops once all needed tensors exist.

    It applies to calls of `checkpoint` inside, not to backward.

    Args:
        enable: whether it stops.

    >>> import plugrad
    >>> from plugrad.utils.checkpoint import checkpoint, set_checkpoint_early_stop
    >>> x = plugrad.ones(1, requires_grad=True)
    >>> with set_checkpoint_early_stop(False):
    ...     y = checkpoint(plugrad.exp, x, use_reentrant=False)
    """

    def __init__(self, enable: bool) -> None:
        self.enable = enable

    def read(self, state: LocalState) -> Any:
        return _Overrides.early_stop

    def change(self, state: LocalState) -> None:
        _Overrides.early_stop = self.enable

    def restore(self, state: LocalState, before: Any) -> None:
        _Overrides.early_stop = before


class set_checkpoint_debug_enabled(Scope, contextlib.ContextDecorator):
    """Context manager and decorator: overrides the argument `debug` of `checkpoint`.

    Args:
        enabled: the value of `debug`; None does not change it.

    >>> import plugrad
    >>> from plugrad.utils.checkpoint import checkpoint, set_checkpoint_debug_enabled
    >>> x = plugrad.ones(1, requires_grad=True)
    >>> with set_checkpoint_debug_enabled(True):
    ...     y = checkpoint(plugrad.exp, x, use_reentrant=False)
    """

    def __init__(self, enabled: bool | None) -> None:
        self.enabled = enabled

    def read(self, state: LocalState) -> Any:
        return _Overrides.debug

    def change(self, state: LocalState) -> None:
        _Overrides.debug = self.enabled

    def restore(self, state: LocalState, before: Any) -> None:
        _Overrides.debug = before


def noop_context_fn() -> tuple[Any, Any]:
    """Two context managers that do nothing.

    >>> import plugrad
    >>> len(plugrad.utils.checkpoint.noop_context_fn())
    2
    """
    return contextlib.nullcontext(), contextlib.nullcontext()


@explains
def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)`; its saved tensors are recomputed in backward instead of kept.

    This saves memory at the cost of time: only the inputs of `function` stay alive, and backward
    runs it again, with its original random state and autocast. It must do the same as the first
    time.

    Args:
        use_reentrant: False (recommended) records the graph as usual and recomputes saved tensors
            when backward needs them. True runs `function` unrecorded and, in backward, records it
            and runs its own backward pass. That works only with `backward()` without `inputs`, and
            only for tensors that are arguments themselves. The default is True, with a warning.
        context_fn: returns two context managers, for the first run and for the recomputation.
        determinism_check: "default" compares shape, dtype and device of recomputed tensors with
            the saved ones', "none" does not.
        debug: let a CheckpointError show the operators of both runs.
        early_stop: stop recomputing after the last tensor that is needed.
        preserve_rng_state: recompute with the random state of the first run; default True.

    `context_fn`, `determinism_check`, `debug`, `early_stop` and keyword arguments for `function`
    are for `use_reentrant=False`.

    Raises:
        ValueError: an argument is not supported together with another, or unknown.
        CheckpointError: in backward, if the recomputation saves other tensors than the first run.

    >>> import plugrad
    >>> from plugrad.autograd.checkpoint import checkpoint
    >>> x = plugrad.tensor([0.5, 1.], requires_grad=True)
    >>> y = checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False)
    >>> y.sum().backward()
    >>> x.grad
    tensor([1.4174, 1.2534])
    """
    if use_reentrant is None:
        warn_at_caller(
            "plugrad.utils.checkpoint: the use_reentrant parameter should be passed explicitly. "
            "Calling checkpoint without use_reentrant will raise an exception in the future. "
            "use_reentrant=False is recommended, but if you need to preserve the current default "
            "behavior, you can pass use_reentrant=True. Refer to docs for more details on the "
            "differences between the two variants.",
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if not use_reentrant:
        return _checkpoint_without_reentrant(
            function, args, kwargs, preserve, context_fn, determinism_check, debug, early_stop
        )
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug is not False:
        raise ValueError(
            "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
        )
    return CheckpointFunction.apply(function, preserve, *args)


@explains
def checkpoint_sequential(
    functions: Iterable[Any],
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Run functions in sequence, in `segments` parts, each checkpointed except the last.

    Args:
        functions: an `nn.Sequential`, or a sequence of functions of one argument.
        segments: the number of parts into which they are divided.
        input: the argument of the first one.
        preserve_rng_state, use_reentrant: as in `checkpoint`.

    Raises:
        ValueError: any other keyword argument.

    >>> import plugrad
    >>> from plugrad.autograd.checkpoint import checkpoint_sequential
    >>> x = plugrad.tensor([0.5, 1.], requires_grad=True)
    >>> steps = [plugrad.sin, plugrad.exp, plugrad.sqrt]
    >>> checkpoint_sequential(steps, 3, x, use_reentrant=False).sum().backward()
    >>> x.grad
    tensor([0.5577, 0.4115])
    """
    if use_reentrant is None:
        warn_at_caller(
            "plugrad.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be "
            "passed explicitly. In the future we will raise an exception if use_reentrant is not "
            "passed. use_reentrant=False is recommended, but if you need to preserve the current "
            "default behavior, you can pass use_reentrant=True. Refer to docs for more details on "
            "the differences between the two variants.",
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    steps = list(functions)
    segments = int_argument(segments, "checkpoint_sequential", "segments", 2)
    if not 1 <= segments <= len(steps):
        raise ValueError(
            f"checkpoint_sequential(): expected segments between 1 and the number of functions, "
            f"{len(steps)}, got {segments}"
        )
    length = len(steps) // segments
    start = 0
    for _ in range(segments - 1):
        input = checkpoint(
            _in_sequence(steps[start : start + length]),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve,
        )
        start += length
    # Its graph is needed at once: checkpointing it would save nothing.
    return _in_sequence(steps[start:])(input)


def _in_sequence(steps: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        for step in steps:
            value = step(value)
        return value

    return run


# Without a reentrant pass.


def _shape_dtype_device(tensor: Any) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


def _nothing(tensor: Any) -> None:
    return None


_DESCRIPTIONS: dict[str, Callable[[Any], Any]] = {
    "default": _shape_dtype_device,
    "none": _nothing,
}


def _checkpoint_without_reentrant(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    preserve_rng_state: bool,
    context_fn: Callable[[], tuple[Any, Any]],
    determinism_check: str,
    debug: bool,
    early_stop: bool,
) -> Any:
    logs: _DebugLogs | None = None
    if debug if _Overrides.debug is None else _Overrides.debug:
        if context_fn is not noop_context_fn:
            raise ValueError("debug=True is incompatible with non-default context_fn")
        logs = _DebugLogs()
        context_fn = logs.contexts
    if determinism_check not in _DESCRIPTIONS:
        raise ValueError(
            f"determinism_check should be one of {list(_DESCRIPTIONS)}, but got {determinism_check}"
        )
    first_context, second_context = context_fn()
    random_state = RandomState(preserve_rng_state, (args, kwargs))

    autocast = current_state().autocast

    def rerun(*again: Any) -> None:
        with random_state, AutocastAsBefore(autocast), second_context:
            function(*again, **kwargs)

    if not is_grad_enabled():
        return function(*args, **kwargs)
    region = Region(
        rerun,
        args,
        early_stop if _Overrides.early_stop is None else _Overrides.early_stop,
        _DESCRIPTIONS[determinism_check],
        None if logs is None else logs.explain,
    )
    finished = False
    with region.recorded(), first_context:
        result = function(*args, **kwargs)
        finished = True
    if finished:
        region.complete()
        return result
    raise RuntimeError(
        "plugrad.utils.checkpoint: the forward context provided by context_fn suppressed an "
        "exception raised during the checkpointed forward. This is not supported because "
        "checkpoint cannot return a value for a failed forward."
    )


class _DebugLogs:
    """The operators of the first run and of the latest recomputation."""

    def __init__(self) -> None:
        self.first = log_operators()
        self.second = log_operators()

    def contexts(self) -> tuple[Any, Any]:
        return self.first, self.second

    def explain(self, error: CheckpointError) -> CheckpointError:
        """An error that shows both runs."""
        first, second = self.first.log, self.second.log
        return CheckpointError(
            "An error happened while unpacking tensors; dumping logs of latest computation\n"
            "because you passed `debug=True` to `plugrad.utils.checkpoint.checkpoint()`.\n"
            "Scroll all the way down for guidance on how to navigate these logs.\n\n"
            "1. Stack traces of the operators that ran in the original forward\n\n"
            f"{_with_stacks(first, 'original')}\n"
            "2. Stack traces of the operators that ran during recomputation\n\n"
            f"{_with_stacks(second, 'recompute')}\n"
            "3. Log of operators in the original forward and recomputation\n\n"
            "Operations executed during the original forward:\n\n"
            + "\n".join(first.lines)
            + "\n\nOperations executed during recomputation:\n\n"
            + "\n".join(second.lines)
            + "\n\nERROR: Detected non-determinism while running activation checkpointing\n\n"
            "You are seeing this error because you passed `debug=True` to checkpoint and\n"
            "tensors to be saved during the original forward and differ between those saved\n"
            "during recomputation. This can happen if different operators were ran in the\n"
            "original forward and in the recomputation.\n\n"
            "To identify where the mismatch may be coming from, compare the two lists of\n"
            "operators above, then look up the stack trace of the first one that differs.\n\n"
            f"{error}"
        )


def _with_stacks(log: OperatorLog, label: str) -> str:
    text = ""
    for index, line in enumerate(log.lines):
        text += f"{line}   ({index + 1} of {len(log.lines)} in {label})\n\n"
        text += "\n".join(log.stacks[index]) + "\n\n"
    return text
