"""Selective checkpointing: a policy selects the operators' results that are saved and not
recomputed."""

from __future__ import annotations

# Interpreted: the policy is the user's, and it subclasses Enum.
import contextlib
import enum
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from plugrad.device import as_device
from plugrad.dispatch.backends.active import default_device, generator_of
from plugrad.dispatch.listener import Trace
from plugrad.dispatch.local_state import LocalState
from plugrad.dispatch.operator import Operator
from plugrad.dispatch.scope import Scope
from plugrad.ops.namespace import OpOverload, overload_of
from plugrad.tensor.base import TensorBase, detached, version_of

__all__ = ["CheckpointPolicy", "SelectiveCheckpointContext", "create_selective_checkpoint_contexts"]


class CheckpointPolicy(enum.Enum):
    """What happens to the result of an operator in a checkpointed function.

    SAVE keeps it, so that backward does not compute it again; RECOMPUTE frees it; CPU_OFFLOAD
    keeps a copy on the CPU. MUST and PREFER do the same here: nothing else decides.

    >>> import plugrad
    >>> plugrad.utils.checkpoint.CheckpointPolicy(0)
    <CheckpointPolicy.MUST_SAVE: 0>
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_SAVED = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
_OFFLOADED = (CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD)


class SelectiveCheckpointContext:
    """Further information for a policy, besides the operator and its arguments.

    Attributes:
        is_recompute: False: a policy is called in the first run only.
        op_output: what the operator returned.

    >>> import plugrad
    >>> plugrad.utils.checkpoint.SelectiveCheckpointContext(is_recompute=False).is_recompute
    False
    """

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


Policy = Callable[..., CheckpointPolicy | bool]


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Policy | Sequence[OpOverload], allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """Two context managers for `checkpoint`: they keep the results of some operators.

    The policy decides only about operators that have a derivative formula, such as
    ``plugrad.mm.default`` in a `matmul`. Views, operators that write to their arguments and those
    that draw random numbers always run again: the first two cost little, and others would draw
    other numbers.

    Args:
        policy_fn_or_list: the operators to keep; or a function of a `SelectiveCheckpointContext`,
            an operator (an `OpOverload`) and its arguments that returns a `CheckpointPolicy`.
        allow_cache_entry_mutation: whether kept results may be written to before backward.

    Raises:
        TypeError: it is neither a function nor a list.
        ValueError: an item of the list is not an `OpOverload`.
        RuntimeError: in backward, if a kept result was written to; or in a second backward pass
            over the same function.

    >>> import functools, plugrad
    >>> from plugrad.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> keep = [plugrad.ops.plugrad.mm.default]
    >>> x = plugrad.ones(2, 2, requires_grad=True)
    >>> y = checkpoint(
    ...     lambda x: plugrad.mm(x, x).exp(),
    ...     x,
    ...     use_reentrant=False,
    ...     context_fn=functools.partial(create_selective_checkpoint_contexts, keep),
    ... )
    >>> y.sum().backward()
    """
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, OpOverload):
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} of type "
                    f"{type(op)}. Please name one overload: for example, if you have "
                    "`plugrad.ops.plugrad.mm`, change it to `plugrad.ops.plugrad.mm.default`."
                )
        policy: Policy = _OneOf(policy_fn_or_list)
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    cache = _Cache(allow_cache_entry_mutation)
    return _Block(lambda outer: _Keeping(outer, policy, cache)), _Block(
        lambda outer: _Returning(outer, cache)
    )


class _OneOf:
    """The policy that keeps the results of some operators."""

    def __init__(self, ops: list[OpOverload]) -> None:
        self.ops = {op.op for op in ops}

    def __call__(self, context: SelectiveCheckpointContext, op: OpOverload, *args: Any) -> bool:
        return op.op in self.ops


class _Kept:
    """The result of one call.

    Attributes:
        version: how often its memory had been written to.
    """

    def __init__(self, tensor: TensorBase, offload: bool) -> None:
        self.device = tensor.device
        public: Any = detached(tensor)
        self.tensor: Any = public.cpu() if offload else public
        self.version = version_of(self.tensor)

    def value(self, may_differ: bool) -> Any:
        """A tensor on its memory.

        Raises:
            RuntimeError: it was written to.
        """
        if version_of(self.tensor) != self.version and not may_differ:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated"
            )
        return detached(self.tensor.to(self.device))


class _Cache:
    """The results that were kept in the first run: by operator, and by the number of its call."""

    def __init__(self, may_differ: bool) -> None:
        self.may_differ = may_differ
        self.results: dict[tuple[Operator, int], Any] = {}
        self.used = False


class _Selective(Trace):
    """Sees the calls of operators below autograd, except those that they make themselves."""

    def __init__(self, outer: Trace | None, cache: _Cache) -> None:
        super().__init__(outer)
        self.cache = cache
        self._counts: defaultdict[Operator, int] = defaultdict(int)
        self._within = False

    def dispatch(self, kind: str, op: Operator, keyset: Any, args: tuple[object, ...]) -> Any:
        """Runs an operator, or does something else."""
        if kind != "redispatch" or self._within or not _is_function(op):
            return super().dispatch(kind, op, keyset, args)
        number = self._counts[op]
        self._counts[op] += 1
        self._within = True
        try:
            return self.handle(
                op, number, args, lambda: Trace.dispatch(self, kind, op, keyset, args)
            )
        finally:
            self._within = False

    def handle(
        self, op: Operator, number: int, args: tuple[object, ...], run: Callable[[], Any]
    ) -> Any:
        """What the operator's `number`-th call returns."""
        raise NotImplementedError


