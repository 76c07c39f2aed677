"""Files from the network or the disk, kept in a folder and checked by their hash."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import re
import sys
import tempfile
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from plugrad_nn import serialization
from plugrad_nn.serialization.locations import MapLocation

__all__ = ["download_url_to_file", "get_dir", "load_state_dict_from_url", "set_dir"]

# A file is called name-<first digits of its SHA-256>.ext.
_HASH_IN_NAME: Final = re.compile(r"-([a-f0-9]*)\.")
_SCHEMES: Final = frozenset({"file", "ftp", "http", "https"})
_PART: Final = 1 << 17


class _Settings:
    folder: str | None = None


def get_dir() -> str:
    """The folder of downloaded files, whether it exists or not.

    The folder given to `set_dir`; else ``$TORCH_HOME/hub``, as in PyTorch; else
    ``$XDG_CACHE_HOME/torch/hub``, by default ``~/.cache/torch/hub``.

    >>> import plugrad
    >>> plugrad.hub.get_dir().endswith("hub")
    True
    """
    if _Settings.folder is not None:
        return _Settings.folder
    return os.path.join(_get_torch_home(), "hub")


def _get_torch_home() -> str:
    """The folder that PyTorch's files are in, by the name that packages call it."""
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))


def set_dir(d: str | os.PathLike[str]) -> None:
    """Set the folder of downloaded files.

    Args:
        d: its path; ``~`` is the user's home. It need not exist.

    >>> import plugrad
    >>> before = plugrad.hub.get_dir()
    >>> plugrad.hub.set_dir("models")
    >>> plugrad.hub.get_dir()
    'models'
    >>> plugrad.hub.set_dir(before)
    """
    _Settings.folder = os.path.expanduser(os.fspath(d))


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Download a URL to a file, which is replaced only when the download is complete.

    Args:
        url: http, https, ftp or file.
        dst: the path of the file.
        hash_prefix: the first hexadecimal digits of its SHA-256.
        progress: whether to show a bar, if tqdm is installed.

    Raises:
        RuntimeError: the file has another hash, or the download is incomplete.
        ValueError: the URL is of another kind.
        OSError: it cannot be reached, or `dst` cannot be written.

    >>> import pathlib, tempfile, plugrad
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     source = pathlib.Path(folder, "source")
    ...     _ = source.write_text("weights")
    ...     target = pathlib.Path(folder, "target")
    ...     plugrad.hub.download_url_to_file(source.as_uri(), str(target), progress=False)
    ...     target.read_text()
    'weights'
    """
    scheme = urllib.parse.urlsplit(url).scheme
    if scheme not in _SCHEMES:
        raise ValueError(
            f"download_url_to_file: url must begin with http, https, ftp or file, got {url!r}"
        )
    target = os.path.expanduser(dst)
    request = urllib.request.Request(url, headers={"User-Agent": "plugrad.hub"})
    with urllib.request.urlopen(request) as source:
        announced = source.headers.get("Content-Length")
        total = int(announced) if announced and announced.isdigit() else None
        folder = os.path.dirname(target) or "."
        handle, partial = tempfile.mkstemp(".partial", dir=folder)
        try:
            with open(handle, "wb") as file, _bar(total, progress) as bar:
                digest = hashlib.sha256()
                done = 0
                while part := source.read(_PART):
                    file.write(part)
                    digest.update(part)
                    done += len(part)
                    bar.update(len(part))
            if total is not None and done != total:
                raise RuntimeError(
                    f"download of {url} is incomplete: {done} of {total} bytes have come"
                )
            found = digest.hexdigest()
            if hash_prefix is not None and not found.startswith(hash_prefix):
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{found}")')
            # As any new file: a temporary one is its owner's only.
            os.chmod(partial, 0o666 & ~_umask())
            os.replace(partial, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(partial)
            raise


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: MapLocation = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> Any:
    """Download a file once, and return what `plugrad.load` reads from it.

    A zip file with one file in it is unpacked.

    Args:
        url: of the file. Its name, if `check_hash`, ends with the first digits of its SHA-256, as
            in ``resnet18-f37072fd.pth``.
        model_dir: where to keep it; by default ``checkpoints`` in `get_dir()`.
        map_location, weights_only: see `plugrad.load`. PyTorch's default of `weights_only` is False
            here; in plugrad, files from the network may run programs only on request.
        progress: whether to show a bar, if tqdm is installed.
        check_hash: whether to check it.
        file_name: how to call it; by default as in the URL.

    Raises:
        RuntimeError: its hash is another one; or a zip file has several files.
        ValueError: the URL has no name of a file, or is of another kind.
        OSError: it cannot be reached, or the folder cannot be written to.

    >>> import pathlib, tempfile, plugrad
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     source = pathlib.Path(folder, "weights.pth")
    ...     plugrad.save({"w": plugrad.ones(2)}, source, format="pt")
    ...     kept = str(pathlib.Path(folder, "kept"))
    ...     plugrad.hub.load_state_dict_from_url(source.as_uri(), kept, progress=False)
    {'w': tensor([1., 1.])}
    """
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urllib.parse.unquote(urllib.parse.urlsplit(url).path))
    if name in ("", ".", "..") or os.path.basename(name) != name or "\0" in name:
        raise ValueError(f"load_state_dict_from_url: {name!r} is not the name of a file")
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        sys.stderr.write(f'Downloading: "{url}" to {path}\n')
        found = _HASH_IN_NAME.search(name) if check_hash else None
        download_url_to_file(url, path, found.group(1) if found else None, progress)
    if _is_wrapped(path):
        return _load_wrapped(path, map_location, weights_only)
    return serialization.load(path, map_location, weights_only=weights_only)


def _is_wrapped(path: str) -> bool:
    """Whether it is a zip file around one file, as PyTorch's older hubs have them."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    return not any(name.rpartition("/")[2] == "data.pkl" for name in names)


def _load_wrapped(path: str, map_location: MapLocation, weights_only: bool) -> Any:
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        if len(members) != 1:
            raise RuntimeError("Only one file(not dir) is allowed in the zipfile")
        if Path(members[0].filename).name != members[0].filename:
            raise RuntimeError(f"{members[0].filename!r} in {path} is not the name of a file")
        with tempfile.TemporaryDirectory() as folder:
            inside = archive.extract(members[0], folder)
            return serialization.load(inside, map_location, weights_only=weights_only)


class _NoBar:
    def update(self, count: int) -> None:
        """Nothing is shown."""


@contextlib.contextmanager
def _bar(total: int | None, wanted: bool) -> Iterator[Any]:
    """A progress bar, if requested and tqdm is installed."""
    try:
        tqdm = importlib.import_module("tqdm").tqdm
    except ImportError:
        wanted = False
    if not wanted:
        yield _NoBar()
        return
    with tqdm(total=total, unit="B", unit_scale=True, unit_divisor=1024) as bar:
        yield bar


def _umask() -> int:
    # It can only be read by setting it.
    mask = os.umask(0)
    os.umask(mask)
    return mask
