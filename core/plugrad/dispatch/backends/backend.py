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
    """An array library that plugrad computes with. Subclass it, and fill in what differs.

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
        array_type: what kernels return; anything else goes through `as_array`.
        key_name: name of its dispatch key, by default the name with a capital: ``Foo``.
        mutable: whether kernels may write into arrays.
        fallback: the backend that computes what this one cannot, "cpu" say; None raises instead.
            The configuration can set it as well.
        api_version: the version of this contract that the backend was written for, such as (1, 0).
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

        Its kernels are the namespace's functions; what the standard lacks is made of them. See
        `plugrad.plugins.array_namespace.ArrayNamespaceBackend` for the options.
        """
        if _namespaces.make is None:
            raise RuntimeError("from_array_namespace() needs plugrad.plugins: import plugrad")
        return _namespaces.make(xp, name, options)

    def options(self) -> Mapping[str, object]:
        """What can be set under ``[backends.<name>]`` in the configuration, with the defaults."""
        return {}

    def configure(self, options: Mapping[str, object]) -> None:
        """Receive the options, including defaults; called once, before the first use."""

    def device_count(self) -> int:
        """How many devices there are; a backend with one device names it without an index.

        Must not raise: where there is none to be had, the answer is 0, and `problem` says why.
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
        """Facts for ``plugrad doctor``, by what they are: versions of the library and the driver,
        the devices' names, what computes. Must not raise, and need not find a device."""
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
        """The dtypes that `plugrad.autocast` may run operators in, the default one first; none: the
        backend has no autocast.

        By default bfloat16 and float16, as far as arrays can have them. Which operators run in
        them, and which in float32, is the same for all backends but the CPU: PyTorch's lists for
        CUDA. `Library.impl` with the key ``"Autocast" + key_name`` replaces single entries.
        """
        return tuple([dtype for dtype in (bfloat16, float16) if _accepts(self, dtype)])

    def capabilities(self) -> frozenset[str]:
        """What the backend has beyond kernels, by what it overrides.

        "mutable": kernels may write into arrays. "random": generators of its own. "strides":
        arrays have a layout. "dlpack": memory is exchanged without a copy. "streams": work is
        asynchronous. "jit": functions can be made one program. "compile": captured steps can be
        lowered. "pinned": host memory can be page-locked.
        """
        found = [
            word
            for word, method in _CAPABILITIES.items()
            if getattr(type(self), method) is not getattr(Backend, method)
        ]
        return frozenset([*found, "mutable"] if self.mutable else found)

    def as_array(self, value: Any) -> Any:
        """Turn what a kernel returned, and is not an `array_type`, into an array: a NumPy scalar,
        say.

        Raises:
            TypeError: it cannot be turned into one; by default whatever is not an `array_type`.
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
        """Whether `to_host` could be called for an array; not while it stands in for others, in a
        function that is traced. `x[i]` with a tensor `i` without values does not ask for it."""
        return True

    def is_local(self, array: Any) -> bool:
        """Whether this process can get all elements of an array, whatever other processes do. A
        tensor whose array is not local prints without them."""
        return True

    def run_again(self, kernel: Any, arrays: tuple[Any, ...], error: Exception) -> Any:
        """What another call of a kernel gives, after one on these arguments has raised `error`.

        Override it if arguments can be fixed, such as arrays in different places. Nothing
        is asked where nothing fails. By default, and wherever it is something else that is wrong,
        it raises `error`.
        """
        raise error

    def printed(self, array: Any) -> str | None:
        """The text of a tensor with this array; None: its elements, as for any tensor.

        For arrays whose elements one process cannot read alone.
        """
        return None

    def copy_from_host(
        self, array: np.ndarray[Any, Any], index: int, non_blocking: bool = False
    ) -> Any:
        """Host data on device `index`, in memory of its own: what `Tensor.to` gives.

        Override it if `from_host` copies anyway, or if copies can overlap with work.

        Args:
            non_blocking: may return before the copy is done; `array` is not written to before.
        """
        return self.from_host(array.copy("K"), index)

    def copy_to_host(self, array: Any, non_blocking: bool = False) -> np.ndarray[Any, Any]:
        """Host data of an array, in writable memory of its own: what `Tensor.cpu` gives.

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
        """A copy of host data in memory that devices read and write on their own: page-locked.

        Raises:
            RuntimeError: the backend has no such memory.
        """
        raise RuntimeError("Need to provide pin_memory allocator to use pin memory.")

    def is_pinned(self, array: np.ndarray[Any, Any]) -> bool:
        """Whether host data lies in memory that `pin` gave."""
        return False

    def native_dtype(self, dtype: DType) -> Any:
        """The backend's own object for a dtype; TypeError if it has none."""
        return dtype.numpy

    def dtype_of(self, array: Any) -> DType:
        """The dtype of an array; by default that of NumPy with the same name.

        Raises:
            TypeError: the array's dtype is none of NumPy's, or none that plugrad has.
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
        """What of the hardware variants of kernels may need: by name, whether they may use it.

        Names that are not in it mean nothing to the backend, so a variant that needs one has a
        wrong declaration.

        Args:
            capability: `cpu_capability` of the configuration, for backends that compute on the
                processor; it restricts what may be used. Empty for no restriction.

        Raises:
            ValueError: there is no such capability.
        """
        return {}

    def is_contiguous(self, array: Any) -> bool:
        """Whether an array's elements lie in memory row by row, without gaps."""
        expected = 1
        strides = self.strides(array)
        for size, stride in zip(reversed(array.shape), reversed(strides), strict=True):
            if size != 1 and stride != expected:
                return False
            expected *= max(int(size), 1)
        return True

    def strides(self, array: Any) -> tuple[int, ...]:
        """Strides in elements; by default those of a contiguous array."""
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
            BufferError: the array cannot be shared, or not in the way that is requested.
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
        """DLPack's number for the kind of memory that arrays are in; -1 if it has none.

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
        """The order in which a device works, as the engine sees it."""
        return DeviceQueue()

    def synchronize(self, index: int) -> None:
        """Wait until a device has finished what was asked of it."""

    def num_threads(self) -> int:
        """How many threads of the processor one operator may use: those of the libraries that it
        calls, too."""
        return 1

    def set_num_threads(self, count: int) -> None:
        """Let operators use so many threads of the processor, or fewer.

        Called with what `plugrad.set_num_threads` or the configuration says, also before the first
        use; never, if nobody says anything. By default it is ignored.
        """

    def jit(self, function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        """A version of a function over tensors that runs as one program; `plugrad.compile` calls
        it.

        It has the results and effects of the function: gradients, what the optimizer changes, and
        random numbers. Where it cannot have them it raises.

        Args:
            function: over tensors and whatever holds tensors.
            options: the backend's own.
        """
        raise NotImplementedError(f"backend {self.name!r} does not compile functions")

    def arena(
        self, size: int, parts: list[tuple[int, tuple[int, ...], tuple[int, ...], Any]]
    ) -> list[Any] | None:
        """Arrays in one stretch of new memory, for what a compiled step computes on the way; None
        if the backend's kernels always allocate their results.

        Args:
            size: of the memory, in bytes.
            parts: for each array the offset in bytes, a multiple of 64; shape; strides in bytes;
                native dtype. Some overlap: they are not needed at the same time.
        """
        return None

    def current_stream(self, index: int) -> Any:
        """The stream that the calling thread's work for a device goes to, of those it has.

        For backends whose devices have several orders of work, of which each thread chooses one;
        they override `use_stream` and `record_stream`, too. The engine then runs a node on the
        stream that its forward ran on, and orders the streams by marks.

        Streams are hashable, equal if they are the same, and have two methods, which any thread
        may call: ``record_event()`` gives a mark after the work they were given so far, and
        ``wait_event(event)`` makes what they are given from now on wait for a mark of a stream
        of any device of the backend. What a kernel returns, copies between devices included, is
        in the order of the calling thread's current stream of the result's device.
        """
        return None

    def use_stream(self, index: int, stream: Any) -> None:
        """Let the calling thread's work for a device go to a stream that `current_stream`
        returned, maybe in another thread."""

    def record_stream(self, array: Any, stream: Any) -> None:
        """Note that an array, made on one stream, is in use on another one too.

        For backends whose memory is handed out again in the order of the stream that it was made
        on: when nobody refers to the array any more, its memory may be handed out only after what
        `stream` was asked until then. Called after `stream` was made to wait for the array.
        """

    def compile(self, step: Any) -> Any:
        """Lower a captured step to one function on arrays, in the order of its inputs: what
        `plugrad.compile` runs in place of its own tape.

        The function returns a list of arrays. Operators in place write to arrays they are given.

        Args:
            step: a `CapturedStep`: its inputs, calls and outputs.
        """
        raise NotImplementedError(f"backend {self.name!r} does not compile captured steps")

    def compile_on_host(self, step: Any) -> Any:
        """Lower a captured step on arrays of the host, NumPy's, by this backend's compiler.

        For backends that have `jit`: `plugrad.compile(..., backend=name)` uses this where a step's
        tensors are not this backend's. What the function does is as for `compile`.

        Args:
            step: a `CapturedStep` on NumPy's arrays.

        Raises:
            NotImplementedError: this compiler cannot have the step; it then runs as it is written.
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
    """A class as people write it, with its module; what else may tell arrays apart as it is."""
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
    """How a backend is made from an array namespace; the plugin layer says it."""

    def __init__(self) -> None:
        self.make: Callable[[Any, str | None, dict[str, Any]], Backend] | None = None


