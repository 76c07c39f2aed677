"""oneDNN's primitives on NumPy arrays: made once for each shape, and run in the layout they prefer.

    arrays --(reorders)--> blocked layout --(primitive)--> blocked layout --(reorders)--> arrays

A `Plan` is the primitive with the reorders around it. Plans are cached by shape, up to a limit. An
`Executor` has what a run needs: memory objects, with addresses set before each run. Each thread
that runs a plan has its own executor.
"""

from __future__ import annotations

import ctypes
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import numpy as np

from plugrad_onednn.library import Library, opened, use_threads

Array = Any
Ints = tuple[int, ...]

# The arguments of primitives, by oneDNN's numbers.
SRC: Final = 1
DST: Final = 17
WEIGHTS: Final = 33
BIAS: Final = 41
MEAN: Final = 49
VARIANCE: Final = 50
SCALE: Final = 51
SHIFT: Final = 52
WORKSPACE: Final = 64
SCRATCHPAD: Final = 80
DIFF_SRC: Final = 129
DIFF_DST: Final = 145
DIFF_WEIGHTS: Final = 161
DIFF_BIAS: Final = 169
DIFF_SCALE: Final = 255
DIFF_SHIFT: Final = 256

FORWARD: Final = 64
INFERENCE: Final = 96
BACKWARD: Final = 128

_OUTPUTS: Final = (DST, DIFF_SRC, DIFF_WEIGHTS, DIFF_BIAS, DIFF_SCALE, DIFF_SHIFT)
# Element types, by oneDNN's numbers.
BFLOAT16: Final = 2
FLOAT32: Final = 3
_ANY: Final = 1
_OF_ARGUMENT: Final = 255  # the query for the layout of an argument
_OF_IMPLEMENTATION: Final = 8  # the query for an implementation's name
_USERS_SCRATCHPAD: Final = 1
_MOST_DIMENSIONS: Final = 12
_ALIGNED: Final = 64
# How many plans are cached, and how many bytes of intermediate memory a thread keeps.
_PLANS: Final = 256
_KEPT: Final = 1 << 25

Dims = ctypes.c_int64 * _MOST_DIMENSIONS


# From this number of elements on, or 64 times as many products, threads share the work: waking one
# takes as long as some ten thousand elements.
SHARED: Final = 1 << 16


class Unsupported(Exception):
    """oneDNN has no such primitive; the plain kernel computes then."""


class _Argument(ctypes.Structure):
    _fields_ = (("number", ctypes.c_int), ("memory", ctypes.c_void_p))


class _Owned(ctypes.c_void_p):
    """The handle of an object of oneDNN, which is destroyed with it."""

    destroy: Any = None

    def of(self, kind: str) -> _Owned:
        """Mark the handle as created, so that `dnnl_<kind>_destroy` frees it; returns itself."""
        self.destroy = getattr(opened().quick, f"dnnl_{kind}_destroy")
        return self

    def __del__(self) -> None:
        if self.value and self.destroy is not None:
            self.destroy(self)


def dims(values: Iterable[int]) -> Any:
    """Sizes as oneDNN takes them."""
    return Dims(*values)


def check(status: int) -> None:
    """Raise Unsupported if oneDNN refused a call, MemoryError if it ran out of memory."""
    if status == 1:
        raise MemoryError("oneDNN: out of memory")
    if status:
        raise Unsupported


def layout(shape: Ints, strides: Ints | None, kind: int = FLOAT32) -> Any:
    """The memory layout of elements of a type, with strides in elements; None lets the primitive
    choose."""
    found = _Owned()
    call = opened().quick
    if strides is None:
        status = call.dnnl_memory_desc_create_with_tag(
            ctypes.byref(found), len(shape), dims(shape), kind, _ANY
        )
    else:
        status = call.dnnl_memory_desc_create_with_strides(
            ctypes.byref(found), len(shape), dims(shape), kind, dims(strides)
        )
    check(status)
    return found.of("memory_desc")


def attributes() -> Any:
    """The attributes of every primitive: the scratch memory is ours, so threads may share the
    primitive."""
    return _attributes(opened())


_made_attributes: Final[dict[str, Any]] = {}


