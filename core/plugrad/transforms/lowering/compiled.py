"""The function that `plugrad.compile` returns: it finds the program for a call, or captures one."""

from __future__ import annotations

import functools
import gc
import logging
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from plugrad.autograd import set_multithreading_enabled
from plugrad.dispatch.backends.active import ActiveBackend
from plugrad.dispatch.fork import hold_while_forking
from plugrad.dispatch.local_state import current_state
from plugrad.dispatch.scope import Locked, Undone
from plugrad.plugins.compiling.lowerings import Lowering
from plugrad.plugins.compiling.roots import PLAIN, Roots, find_roots
from plugrad.plugins.tracing import SameArguments, listening, mode, situation
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.transforms.capture.capturing import finished_graph
from plugrad.transforms.capture.errors import CaptureError
from plugrad.transforms.capture.trees import flatten
from plugrad.transforms.lowering.numbers import Formulas, Stand
from plugrad.transforms.lowering.observing import Observer
from plugrad.transforms.lowering.passes import cleaned
from plugrad.transforms.lowering.program import Missed, Program, check_history

LOG = logging.getLogger("plugrad.compile")

# One capture at a time: during a capture, optimizers have placeholders for their numbers.
_lock = threading.RLock()
hold_while_forking(_lock)


class CacheInfo(NamedTuple):
    """What a compiled function has done so far.

    Attributes:
        hits: calls that ran a program.
        captures: the number of calls that were recorded.
        programs: how many programs there are.
        reasons: why there was no program for a call that was listened to, or why it gave none.
    """

    hits: int
    captures: int
    programs: int
    reasons: tuple[str, ...]


class Latest(NamedTuple):
    """The forms of calls with only tensors as arguments, and their programs."""

    arguments: SameArguments
    programs: list[Program]


