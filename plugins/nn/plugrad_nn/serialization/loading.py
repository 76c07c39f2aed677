"""load: recognises the format of a file by its content, and reads it."""

from __future__ import annotations

import pickle
from typing import Any, BinaryIO, Final

from plugrad.plugins.printing import printed_name
from plugrad_nn.serialization import legacy, safetensors_files, sharded, torch_zip
from plugrad_nn.serialization.known_names import KnownNames
from plugrad_nn.serialization.locations import MapLocation, restore_function
from plugrad_nn.serialization.opcodes import NotAllowedError
from plugrad_nn.serialization.paths import PathOrFile, called, length_of, opened, path_of
from plugrad_nn.serialization.rebuilding import Rebuilder

_ZIP: Final = b"PK\x03\x04"
# Where tar files have their mark.
_TAR: Final = slice(257, 262)
_HEAD: Final = 512


def load(
    f: PathOrFile,
    map_location: MapLocation = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Reads a file of tensors: a safetensors file, one of PyTorch's, or the index of a sharded one.

    The content determines the format. Nothing in a file is executed unless `weights_only` is False.

    Args:
        f: a path or a binary file. ``model.safetensors.index.json`` and the like load all
            shards in the same folder.
        map_location: where to put the tensors: a device or its name; a dict from devices they were
            saved on to others; or a function of a storage on the CPU and the device's name, which
            returns the storage to use, or None to keep the device (for safetensors files: a
            function of a tensor that returns one). By default all tensors are on the device
            from which they were saved.
        pickle_module: only Python's pickle is possible.
        weights_only: False lets PyTorch files create any object, which can run any program: use it
            only for files from people you trust. By default True: tensors, plain containers,
            numbers, and names allowed by `plugrad.serialization.add_safe_globals`.
        mmap: leave the tensors of a zip file in it until they are used; `f` must be a path.
        pickle_load_args: with ``weights_only=False``, arguments of Python's `pickle.load`.

    Raises:
        pickle.UnpicklingError: a PyTorch file refers to something that is not allowed; the message
            says how to allow it. Or its pickle is damaged.
        ValueError: the format is unknown, or the data that `save` adds to it is broken.
        RuntimeError: a zip file was cut off or damaged; or a tensor was saved on a device that does
            not exist here: use `map_location`.
        EOFError: the file is empty or ends too early.
        TypeError: it contains a dtype that plugrad lacks, and the message names the entry; or `f`
            is neither a path nor a binary file.
        NotImplementedError: it contains unsupported tensors, such as sparse ones.

    >>> import io, plugrad
    >>> file = io.BytesIO()
    >>> plugrad.save({"weight": plugrad.ones(2)}, file, format="pt")
    >>> _ = file.seek(0)
    >>> plugrad.load(file, map_location="cpu")
    {'weight': tensor([1., 1.])}
    """
    if weights_only is not None and not isinstance(weights_only, bool):
        raise TypeError(
            f"load: weights_only must be a bool or None, got {type(weights_only).__name__}"
        )
    _check_pickle_module(pickle_module, weights_only)
    safe = weights_only is not False
    if safe and pickle_load_args.keys() - {"encoding"}:
        names = ", ".join(sorted(pickle_load_args))
        raise TypeError(f"load: {names} can be given with weights_only=False only")
    if mmap and path_of(f) is None:
        raise ValueError("f must be a file path in order to use the mmap argument")
    rebuilder = Rebuilder(restore_function(map_location))
    options = {} if safe else {"encoding": "utf-8", **pickle_load_args}
    with opened(f) as file:
        format_ = format_of(file)
        if format_ == "safetensors":
            return safetensors_files.load(file, called(f), map_location)
        if format_ == "index":
            return sharded.load(f, file, lambda path: load(path, map_location, mmap=mmap))
        if mmap and format_ != "zip":
            raise RuntimeError(
                "mmap can only be used with files saved with "
                f"`{printed_name()}.save(..., format='pt')`, or by PyTorch 1.6 and later"
            )
        try:
            if format_ == "zip":
                return torch_zip.load_zip(
                    file,
                    called(f),
                    rebuilder,
                    weights_only=safe,
                    mapped=bool(mmap),
                    options=options,
                )
            return legacy.load_legacy(
                file, called(f), rebuilder, weights_only=safe, options=options
            )
        except pickle.UnpicklingError as error:
            if not safe:
                raise
            raise pickle.UnpicklingError(_explained(called(f), error)) from error


def get_unsafe_globals_in_checkpoint(f: PathOrFile) -> list[str]:
    """The names in a PyTorch file that `load` would refuse unless they are allowed.

    Args:
        f: a path or a binary file; it is searched, and nothing in it is executed.

    Raises:
        ValueError, RuntimeError, pickle.UnpicklingError: as `load`.

    >>> import fractions, io, plugrad
    >>> file = io.BytesIO()
    >>> plugrad.save({"ratio": fractions.Fraction(1, 3)}, file, format="pt")
    >>> _ = file.seek(0)
    >>> plugrad.serialization.get_unsafe_globals_in_checkpoint(file)
    ['fractions.Fraction']
    """
    with opened(f) as file:
        format_ = format_of(file)
        if format_ == "zip":
            names = torch_zip.names_in_zip(file, called(f))
        elif format_ == "legacy":
            names = legacy.names_in_legacy(file, called(f))
        else:
            return []
    known = KnownNames(Rebuilder(restore_function("cpu")))
    unsafe = []
    for name in names:
        module, _, last = name.rpartition(".")
        try:
            known.find(module, last)
        except pickle.UnpicklingError:
            unsafe.append(name)
        except NotImplementedError:
            continue
    return unsafe


def format_of(file: BinaryIO) -> str:
    """The format of the rest of a file: "safetensors", "zip", "legacy" or "index".

    Raises:
        EOFError: nothing follows.
        ValueError: it is none of them.
    """
    here = file.tell()
    head = file.read(_HEAD)
    file.seek(here)
    if not head:
        raise EOFError("Ran out of input: the file is empty")
    header = int.from_bytes(head[:8], "little")
    if head[8:9] == b"{" and header <= length_of(file) - 8:
        return "safetensors"
    if head.startswith(_ZIP):
        return "zip"
    if head[_TAR] == b"ustar":
        raise ValueError(
            "load: this is a tar file, as PyTorch wrote before 0.1.10; load it with PyTorch and "
            "save it again"
        )
    # Protocol 2 is the first that begins so.
    if head[:1] == b"\x80" and 2 <= (head[1:2] or b"\0")[0] <= pickle.HIGHEST_PROTOCOL:
        return "legacy"
    if head.lstrip()[:1] == b"{":
        return "index"
    # The library's message already names the file.
    return "safetensors"


def _check_pickle_module(module: Any, weights_only: bool | None) -> None:
    if module is None:
        return
    if module is not pickle:
        raise ValueError(
            "load: pickle_module must be Python's pickle, got "
            f"{getattr(module, '__name__', type(module).__name__)}"
        )
    if weights_only:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")


def _explained(name: str, error: pickle.UnpicklingError) -> str:
    library = printed_name()
    if not isinstance(error, NotAllowedError):
        return (
            f"Weights only load failed: {name}: {error}. The file was cut off or changed after it "
            "was written"
        )
    return (
        f"Weights only load failed: {name}: {error}\n"
        f"Nothing of the file was executed. If you trust where it comes from, either allow the "
        f"names that it uses (`{library}.serialization.get_unsafe_globals_in_checkpoint` lists "
        f"them, `{library}.serialization.add_safe_globals` allows them); or call `{library}.load` "
        "with weights_only=False, which lets the file run any program."
    )
