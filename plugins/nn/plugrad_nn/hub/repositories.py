"""Repositories of GitHub, downloaded once into the folder of `plugrad.hub`, if they are trusted.

The layout of the folder is PyTorch's: ``<owner>_<name>_<ref>`` for each repository, and the file
``trusted_list`` with one ``<owner>_<name>`` a line.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import urllib.error
import urllib.request
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

from plugrad_nn.hub.downloads import download_url_to_file, get_dir


class _Site:
    """Where repositories are; tests use their own server."""

    pages = "https://github.com"
    api = "https://api.github.com"


# Owners that PyTorch trusts without a question.
_TRUSTED_OWNERS: Final = frozenset(
    {"facebookincubator", "facebookresearch", "fairinternal", "pytorch"}
)
_NAME: Final = re.compile(r"(?P<owner>[\w.-]+)/(?P<name>[\w.-]+)(?::(?P<ref>[^:]+))?")
_PAGE: Final = 100


class Repository(NamedTuple):
    """The parts of ``owner/name:ref``."""

    owner: str
    name: str
    ref: str

    @property
    def folder(self) -> str:
        """The name of its folder. A ref may have slashes, and a name of a folder must not."""
        return f"{self.owner}_{self.name}_{self.ref}".replace("/", "_")


def repository_folder(
    github: str, force_reload: bool, trust_repo: bool | str, verbose: bool, skip_validation: bool
) -> str:
    """The folder with the files of a repository, which is downloaded if it is missing.

    Raises:
        TypeError: `github` is not a string.
        ValueError: it does not have the form owner/name[:ref]; the ref is not one of the
            repository; `trust_repo` is not one of its values; or a path in the archive leads out
            of the folder.
        RuntimeError: the user does not trust it; or there is no connection and no copy.
        OSError: the download fails.
    """
    if not isinstance(trust_repo, bool) and trust_repo != "check":
        raise ValueError(f'hub: trust_repo must be True, False or "check", got {trust_repo!r}')
    kept = Path(get_dir())
    kept.mkdir(parents=True, exist_ok=True)
    repository = _parsed(github, kept)
    target = kept / repository.folder
    _require_trust(repository, kept, trust_repo)
    if target.exists() and not force_reload:
        if verbose:
            sys.stderr.write(f"Using cache found in {target}\n")
        return str(target)
    if not skip_validation:
        _require_own_ref(repository)
    # Beside the target, so that a complete download moves there in one step.
    with tempfile.TemporaryDirectory(prefix=".partial-", dir=kept) as work:
        archive = Path(work, "archive.zip")
        _download(repository, archive, target)
        _replace(target, _unpacked(archive, Path(work, "new")), Path(work, "old"))
    return str(target)


def _parsed(github: str, kept: Path) -> Repository:
    if not isinstance(github, str):
        raise TypeError(f"hub: the repository must be a str, not {type(github).__name__}")
    found = _NAME.fullmatch(github)
    if found is None:
        raise ValueError(f"hub: a repository must have the form owner/name[:ref], got {github!r}")
    owner, name, ref = found["owner"], found["name"], found["ref"]
    return Repository(owner, name, ref or _default_ref(owner, name, kept))


def _default_ref(owner: str, name: str, kept: Path) -> str:
    """main if there is such a branch, else master; without a connection, the one that is kept."""
    try:
        with urllib.request.urlopen(f"{_Site.pages}/{owner}/{name}/tree/main/"):
            return "main"
    except urllib.error.HTTPError as error:
        with closing(error):
            if error.code == 404:
                return "master"
        raise
    except urllib.error.URLError as error:
        for ref in ("main", "master"):
            if (kept / Repository(owner, name, ref).folder).exists():
                return ref
        raise RuntimeError(
            "It looks like there is no internet connection and the repo could not be found in the "
            f"cache ({kept})"
        ) from error


def _require_trust(repository: Repository, kept: Path, trust_repo: bool | str) -> None:
    """Ask the user, unless there is an earlier answer; then store the answer."""
    listed = kept / "trusted_list"
    listed.touch()
    called = f"{repository.owner}_{repository.name}"
    trusted = (
        called in listed.read_text(encoding="utf-8").split()
        # A repository that was downloaded before was trusted then.
        or (kept / repository.folder).is_dir()
        or repository.owner in _TRUSTED_OWNERS
    )
    if trust_repo is False or (trust_repo == "check" and not trusted):
        answer = input(
            f"The repository {called} is not in the list of trusted repositories, so it cannot be "
            "downloaded. Do you trust it, and do you want to add it to the list (y/N)?"
        )
        if answer.lower() in ("n", "no", ""):
            raise RuntimeError("Untrusted repository.")
        if answer.lower() not in ("y", "yes"):
            raise ValueError(f"Unrecognized response {answer}.")
    if not trusted:
        with listed.open("a", encoding="utf-8") as file:
            file.write(f"{called}\n")


def _require_own_ref(repository: Repository) -> None:
    """GitHub also serves commits of forks under the name of the original, but only its owner is
    trusted."""
    for kind in ("branches", "tags"):
        for entry in _entries(repository, kind):
            if entry["name"] == repository.ref or entry["commit"]["sha"].startswith(repository.ref):
                return
    raise ValueError(
        f"Cannot find {repository.ref} in {_Site.pages}/{repository.owner}/{repository.name}. If "
        "it's a commit from a forked repo, please call hub.load() with forked repo directly."
    )


def _entries(repository: Repository, kind: str) -> Iterator[Any]:
    page = 1
    address = f"{_Site.api}/repos/{repository.owner}/{repository.name}/{kind}"
    while found := _answer(f"{address}?per_page={_PAGE}&page={page}"):
        yield from found
        page += 1


def _answer(url: str) -> Any:
    headers = {"Accept": "application/vnd.github.v3+json"}
    token = os.environ.get("GITHUB_TOKEN")
    try:
        return _json(url, headers | ({"Authorization": f"token {token}"} if token else {}))
    except urllib.error.HTTPError as error:
        if not token:
            raise
        error.close()
    # The token may not be for this repository, which may be public.
    return _json(url, headers)


def _json(url: str, headers: dict[str, str]) -> Any:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
        return json.load(answer)


def _download(repository: Repository, archive: Path, target: Path) -> None:
    address = f"{_Site.pages}/{repository.owner}/{repository.name}/zipball"
    url = f"{address}/{repository.ref}"
    sys.stdout.write(f'Downloading: "{url}" to {target}\n')
    try:
        download_url_to_file(url, str(archive), progress=False)
    except urllib.error.HTTPError as error:
        with closing(error):
            if error.code != 300:
                raise
    else:
        return
    warnings.warn(
        f"{repository.ref} may be a tag and a branch of {repository.owner}/{repository.name}; the "
        f"branch is taken. Give refs/heads/{repository.ref} or refs/tags/{repository.ref} to "
        "choose, with skip_validation=True.",
        stacklevel=4,
    )
    download_url_to_file(f"{address}/refs/heads/{repository.ref}", str(archive), progress=False)


def _unpacked(archive: Path, into: Path) -> Path:
    """The one folder that an archive of a repository has, unpacked."""
    with zipfile.ZipFile(archive) as file:
        for member in file.infolist():
            path = member.filename.replace("\\", "/")
            if path.startswith("/") or re.match("[A-Za-z]:", path):
                raise ValueError(f"Archive entry has absolute path: {member.filename}")
            if ".." in path.split("/"):
                raise ValueError(f"Archive entry contains directory traversal: {member.filename}")
        file.extractall(into)
    found = [path for path in into.iterdir() if path.is_dir()] if into.is_dir() else []
    if len(found) != 1:
        raise ValueError(
            f"hub: the archive of a repository must have one folder, this one has {len(found)}"
        )
    return found[0]


def _replace(target: Path, new: Path, old: Path) -> None:
    """Move `target` to `old`, and `new` to `target`; on failure nothing moves."""
    there = target.exists()
    if there:
        target.rename(old)
    try:
        new.rename(target)
    except BaseException:
        if there:
            old.rename(target)
        raise