_namespaces: Final = _Namespaces()


def set_namespace_backend(make: Callable[[Any, str | None, dict[str, Any]], Backend]) -> None:
    """`make(xp, name, options)` makes a backend from an array namespace."""
    _namespaces.make = make


@mypyc_attr(allow_interpreted_subclasses=True)
class DeviceQueue:
    """How the engine talks to one device: work to do, and the order between streams of work.

    Every device that is not the host has a thread in the engine, which takes backward's nodes
    from this queue. The defaults suit a backend whose work is done when a kernel returns; one that
    works asynchronously overrides `activate`, the events, `fork` and `join`. Where threads choose
    among several streams (`Backend.current_stream`), `activate` is all: the engine orders them.

    Attributes:
        ready: the engine's priority queue behind `push` and `pop`.
    """

    ready: Any = None

    def push(self, task: Any) -> None:
        """Take a node task for the device's thread; called from any thread, must not wait."""
        self.ready.put(task)

    def pop(self) -> Any:
        """The most urgent node task, waiting until there is one; called from the device's
        thread."""
        return self.ready.get()

    def is_bound(self) -> bool:
        """Whether the calling thread alone can work on the device now, as while it traces a
        function: a backward pass then stays on it."""
        return False

    def activate(self) -> None:
        """Make the device and its stream current on the calling thread."""

    def record_event(self) -> Any:
        """A mark after the work that was queued so far."""
        return None

    def wait_event(self, event: Any) -> None:
        """Make work queued from now on wait for a mark, possibly of another device."""

    def fork(self) -> None:
        """Make work queued from now on wait for what the calling thread, which is not the
        device's, asked of the device so far."""

    def join(self) -> None:
        """Make what the calling thread, which is not the device's, asks of the device from now on
        wait for the work queued so far."""

    def synchronize(self) -> None:
        """Block the calling thread until the queued work is done."""