class _Keeping(_Selective):
    """The first run."""

    def __init__(self, outer: Trace | None, policy: Policy, cache: _Cache) -> None:
        super().__init__(outer, cache)
        self._policy = policy

    def handle(
        self, op: Operator, number: int, args: tuple[object, ...], run: Callable[[], Any]
    ) -> Any:
        if isinstance(self._policy, _OneOf) and op not in self._policy.ops:
            return run()
        before = _random_states(args)
        result = run()
        context = SelectiveCheckpointContext(is_recompute=False, op_output=result)
        decided = self._policy(context, overload_of(op), *args)
        if isinstance(decided, bool):
            decided = CheckpointPolicy.MUST_SAVE if decided else CheckpointPolicy.PREFER_RECOMPUTE
        if decided in (*_SAVED, *_OFFLOADED) and _same(before, _random_states(args)):
            offload = decided in _OFFLOADED
            self.cache.results[op, number] = _map(result, lambda t: _Kept(t, offload), TensorBase)
        return result


class _Returning(_Selective):
    """A run in backward."""

    def handle(
        self, op: Operator, number: int, args: tuple[object, ...], run: Callable[[], Any]
    ) -> Any:
        kept = self.cache.results.pop((op, number), None)
        if kept is None:
            return run()
        return _map(kept, lambda k: k.value(self.cache.may_differ), _Kept)


class _Block(Scope):
    """Context manager: a listener of the thread's work."""

    def __init__(self, make: Callable[[Trace | None], _Selective]) -> None:
        self._make = make

    def read(self, state: LocalState) -> Any:
        return state.trace

    def change(self, state: LocalState) -> None:
        listener = self._make(state.trace)
        if isinstance(listener, _Returning):
            if listener.cache.used:
                raise RuntimeError(
                    "Trying to backward an extra time. You are only allowed to backward once on "
                    "any region computed under selective activation checkpoint."
                )
            listener.cache.used = True
        state.trace = listener

    def restore(self, state: LocalState, before: Any) -> None:
        state.trace = before


def _is_function(op: Operator) -> bool:
    """Whether an operator returns new memory and writes to nothing."""
    return not op.schema.mutates and not op.schema.is_view


def _map(result: Any, change: Callable[[Any], Any], kind: type) -> Any:
    if isinstance(result, kind):
        return change(result)
    if isinstance(result, (list, tuple)):
        items = [_map(item, change, kind) for item in result]
        make: Any = getattr(type(result), "_make", type(result))
        return make(items)
    return result


def _random_states(args: tuple[object, ...]) -> list[Any]:
    """The random states of the devices that an operator may draw on: others may not be there."""
    devices = {default_device(), as_device("cpu")}
    devices.update(value.device for value in args if isinstance(value, TensorBase))
    states = []
    for device in devices:
        with contextlib.suppress(NotImplementedError):
            states.append(generator_of(device).get_state())
    return states


def _same(before: list[Any], after: list[Any]) -> bool:
    return [_comparable(state) for state in before] == [_comparable(state) for state in after]


def _comparable(state: Any) -> Any:
    """A backend's random state is a tensor, an array, or something of Python's."""
    return state.tolist() if hasattr(state, "tolist") else state
