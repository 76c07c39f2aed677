"""The function that `plugrad_jax.jit` returns: it finds the program for a call, or traces it."""

from __future__ import annotations

import functools
import logging
import threading
import warnings
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar, overload

import jax
import numpy as np

from plugrad.plugins.compiling.roots import PLAIN, Roots, find_roots
from plugrad.plugins.scopes import Locked, hold_while_forking
from plugrad.plugins.tracing import SameArguments, mode, situation
from plugrad_jax.capture.changes import TENSOR, Call, flatten
from plugrad_jax.capture.numbers import DeviceNumber
from plugrad_jax.capture.program import Program, Stale
from plugrad_jax.capture.tracing import Tracing
from plugrad_jax.precision import is_tracing

LOG = logging.getLogger("plugrad_jax.jit")
# A step that is traced so often for one reason is probably not meant to be.
MANY_TRACES: Final = 8

# One trace at a time: while it goes on, the tensors that it reaches have no values.
_lock = threading.RLock()
hold_while_forking(_lock)

F = TypeVar("F", bound=Callable[..., Any])


class CacheInfo(NamedTuple):
    """What a captured function has done so far.

    Attributes:
        hits: calls that found a program.
        traces: how often the function was traced.
        programs: how many programs there are.
        reasons: why it was traced, each time after the first.
    """

    hits: int
    traces: int
    programs: int
    reasons: tuple[str, ...]


class Latest(NamedTuple):
    """The forms of calls with only tensors as arguments, and their programs."""

    arguments: SameArguments
    structure: Any
    programs: list[Program]


class Captured:
    """A function that runs as one program of XLA; see `jit`.

    Attributes:
        traces: how often the function was traced.
    """

    def __init__(self, function: Callable[..., Any], donate: bool, state: Any) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._donate = donate
        self._state = state
        self._programs: dict[Any, list[Program]] = {}
        self._latest: Latest | None = None
        self._name = getattr(function, "__qualname__", repr(function))
        self._calls = 0
        self.traces = 0
        self._reasons: list[str] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if is_tracing():
            return self._function(*args, **kwargs)
        latest = self._latest
        if latest is not None and not kwargs and latest.arguments.hold(args):
            call = Call(list(args), latest.structure, only_tensors=True)
            programs = latest.programs
        else:
            call = Call(*flatten((args, kwargs)))
            programs = self._look_up(call, args)
        self._calls += 1
        with jax.enable_x64(True):
            for program in programs:
                if program.fits(call):
                    arrays = program.inputs(call)
                    if arrays is not None:
                        try:
                            return program.run(call, arrays)
                        except Stale:
                            pass
            with Locked(_lock):
                return self._slowly(call)

    def _look_up(self, call: Call, args: tuple[Any, ...]) -> list[Program]:
        """The programs for arguments of such types, found the long way; stored for the next call if
        all arguments are tensors."""
        key = self._key(call)
        programs = self._programs.setdefault(key, [])
        if len(set(map(id, call.tensors))) == len(call.leaves) == len(args) > 0:
            self._latest = Latest(SameArguments(call.tensors), call.structure, programs)
        return programs

    def _key(self, call: Call) -> Any:
        """The first key that distinguishes programs: the arguments' types."""
        tensors: list[Any] = call.tensors
        about: list[Any] = []
        for leaf in call.leaves:
            if isinstance(leaf, TENSOR):
                about.append((leaf.shape, leaf.dtype, leaf.device, type(leaf)))
            elif isinstance(leaf, jax.Array):
                about.append((leaf.shape, leaf.dtype))
            elif isinstance(leaf, PLAIN):
                about.append((type(leaf), leaf))
            elif isinstance(leaf, np.ndarray):
                raise TypeError(
                    f"{self._name}(): a captured step takes tensors, not NumPy arrays: pass "
                    "plugrad.tensor(array, device='jax')"
                )
            else:
                about.append(id(leaf))
        ids = list(map(id, tensors))
        same = None if len(set(ids)) == len(ids) else tuple([ids.index(each) for each in ids])
        return call.structure, tuple(about), tuple(situation(tensors)), same, mode()

    # When nothing fits

    def _slowly(self, call: Call) -> Any:
        """Look for a program with tensors that have moved, or trace."""
        key = self._key(call)
        self._check_arguments(call)
        arguments = [leaf for leaf in call.leaves if not isinstance(leaf, TENSOR)]
        roots = find_roots(self._function, arguments, self._state, DeviceNumber)
        programs = self._programs.setdefault(key, [])
        stale: list[Program] = []
        why = ""
        for program in programs:
            if program.roots.signature == roots.signature:
                program.moved(roots)
                if program.same_situation(call) and (arrays := program.inputs(call)) is not None:
                    try:
                        return program.run(call, arrays)
                    except Stale as error:
                        why = str(error)
                        stale.append(program)
        for program in stale:
            programs.remove(program)
        reason = self._reason(call, key, roots, why)
        traced = Tracing(self._function, call, roots, self._name).run()
        program = Program(traced, call, self._donate)
        self._count(reason)
        programs.insert(0, program)
        arrays = program.inputs(call)
        assert arrays is not None
        return program.run(call, arrays)

    def _check_arguments(self, call: Call) -> None:
        for number, tensor in enumerate(call.tensors):
            if tensor.device.type != "jax":
                raise RuntimeError(
                    f"{self._name}(): tensor {number} of the arguments is on device "
                    f"{tensor.device}; a captured step computes on JAX's devices only"
                )

    def _reason(self, call: Call, key: Any, roots: Roots, stale: str) -> str:
        others = self._programs[key]
        if not self.traces:
            return ""
        if stale:
            return stale
        if not others:
            return "the arguments have other types, shapes or values"
        for (name, found), (_, known) in zip(
            roots.signature, others[0].roots.signature, strict=False
        ):
            if found != known:
                return f"{name} is {_shown(found)}, and was {_shown(known)}"
        if len(roots.signature) != len(others[0].roots.signature):
            return "there is more state than before, or less"
        return others[0].difference(call)

    def _count(self, reason: str) -> None:
        self.traces += 1
        if not reason:
            return
        self._reasons.append(reason)
        LOG.info("%s is traced again: %s", self._name, reason)
        if len(self._reasons) == MANY_TRACES:
            warnings.warn(
                f"{self._name} was traced {self.traces} times, most recently because {reason}. "
                "What changes in every step should be a tensor; cache_info().reasons has all "
                "reasons.",
                stacklevel=4,
            )

    # For its user

    def cache_info(self) -> CacheInfo:
        """How often the function ran and was traced, and why."""
        programs = sum(len(found) for found in self._programs.values())
        return CacheInfo(self._calls - self.traces, self.traces, programs, tuple(self._reasons))

    def cache_clear(self) -> None:
        """Remove all programs."""
        self._programs.clear()
        self._latest = None

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<plugrad_jax.jit of {self._name}, traced {self.traces} times>"