class Compiled:
    """A function that runs captured steps as programs; see `plugrad.compile`.

    Attributes:
        captures: the number of calls that were recorded.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        lowering: Callable[[ActiveBackend], Lowering],
        state: Any,
        limit: int,
    ) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._lowering = lowering
        self._state = state
        self._limit = limit
        self._programs: dict[Any, list[Program]] = {}
        # Types of arguments that are not listened to any more.
        self._given_up: dict[Any, str] = {}
        self._failures: dict[Any, list[str]] = {}
        self._latest: Latest | None = None
        self._name = getattr(function, "__qualname__", repr(function))
        self._hits = 0
        self._eager = 0
        self.captures = 0
        self._reasons: list[str] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        state = current_state()
        if (
            state.trace is not None
            or state.level is not None
            or state.function_modes is not None
            or state.saved_tensor_hooks is not None
        ):
            self._eager += 1
            return self._function(*args, **kwargs)
        latest = self._latest
        tensors: Any
        if latest is not None and not kwargs and latest.arguments.hold(args):
            tensors, programs = args, latest.programs
        else:
            leaves, tree = flatten((args, kwargs), sort=True)
            tensors = [leaf for leaf in leaves if isinstance(leaf, TensorBase)]
            key = self._key(leaves, tree, tensors)
            if key in self._given_up:
                self._eager += 1
                return self._function(*args, **kwargs)
            programs = self._programs.setdefault(key, [])
            if 0 < len(leaves) == len(args) == len(tensors) == len(set(map(id, tensors))):
                self._latest = Latest(SameArguments(tensors), programs)
        for program in programs:
            if program.fits(tensors):
                try:
                    result = program.run(tensors)
                except Missed:
                    continue
                self._hits += 1
                return result
        with Locked(_lock):
            return self._listen(args, kwargs, programs)

    def _key(self, leaves: list[Any], tree: Any, tensors: list[TensorBase]) -> Any:
        about: list[Any] = []
        for leaf in leaves:
            if isinstance(leaf, TensorBase):
                about.append((sizes_of(leaf), leaf.dtype, leaf.device, type(leaf)))
            elif isinstance(leaf, PLAIN):
                about.append((type(leaf), repr(leaf)))
            else:
                about.append(id(leaf))
        ids = list(map(id, tensors))
        same = tuple([ids.index(each) for each in ids])
        return tree, tuple(about), tuple(situation(tensors)), same, mode()

    # When nothing fits

    def _listen(self, args: Any, kwargs: Any, programs: list[Program]) -> Any:
        """Really run the function, and make a program from what it did, if possible."""
        leaves, tree = flatten((args, kwargs), sort=True)
        tensors = [leaf for leaf in leaves if isinstance(leaf, TensorBase)]
        key = self._key(leaves, tree, tensors)
        if self.captures >= self._limit:
            self._give_up(key, f"it was captured {self._limit} times, which is the limit")
            return self._function(*args, **kwargs)
        objects = [leaf for leaf in leaves if not isinstance(leaf, TensorBase)]
        roots = find_roots(self._function, objects, self._state)
        if any(self._programs.values()):
            self._explain(self._difference(roots, programs))
        self.captures += 1
        for program in programs:
            if program.roots.signature == roots.signature and program.is_for(tensors):
                programs.remove(program)  # its tensors, or where they are, have changed
                break
        result, found = _Listening(self._function, roots, tensors, leaves, tree).run(args, kwargs)
        if isinstance(found, str):
            self._fail(key, found)
            return result
        observer, graph, stands, formulas = found
        try:
            check_history(graph, observer)
            program = Program(
                cleaned(graph), tensors, observer, roots, stands, formulas, self._lowering
            )
        except (CaptureError, NotImplementedError) as error:
            self._fail(key, str(error).removeprefix("capture(): "))
            return result
        except Exception as error:
            # The step has run, so it is no error of the user's that it cannot be lowered.
            LOG.warning("%s could not be lowered", self._name, exc_info=True)
            self._fail(key, f"lowering failed with {type(error).__name__}: {error}")
            return result
        made = observer.made_by
        del observer, found, graph
        left = _left(made, result, tensors, program)
        if left:
            self._fail(key, left)
            return result
        self._failures.pop(key, None)
        programs.insert(0, program)
        return result

    def _fail(self, key: Any, reason: str) -> None:
        """The step cannot be a program, for now; forever, if that was said before."""
        self._explain(reason)
        before = self._failures.setdefault(key, [])
        if reason in before:
            self._give_up(key, reason)
        before.append(reason)

    def _give_up(self, key: Any, reason: str) -> None:
        self._given_up[key] = reason
        self._latest = None
        self._explain(f"runs as it is written from now on: {reason}")

    def _explain(self, reason: str) -> None:
        self._reasons.append(reason)
        LOG.info("%s: %s", self._name, reason)

    def _difference(self, roots: Roots, programs: list[Program]) -> str:
        if not programs:
            return "captured again: the arguments have other types, shapes or values"
        known = programs[0].roots.signature
        for (name, found), (_, before) in zip(roots.signature, known, strict=False):
            if found != before:
                return f"captured again: {name} is {_shown(found)}, and was {_shown(before)}"
        if len(roots.signature) != len(known):
            return "captured again: there is more state than before, or less"
        return "captured again: tensors of the state, or their gradients, are others than before"

    # For its user

    def explain(self) -> str:
        """A text about what runs as a program, what does not, and why.

        >>> import plugrad
        >>> step = plugrad.compile(lambda x: x.sin() + 1)
        >>> _ = step(plugrad.ones(2))
        >>> print(step.explain())
        <lambda>: listened to 1 time, 0 calls ran a program
        program 1: 2 operators, 2 kernels called directly, 0 through tensors, 64 bytes of arena
        """
        times = f"{self.captures} time{'' if self.captures == 1 else 's'}"
        lines = [f"{self._name}: listened to {times}, {self._hits} calls ran a program"]
        if self._eager:
            lines.append(f"{self._eager} calls ran as written")
        programs = [program for found in self._programs.values() for program in found]
        for number, program in enumerate(programs, 1):
            lowered: Any = program.lowered
            about = f"program {number}: {len(program.graph.nodes)} operators"
            if hasattr(lowered, "direct"):
                about += (
                    f", {lowered.direct} kernels called directly, {lowered.wrapped} through "
                    f"tensors, {lowered.arena} bytes of arena"
                )
                if lowered.joined:
                    about += f", {lowered.joined} operators joined"
            lines.append(about)
        lines += self._reasons
        return "\n".join(lines)

    def graphs(self) -> list[Any]:
        """The graph of each program, after all passes."""
        return [program.graph for found in self._programs.values() for program in found]

    def cache_info(self) -> CacheInfo:
        """How often the function was listened to, and why."""
        count = sum(len(found) for found in self._programs.values())
        return CacheInfo(self._hits, self.captures, count, tuple(self._reasons))

    def cache_clear(self) -> None:
        """Remove all programs, and reset the number of recorded calls."""
        self._programs.clear()
        self._given_up.clear()
        self._failures.clear()
        self._latest = None
        self.captures = 0

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<plugrad.compile of {self._name}, listened to {self.captures} times>"


class _Listening:
    """One call that is listened to."""

    def __init__(
        self,
        function: Callable[..., Any],
        roots: Roots,
        tensors: list[TensorBase],
        leaves: list[Any],
        tree: Any,
    ) -> None:
        self.function = function
        self.roots = roots
        self.leaves = leaves
        self.tree = tree
        self.tensors = tensors
        self.formulas = Formulas()
        self.stands = [
            Stand(number, f"s{place}", self.formulas)
            for place, number in enumerate(roots.numbers())
        ]
        self._told: list[str] = []

    def run(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """The result, and the data for a program, or the reason why there is none."""
        holders = [(name, holder, holder.copy()) for name, holder in self.roots.holders]
        observer = Observer(self.tensors, kwargs)
        self.formulas.listen_with(observer)
        with Undone(self._take_numbers):
            for stand in self.stands:
                stand.put()
            with set_multithreading_enabled(False), listening(observer):
                result = self.function(*args, **kwargs)
        observer.check_generators()
        self.formulas.close()
        reason = observer.reason or next(filter(None, self._told), "")
        if self.formulas.lost:
            reason = reason or f"a number of an optimizer is not followed: {self.formulas.lost}"
        reason = reason or self._changed(holders)
        if reason:
            return result, reason
        positions = [n for n, leaf in enumerate(self.leaves) if isinstance(leaf, TensorBase)]
        try:
            graph = finished_graph(
                self.function, observer, self.leaves, self.tree, positions, result
            )
        except CaptureError as error:
            return result, str(error).removeprefix("capture(): ")
        places = {id(node): place for place, node in enumerate(observer.nodes)}
        for node in graph.nodes:
            place = places.get(id(node), len(places))
            if any(self.formulas.equals(value, place) for value in _plain(node.values)):
                return result, f"{node.op.op.name}() may have a number that is not followed"
        return result, (observer, graph, self.stands, self.formulas)

    def _take_numbers(self) -> None:
        stands, self._taken = self.stands, self.stands
        if not self._told:
            self._told = [stand.take() for stand in stands]

    def _changed(self, holders: list[tuple[str, Any, Any]]) -> str:
        for name, holder, before in holders:
            if len(holder) != len(before):
                return f"the step changes the length of {name}"
            items = holder.items() if isinstance(holder, dict) else enumerate(holder)
            for key, value in items:
                if isinstance(holder, dict) and key not in before:
                    return f"the step puts something new into {name}"
                if value is not before[key] and not self._is_number(holder, key):
                    where = f"{name}[{key!r}]" if isinstance(key, (str, int)) else name
                    return f"the step changes {where}"
        return "" if self.roots.same_objects() else "the step changes a variable"

    def _is_number(self, holder: Any, key: Any) -> bool:
        return any(
            holder is place and key == name
            for stand in self.stands
            for place, name in stand.number.places
        )


def _plain(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [each for item in value for each in _plain(item)]
    return [value]


def _left(made: list[Any], result: Any, tensors: list[TensorBase], program: Program) -> str:
    """Why tensors that the step made and that are still there forbid a program; "" if none is."""

    def known() -> set[int]:
        leaves, _ = flatten(result)
        found = set(map(id, leaves)) | {id(t) for t in tensors}
        return found | program.kept_ids(tensors)

    def alive() -> list[str]:
        taken = known()
        pairs = [(ref(), name) for ref, name in made]
        return [name for tensor, name in pairs if tensor is not None and id(tensor) not in taken]

    if alive():
        gc.collect()  # cycles of tensors and nodes
    names = alive()
    if not names:
        return ""
    return f"a tensor that {names[0]}() made outlives the step"


def _shown(value: Any) -> str:
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], type):
        return repr(value[1])
    return "another object" if isinstance(value, int) else str(value)