def _attributes(library: Library) -> Any:
    found = _made_attributes.get(library.path)
    if found is None:
        made = ctypes.c_void_p()
        check(library.quick.dnnl_primitive_attr_create(ctypes.byref(made)))
        check(library.quick.dnnl_primitive_attr_set_scratchpad_mode(made, _USERS_SCRATCHPAD))
        found = _made_attributes.setdefault(library.path, made)
    return found


def describe(function: str, *arguments: Any) -> Any:
    """The descriptor of a primitive; the caller owns it.

    Raises:
        Unsupported: oneDNN has none.
    """
    found = _Owned()
    maker = getattr(opened().quick, f"dnnl_{function}_primitive_desc_create")
    check(maker(ctypes.byref(found), opened().engine, *arguments, attributes()))
    return found.of("primitive_desc")


def implementation_of(descriptor: Any) -> str:
    """The name of a primitive's implementation, such as "jit:avx2"."""
    found = ctypes.c_char_p()
    query = opened().quick.dnnl_primitive_desc_query
    check(query(descriptor, _OF_IMPLEMENTATION, 0, ctypes.byref(found)))
    return (found.value or b"").decode()


class _Step:
    """One primitive, and the executor's memories that it uses."""

    def __init__(self, descriptor: Any, arguments: Mapping[int, str]) -> None:
        made = _Owned()
        check(opened().call.dnnl_primitive_create(ctypes.byref(made), descriptor))
        self.primitive = made.of("primitive")
        self.arguments = dict(arguments)