def _shown(value: Any) -> str:
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], type):
        return repr(value[1])
    if isinstance(value, int):
        return "another object"
    return str(value)


@overload
def jit(fn: F, *, donate: bool = ..., state: Any = ...) -> Captured: ...


@overload
def jit(fn: None = ..., *, donate: bool = ..., state: Any = ...) -> Callable[[F], Captured]: ...


def jit(fn: Any = None, *, donate: bool = True, state: Any = ()) -> Any:
    """A function over tensors as one program of XLA, for example a whole training step.

    The function runs once with tracers in place of arrays. Its computation becomes the program,
    with the state that it reaches as inputs. Every run changes what the function changes: tensors,
    gradients, optimizers, random numbers. See docs/backends/jax_jit.md.

    Args:
        fn: the function; without it, the result is a decorator. It may be a method.
        donate: whether the program may write over the arrays that it replaces.
        state: modules, optimizers and tensors, also in lists, tuples and dicts, that the function
            uses; needed only if it reaches them in a way that cannot be followed.

    Returns:
        a `Captured`, which is called as the function is.

    Raises:
        CaptureError: when called, if the function reads values of tensors, changes Python values,
            or leaves a tensor behind. Then nothing has changed.
        RuntimeError: when called with tensors on other devices.

    >>> import plugrad, plugrad_jax
    >>> w = plugrad.ones(2, device="jax", requires_grad=True)
    >>> @plugrad_jax.jit
    ... def step(x):
    ...     loss = (w * x).sum()
    ...     loss.backward()
    ...     return loss
    >>> step(plugrad.full((2,), 3.0, device="jax")).item()
    6.0
    >>> w.grad.tolist()
    [3.0, 3.0]
    """
    if fn is None:
        return functools.partial(jit, donate=donate, state=state)
    return Captured(fn, donate, state)
