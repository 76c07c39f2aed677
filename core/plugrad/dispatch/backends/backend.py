"""The contract of a backend: `Backend` and `DeviceQueue`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, final

from mypy_extensions import mypyc_attr

from plugrad.dispatch.backends.api_version import API_VERSION
from plugrad.dispatch.backends.kernel_table import marked_kernels
from plugrad.dtype import ALL_DTYPES, DType, bfloat16, float16
from plugrad.dtype import from_numpy as dtype_from_numpy

if TYPE_CHECKING:
    import numpy as np


@mypyc_attr(allow_interpreted_subclasses=True)
class Backend:
    """An array library that plugrad computes with. Subclass it and override what differs.

    A backend for arrays in host memory needs a name, the array type and kernels:

        class FooBackend(Backend):
            def __init__(self) -> None:
                super().__init__("foo", array_type=foo.Array)

            def kernels(self):
                return {"mul": foo.multiply, "exp": foo.exp, ...}

            def from_host(self, array, index):
                return foo.asarray(array)

            def to_host(self, array):
                return array.to_numpy()

    Attributes:
        name: the device type, as in ``device="foo"``; a lower-case identifier.
        array_type: the class of kernels' results; other results are passed to `as_array`.
        key_name: name of its dispatch key, by default the name with a capital: ``Foo``.
        mutable: whether kernels may write into arrays.
        fallback: the backend that computes what this one cannot, such as "cpu"; None to raise an
            error instead. The configuration can set it as well.
        api_version: the version of this contract that the backend was written for, such as (1, 0).

    >>> import numpy as np
    >>> from plugrad.plugins import Backend
    >>> class HostBackend(Backend):
    ...     def __init__(self):
    ...         super().__init__("host", array_type=np.ndarray)
    ...     def kernels(self):
    ...         return {"mul": np.multiply, "exp": np.exp}
    ...     def from_host(self, array, index):
    ...         return array
    ...     def to_host(self, array):
    ...         return array
    >>> sorted(HostBackend().kernels()), HostBackend().device_count()
    (['exp', 'mul'], 1)
    """

    def __init__(
        self,
        name: str,
        array_type: Any,
        *,
        key_name: str | None = None,
        mutable: bool = True,
        fallback: str | None = None,
        api_version: Any = API_VERSION,
    ) -> None:
        self.name = name
        self.array_type: Any = array_type
        self.key_name = key_name
        self.mutable = mutable
        self.fallback = fallback
        self.api_version: Any = api_version

    @staticmethod
    def from_array_namespace(xp: Any, name: str | None = None, **options: Any) -> Any:
        """A complete backend from a namespace of the Python array API standard, 2023.12 or later.

        Its kernels are the namespace's functions; other operators are decomposed into them. See
        `plugrad.plugins.array_namespace.ArrayNamespaceBackend` for the options.

        >>> import numpy as np
        >>> from plugrad.plugins import Backend
        >>> backend = Backend.from_array_namespace(np, "standard")
        >>> backend.name, "exp" in backend.kernels()
        ('standard', True)
        """
        if _namespaces.make is None:
            raise RuntimeError("from_array_namespace() needs plugrad.plugins: import plugrad")
        return _namespaces.make(xp, name, options)

    def options(self) -> Mapping[str, object]:
        """The options under ``[backends.<name>]`` in the configuration, with their defaults.

        >>> from plugrad.plugins import Backend
        >>> class Tuned(Backend):
        ...     def options(self):
        ...         return {"block": 64}
        >>> dict(Tuned("tuned", array_type=list).options())
        {'block': 64}
        """
        return {}

    def configure(self, options: Mapping[str, object]) -> None:
        """Receive the options, including defaults; called once, before the first use.

        >>> from plugrad.plugins import Backend
        >>> class Tuned(Backend):
        ...     def options(self):
        ...         return {"block": 64}
        ...     def configure(self, options):
        ...         self.block = options["block"]
        >>> backend = Tuned("tuned", array_type=list)
        >>> backend.configure({"block": 128})
        >>> backend.block
        128
        """

    def device_count(self) -> int:
        """How many devices there are; a backend with one device names it without an index.

        Must not raise: if there is none, the result is 0, and `problem` says why.
        """
        return 1

    def current_device(self) -> int:
        """The index of the device that the backend's name alone means, on the calling thread."""
        return 0

    def problem(self) -> str | None:
        """Why there is no device, in a sentence, and the command that fixes it; None if nothing is
        wrong.

        Selecting a backend without a device raises a RuntimeError with this sentence, and
        ``plugrad backends`` and ``plugrad doctor`` print it, as in "driver not found: install
        one, ``nvidia-smi`` shows whether it works".
        """
        return None

    def describe(self) -> Mapping[str, str]:
        """Facts for ``plugrad doctor``, by name: versions of the library and the driver, names of
        devices, the kind of processor. Must not raise, also if there is no device."""
        return {}

    def kernels(self) -> Any:
        """The kernels, by operator name: ``"mul.Tensor"``, or ``"mul"`` for all its overloads.

        A mapping, a module, a class or object with methods marked by `kernel`, or a list of these:
        see `kernel_table`. By default the marked methods of the backend itself.
        """
        return marked_kernels(self)

    def dtypes(self) -> tuple[DType, ...]:
        """The dtypes that the backend's arrays can have."""
        return tuple([dtype for dtype in ALL_DTYPES if _accepts(self, dtype)])

    def autocast_dtypes(self) -> tuple[DType, ...]:
        """The dtypes that `plugrad.autocast` may use, the default one first; if empty, the backend
        has no autocast.

        By default bfloat16 and float16, if arrays can have these dtypes. Which operators run in
        them, and which in float32, is the same for all backends but the CPU: PyTorch's lists for
        CUDA. `Library.impl` with the key ``"Autocast" + key_name`` replaces single entries.
        """
        return tuple([dtype for dtype in (bfloat16, float16) if _accepts(self, dtype)])

    def capabilities(self) -> frozenset[str]:
        """The backend's features beyond kernels, derived from the methods that it overrides.

        "mutable": kernels may write into arrays. "random": generators of its own. "strides":
        arrays have a layout. "dlpack": memory is exchanged without a copy. "streams": work is
        asynchronous. "jit": functions can be compiled into one program. "compile": captured steps
        can be lowered. "pinned": host memory can be page-locked.
        """
        found = [
            word
            for word, method in _CAPABILITIES.items()
            if getattr(type(self), method) is not getattr(Backend, method)
        ]
        return frozenset([*found, "mutable"] if self.mutable else found)

    def as_array(self, value: Any) -> Any:
        """Convert a kernel's result that is not an `array_type`, such as a NumPy scalar, into an
        array.

        Raises:
            TypeError: it cannot be converted; by default anything that is not an `array_type`.
        """
        if isinstance(value, self.array_type):
            return value
        raise TypeError(
            f"expected {class_name(self.array_type)}, got {class_name(type(value))}; if that can "
            "be turned into an array, override as_array(value)"
        )

    def from_host(self, array: np.ndarray[Any, Any], index: int) -> Any:
        """Copy host data to device `index`; may share memory if the backend lives on the host."""
        return array

    def to_host(self, array: Any) -> np.ndarray[Any, Any]:
        """Host data of an array; may share memory if the backend lives on the host."""
        result: np.ndarray[Any, Any] = array
        return result

    def has_values(self, array: Any) -> bool:
        """Whether `to_host` could be called for an array; false for a placeholder in a
        traced function. `x[i]` with a tensor `i` without values is then computed without it."""
        return True

    def is_local(self, array: Any) -> bool:
        """Whether this process can read all elements of an array without other processes. A tensor
        prints without its elements if its array is not local."""
        return True

    def run_again(self, kernel: Any, arrays: tuple[Any, ...], error: Exception) -> Any:
        """The result of calling a kernel again, after a call with these arguments raised `error`.

        Override it if arguments can be fixed, such as arrays in different places. It is called
        only after a failure. By default, and for any other problem, it raises `error`.
        """
        raise error

    def printed(self, array: Any) -> str | None:
        """The text of a tensor with this array; None prints its elements, as for any tensor.

        It is for arrays that one process cannot read alone.
        """
        return None

    def copy_from_host(
        self, array: np.ndarray[Any, Any], index: int, non_blocking: bool = False
    ) -> Any:
        """Host data on device `index`, in new memory, for `Tensor.to`.

        Override it if `from_host` copies anyway, or if copies can overlap with work.

        Args:
            non_blocking: may return before the copy is done; `array` is not written to before.
        """
        return self.from_host(array.copy("K"), index)

    def copy_to_host(self, array: Any, non_blocking: bool = False) -> np.ndarray[Any, Any]:
        """Host data of an array, in new writable memory, for `Tensor.cpu`.

        Override it if `to_host` copies anyway, or if copies can overlap with work.

        Args:
            non_blocking: may return before the copy is done; readers synchronize first.
        """
        host = self.to_host(array)
        return host.copy("K") if hasattr(host, "__array_interface__") else host

    def copy_to_device(self, array: Any, index: int, non_blocking: bool = False) -> Any:
        """An array of this backend on another of its devices; by default by way of the host.

        Args:
            non_blocking: may return before the copy is done.
        """
        return self.from_host(self.to_host(array).copy("K"), index)

    def pin(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A copy of host data in page-locked memory, which devices can access directly.

        Raises:
            RuntimeError: the backend has no such memory.
        """
        raise RuntimeError("Need to provide pin_memory allocator to use pin memory.")

    def is_pinned(self, array: np.ndarray[Any, Any]) -> bool:
        """Whether host data is in memory from `pin`."""
        return False

    def native_dtype(self, dtype: DType) -> Any:
        """The backend's own object for a dtype; TypeError if it has none."""
        return dtype.numpy

    def dtype_of(self, array: Any) -> DType:
        """The dtype of an array; by default the one with the name of its NumPy dtype.

        Raises:
            TypeError: the array's dtype is not a NumPy dtype, or plugrad lacks it.
        """
        native: Any = array.dtype
        try:
            return dtype_from_numpy(native)
        except AttributeError:
            raise TypeError(
                f"dtype_of() of backend {self.name!r} got an array of dtype {native!r}, which is "
                "not a NumPy dtype: override dtype_of(array) and native_dtype(dtype)"
            ) from None

    def features(self, capability: str) -> Mapping[str, bool]:
        """The hardware features that variants of kernels may require: by name, whether usable.

        Other names are unknown; a variant that requires one has a wrong declaration.

        Args:
            capability: `cpu_capability` of the configuration, for backends that compute on the
                processor; it restricts the features that kernels may use. Empty for no restriction.

        Raises:
            ValueError: there is no such capability.
        """
        return {}

    def is_contiguous(self, array: Any) -> bool:
        """Whether an array is contiguous: row-major, without gaps."""
        expected = 1
        strides = self.strides(array)
        for size, stride in zip(reversed(array.shape), reversed(strides), strict=True):
            if size != 1 and stride != expected:
                return False
            expected *= max(int(size), 1)
        return True

    def strides(self, array: Any) -> tuple[int, ...]:
        """Strides in elements; by default a contiguous array's."""
        strides: list[int] = []
        step = 1
        for size in reversed(array.shape):
            strides.append(step)
            step *= max(int(size), 1)
        return tuple(reversed(strides))

    def storage_offset(self, array: Any) -> int:
        """Offset in elements of the first element in the memory that views share."""
        return 0

    def to_dlpack(self, array: Any, **options: Any) -> Any:
        """A DLPack capsule of an array's memory; `options` are those of ``__dlpack__``.

        Raises:
            BufferError: the array cannot be shared, or not as requested.
        """
        exporter = getattr(array, "__dlpack__", None)
        if exporter is None:
            raise BufferError(f"backend {self.name!r} does not share memory through DLPack")
        return exporter(**options)

    def dlpack_device(self, array: Any) -> tuple[int, int]:
        """DLPack's device type and index of an array's memory."""
        asked = getattr(array, "__dlpack_device__", None)
        if asked is None:
            raise BufferError(f"backend {self.name!r} does not share memory through DLPack")
        device: tuple[int, int] = asked()
        return device

    def from_dlpack(self, source: Any, index: int) -> Any:
        """An array of device `index` that shares the memory of an object with ``__dlpack__``.

        Raises:
            BufferError: its memory is not this device's.
        """
        raise BufferError(f"backend {self.name!r} does not share memory through DLPack")

    def dlpack_type(self) -> int:
        """DLPack's number for the kind of memory of the arrays; -1 if there is none.

        `plugrad.from_dlpack` gives memory of that kind to this backend.
        """
        return -1

    def make_generator(self, index: int) -> Any:
        """A new random generator for a device, with `manual_seed`, `seed`, `initial_seed`,
        `get_state` and `set_state`; random kernels receive it."""
        raise NotImplementedError(
            f"backend {self.name!r} has no random generator: its numbers are drawn by the CPU's, "
            "plugrad.Generator()"
        )

    def make_queue(self, index: int) -> DeviceQueue:
        """The engine's queue for a device."""
        return DeviceQueue()

    def synchronize(self, index: int) -> None:
        """Wait until a device has finished its queued work."""

    def num_threads(self) -> int:
        """The number of processor threads that one operator may use, including those of libraries
        that it calls."""
        return 1

    def set_num_threads(self, count: int) -> None:
        """Limit the number of processor threads that operators use.

        Called with the value of `plugrad.set_num_threads` or the configuration, also before the
        first use; not called if neither is set. By default it has no effect.
        """

    def jit(self, function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        """A version of a function over tensors that runs as one program; `plugrad.compile` calls
        it.

        It has the same results and effects as the function: gradients, updates of the optimizer,
        and random numbers. It raises if it cannot reproduce them.

        Args:
            function: over tensors and objects that hold tensors.
            options: the backend's own.
        """
        raise NotImplementedError(f"backend {self.name!r} does not compile functions")

    def arena(
        self, size: int, parts: list[tuple[int, tuple[int, ...], tuple[int, ...], Any]]
    ) -> list[Any] | None:
        """Arrays in one block of new memory, for intermediate results of a compiled step; None if
        the backend's kernels always allocate their results.

        Args:
            size: of the memory, in bytes.
            parts: for each array the offset in bytes, a multiple of 64; shape; strides in bytes;
                native dtype. Arrays that are not needed at the same time overlap.
        """
        return None

    def current_stream(self, index: int) -> Any:
        """The calling thread's current stream of a device.

        For backends that have several streams per device; each thread chooses one. They override
        `use_stream` and `record_stream`, too. The engine then runs a node on the stream of its
        forward call, and orders the streams with events.

        Streams are hashable, equal if they are the same, and have two methods, which any thread
        may call: ``record_event()`` returns an event after the work queued so far, and
        ``wait_event(event)`` makes later work wait for an event of a stream of any device of
        the backend. Results of kernels, including copies between devices, are ordered on the
        calling thread's current stream of the result's device.
        """
        return None

    def use_stream(self, index: int, stream: Any) -> None:
        """Make a stream current on the calling thread; `current_stream` returned it, maybe on
        another thread."""

    def record_stream(self, array: Any, stream: Any) -> None:
        """Record that an array, made on one stream, is also used on another one.

        For backends that reuse memory in the order of the stream that allocated it: once nothing
        refers to the array, its memory may be reused only after the work queued on `stream` up
        to then. Called after `stream` was made to wait for the array.
        """

    def compile(self, step: Any) -> Any:
        """Lower a captured step to one function on arrays, in the order of its inputs.
        `plugrad.compile` runs it instead of its own tape.

        The function returns a list of arrays. In-place operators write to the given arrays.

        Args:
            step: a `CapturedStep`: its inputs, calls and outputs.
        """
        raise NotImplementedError(f"backend {self.name!r} does not compile captured steps")

    def compile_on_host(self, step: Any) -> Any:
        """Lower a captured step on arrays of the host, NumPy's, by this backend's compiler.

        For backends that have `jit`: `plugrad.compile(..., backend=name)` uses this if a step's
        tensors are not this backend's. The function is the same as for `compile`.

        Args:
            step: a `CapturedStep` on NumPy's arrays.

        Raises:
            NotImplementedError: this compiler does not support the step; it then runs uncompiled.
        """
        raise NotImplementedError(f"backend {self.name!r} does not compile steps of the host")


_CAPABILITIES: Final = {
    "random": "make_generator",
    "strides": "strides",
    "dlpack": "from_dlpack",
    "streams": "make_queue",
    "jit": "jit",
    "compile": "compile",
    "pinned": "pin",
}


def class_name(cls: Any) -> str:
    """A class's qualified name with its module; other array types unchanged."""
    if not isinstance(cls, type):
        return str(cls)
    return f"{cls.__module__}.{cls.__qualname__}".removeprefix("builtins.")


def _accepts(backend: Backend, dtype: DType) -> bool:
    try:
        backend.native_dtype(dtype)
    except TypeError:
        return False
    return True


@final
class _Namespaces:
    """The factory for backends from an array namespace, which the plugin layer installs."""

    def __init__(self) -> None:
        self.make: Callable[[Any, str | None, dict[str, Any]], Backend] | None = None


_namespaces: Final = _Namespaces()


def set_namespace_backend(make: Callable[[Any, str | None, dict[str, Any]], Backend]) -> None:
    """`make(xp, name, options)` makes a backend from an array namespace."""
    _namespaces.make = make


@mypyc_attr(allow_interpreted_subclasses=True)
class DeviceQueue:
    """The engine's interface to one device: tasks, and the order between streams of work.

    Every device other than the host has a thread in the engine, which takes nodes from this queue.
    The defaults suit a backend with synchronous kernels. An asynchronous backend overrides
    `activate`, the events, `fork` and `join`. If threads choose among several streams
    (`Backend.current_stream`), `activate` is sufficient: the engine orders the streams.

    Attributes:
        ready: the engine's priority queue behind `push` and `pop`.

    >>> from plugrad.plugins import DeviceQueue
    >>> class Streamed(DeviceQueue):
    ...     def activate(self):
    ...         print("make the stream current")
    >>> Streamed().activate()
    make the stream current
    """

    ready: Any = None

    def push(self, task: Any) -> None:
        """Queue a node task for the device's thread; called from any thread, must not wait."""
        self.ready.put(task)

    def pop(self) -> Any:
        """The most urgent node task, waiting until there is one; called from the device's
        thread."""
        return self.ready.get()

    def is_bound(self) -> bool:
        """Whether only the calling thread can use the device now, for example while it traces a
        function: a backward pass then stays on this thread."""
        return False

    def activate(self) -> None:
        """Make the device and its stream current on the calling thread."""

    def record_event(self) -> Any:
        """An event after the work that was queued so far."""
        return None

    def wait_event(self, event: Any) -> None:
        """Make later work wait for an event, possibly of another device."""

    def fork(self) -> None:
        """Make later work wait for the work that the calling thread, which is not the device's,
        has issued to the device so far."""

    def join(self) -> None:
        """Make work that the calling thread, which is not the device's, issues to the device later
        wait for the work queued so far."""

    def synchronize(self) -> None:
        """Block the calling thread until the queued work is done."""