class Plan:
    """A primitive with reorders of all arguments for which it prefers another layout.

    Args:
        descriptor: what it computes.
        given: the layout of each argument in the caller's arrays.

    Raises:
        Unsupported: oneDNN has only its reference implementation, a loop over elements.
    """

    def __init__(self, descriptor: Any, given: Mapping[int, Any]) -> None:
        if implementation_of(descriptor).startswith("ref"):
            raise Unsupported
        quick = opened().quick
        quick.dnnl_primitive_desc_query_md.restype = ctypes.c_void_p
        quick.dnnl_memory_desc_get_size.restype = ctypes.c_size_t
        # Layouts by name: an argument's number in the caller's arrays, "i" and the number within.
        self.layouts: dict[str, Any] = {str(number): made for number, made in given.items()}
        self.inner: dict[str, int] = {}  # where in the work space
        self.size = 0
        before: list[_Step] = []
        after: list[_Step] = []
        taken: dict[int, str] = {}
        for number, made in given.items():
            wanted = self._wanted(descriptor, number)
            if quick.dnnl_memory_desc_equal(made, wanted):
                taken[number] = str(number)
                continue
            name = f"i{number}"
            self._place(name, wanted)
            taken[number] = name
            if number in _OUTPUTS:
                after.append(self._reorder(wanted, made, name, str(number)))
            else:
                before.append(self._reorder(made, wanted, str(number), name))
        for number in (SCRATCHPAD, WORKSPACE):
            wanted = self._wanted(descriptor, number)
            if number not in taken and quick.dnnl_memory_desc_get_size(wanted):
                self._place(f"i{number}", wanted)
                taken[number] = f"i{number}"
        self.steps = [*before, _Step(descriptor, taken), *after]
        self.free: list[Executor] = []

    def _wanted(self, descriptor: Any, number: int) -> Any:
        found = opened().quick.dnnl_primitive_desc_query_md(descriptor, _OF_ARGUMENT, number)
        return ctypes.c_void_p(found)

    def _place(self, name: str, wanted: Any) -> None:
        copy = _Owned()
        check(opened().quick.dnnl_memory_desc_clone(ctypes.byref(copy), wanted))
        copy.of("memory_desc")
        self.layouts[name] = copy
        self.inner[name] = self.size
        size = int(opened().quick.dnnl_memory_desc_get_size(copy))
        self.size += -(-size // _ALIGNED) * _ALIGNED

    def _reorder(self, source: Any, target: Any, source_name: str, target_name: str) -> _Step:
        library = opened()
        descriptor = _Owned()
        check(
            library.quick.dnnl_reorder_primitive_desc_create(
                ctypes.byref(descriptor),
                source,
                library.engine,
                target,
                library.engine,
                attributes(),
            )
        )
        descriptor.of("primitive_desc")
        taken = {SRC: source_name, DST: target_name}
        scratchpad = self._wanted(descriptor, SCRATCHPAD)
        if library.quick.dnnl_memory_desc_get_size(scratchpad):
            name = f"i{SCRATCHPAD}{source_name}"
            self._place(name, scratchpad)
            taken[SCRATCHPAD] = name
        return _Step(descriptor, taken)

    def run(self, arrays: Mapping[int, Array]) -> None:
        """Compute with these arrays, which have the given layouts; arrays of results are
        overwritten."""
        executor = self.free.pop() if self.free else Executor(self)
        executor.run(arrays)
        self.free.append(executor)


class _WorkSpace(threading.local):
    """Memory between reorders and primitives; a thread keeps it unless it is large."""

    kept: Any = None

    def of(self, size: int) -> Array:
        if size > _KEPT:
            return np.empty(size + _ALIGNED, np.uint8)
        if self.kept is None or self.kept.size < size + _ALIGNED:
            self.kept = np.empty(size + _ALIGNED, np.uint8)
        return self.kept


_work_space: Final = _WorkSpace()


class Executor:
    """The memory objects of a run; one run at a time uses them."""

    def __init__(self, plan: Plan) -> None:
        library = opened()
        quick = library.quick
        self.plan = plan
        self.memories: dict[str, Any] = {}
        for name, made in plan.layouts.items():
            memory = _Owned()
            check(quick.dnnl_memory_create(ctypes.byref(memory), made, library.engine, None))
            self.memories[name] = memory.of("memory")
        stream = _Owned()
        check(quick.dnnl_stream_create(ctypes.byref(stream), library.engine, 1))
        self.stream = stream.of("stream")
        self.calls = []
        for step in plan.steps:
            taken = [_Argument(n, self.memories[name].value) for n, name in step.arguments.items()]
            table = (_Argument * len(taken))(*taken)
            self.calls.append((step.primitive, self.stream, len(taken), table))
        self.set_address: Any = quick.dnnl_memory_set_data_handle
        self.execute: Any = library.call.dnnl_primitive_execute
        self.base = -1

    def run(self, arrays: Mapping[int, Array]) -> None:
        set_address, memories = self.set_address, self.memories
        for number, array in arrays.items():
            address = array.__array_interface__["data"][0]
            set_address(memories[str(number)], ctypes.c_void_p(address))
        space = _work_space.of(self.plan.size) if self.plan.size else None
        if space is not None:
            base = -(-space.__array_interface__["data"][0] // _ALIGNED) * _ALIGNED
            if base != self.base:
                for name, place in self.plan.inner.items():
                    set_address(memories[name], ctypes.c_void_p(base + place))
                self.base = base
        for call in self.calls:
            status = self.execute(*call)
            if status:
                raise RuntimeError(f"oneDNN could not run a primitive: status {status}")


_plans: Final[OrderedDict[Any, Plan | None]] = OrderedDict()
_lock: Final = threading.Lock()


def plan_for(key: tuple[Any, ...], make: Callable[[], Plan], shared: bool) -> Plan | None:
    """The plan for a key, which contains everything that the plan depends on; None if oneDNN has
    none.

    The number of threads is part of it: a primitive divides its work when it is made.

    Args:
        shared: whether several threads are worthwhile.
    """
    key = (use_threads(opened(), shared), *key)
    with _lock:
        if key in _plans:
            _plans.move_to_end(key)
            return _plans[key]
    try:
        found: Plan | None = make()
    except Unsupported:
        found = None
    with _lock:
        _plans[key] = found
        if len(_plans) > _PLANS:
            _plans.popitem(last=False)
    return found


def element_strides(array: Array) -> Ints | None:
    """Strides in elements; None where oneDNN cannot read the array in place: it is empty, its
    elements overlap or run backwards, or a stride is no multiple of the element size."""
    if not array.size:
        return None
    size = array.itemsize
    found = []
    for length, stride in zip(array.shape, array.strides, strict=True):
        if stride % size or (stride <= 0 and length > 1):
            return None
        found.append(stride // size if length > 1 else max(1, stride // size))
    return tuple(found)


def kind_of(array: Array) -> int:
    """oneDNN's number for the type of the elements."""
    return FLOAT32 if array.dtype == np.float32 else BFLOAT16


def row_major(shape: Ints) -> Ints:
    """Strides of a contiguous array, in elements."""
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))
