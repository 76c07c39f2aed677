"""Models by the functions in a repository's ``hubconf.py``: list, help and load."""

from __future__ import annotations

import builtins
import contextlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from plugrad_nn.hub.repositories import repository_folder

__all__ = ["help", "list", "load"]

_FILE = "hubconf.py"


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str = "check",
    verbose: bool = True,
) -> builtins.list[str]:
    """The names of the functions that `load` can call: all callables of ``hubconf.py`` without a
    leading underscore in their names.

    Args:
        github: ``"owner/name"`` or ``"owner/name:ref"``, where the ref is a branch, a tag or a
            commit; by default main, or master if there is no main.
        force_reload: whether to download it again.
        skip_validation: whether to skip the check on GitHub that the ref belongs to this
            repository. Commits of forks have its name, too.
        trust_repo: True trusts it and stores this; False asks; ``"check"`` asks unless it is
            in the file ``trusted_list`` of `get_dir()`, or was downloaded before.
        verbose: whether to print that a downloaded copy is used.

    Raises:
        ValueError: `github` has another form, or no such ref.
        RuntimeError: the user does not trust it.
        OSError: it cannot be downloaded, or has no ``hubconf.py``.

    >>> import pathlib, tempfile, plugrad
    >>> folder = plugrad.hub.get_dir()
    >>> with tempfile.TemporaryDirectory() as kept:
    ...     plugrad.hub.set_dir(kept)
    ...     copy = pathlib.Path(kept, "me_models_v1")  # As a download leaves it.
    ...     copy.mkdir()
    ...     _ = (copy / "hubconf.py").write_text("def net(width): return [0.0] * width")
    ...     plugrad.hub.list("me/models:v1", verbose=False)
    ['net']
    >>> plugrad.hub.set_dir(folder)
    """
    folder = repository_folder(github, force_reload, trust_repo, verbose, skip_validation)
    with _importing_from(folder):
        module = _hubconf(folder)
    return [name for name in dir(module) if name[0] != "_" and callable(getattr(module, name))]


def help(
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str = "check",
) -> str | None:
    """The docstring of a function in a repository's ``hubconf.py``; None if it has none.

    Args:
        github, force_reload, skip_validation, trust_repo: see `list`.
        model: the name of the function.

    Raises:
        RuntimeError: there is no such function; or packages are missing that it needs.
        ValueError, OSError: see `list`.

    >>> import pathlib, tempfile, plugrad
    >>> folder = plugrad.hub.get_dir()
    >>> with tempfile.TemporaryDirectory() as kept:
    ...     plugrad.hub.set_dir(kept)
    ...     copy = pathlib.Path(kept, "me_models_v1")  # As a download leaves it.
    ...     copy.mkdir()
    ...     _ = (copy / "hubconf.py").write_text("def net(): 'One layer.'")
    ...     plugrad.hub.help("me/models:v1", "net")
    'One layer.'
    >>> plugrad.hub.set_dir(folder)
    """
    folder = repository_folder(github, force_reload, trust_repo, True, skip_validation)
    with _importing_from(folder):
        return _entry_point(_hubconf(folder), model).__doc__


def load(
    repo_or_dir: str | os.PathLike[str],
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: bool | str = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a function in a repository's or a folder's ``hubconf.py``, which usually returns a
    model.

    The file is run, so it can do whatever a program can. While the function runs, imports search
    its folder first. A file that imports torch needs `plugrad.as_torch`.

    Args:
        repo_or_dir: ``"owner/name[:ref]"``, or the path of a folder.
        model: the name of the function.
        args, kwargs: the arguments of the function.
        source: ``"github"`` or ``"local"``, for a folder; then the other arguments are not used.
        trust_repo, force_reload, verbose, skip_validation: see `list`.

    Raises:
        ValueError: another source; or `model` is not a string.
        RuntimeError: there is no such function; or packages are missing that the list
            ``dependencies`` in ``hubconf.py`` names.
        OSError: there is no ``hubconf.py``; or it cannot be downloaded.

    >>> import pathlib, tempfile, plugrad
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "hubconf.py").write_text(
    ...         "import plugrad\\n"
    ...         "dependencies = ['plugrad']\\n"
    ...         "def net(width, bias=True): return plugrad.nn.Linear(width, 1, bias)"
    ...     )
    ...     plugrad.hub.load(folder, "net", 3, bias=False, source="local")
    Linear(in_features=3, out_features=1, bias=False)
    """
    kind = source.lower()
    if kind not in ("github", "local"):
        raise ValueError(f'Unknown source: "{kind}". Allowed values: "github" | "local".')
    folder = os.fspath(repo_or_dir)
    if kind == "github":
        folder = repository_folder(folder, force_reload, trust_repo, verbose, skip_validation)
    with _importing_from(folder):
        return _entry_point(_hubconf(folder), model)(*args, **kwargs)


@contextlib.contextmanager
def _importing_from(folder: str) -> Iterator[None]:
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # The file may have taken it away.
            sys.path.remove(folder)


def _hubconf(folder: str) -> ModuleType:
    # Under the name of its file, as in PyTorch: no other module can have that name.
    spec = importlib.util.spec_from_file_location(_FILE, os.path.join(folder, _FILE))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _entry_point(module: ModuleType, model: str) -> Callable[..., Any]:
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    needed = getattr(module, "dependencies", None) or ()
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    found = getattr(module, model, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    entry: Callable[..., Any] = found
    return entry
