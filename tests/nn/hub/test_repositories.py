"""hub.load, list and help: folders with a hubconf.py, and repositories of a local server.

Oracle: PyTorch, for folders and for its use of an existing copy; for downloads, the server's files
and requests.
"""

from __future__ import annotations

import functools
import http.server
import io
import json
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from plugrad import hub
from plugrad_nn.hub.repositories import _Site

HUBCONF = """
dependencies = ["json"]
import helper_of_hubconf as _helper
_private = len
constant = 3
def net(width, *, bias=True):
    "A net."
    return _helper.made(width, bias)
def plain(): return 1
"""
HELPER = "def made(width, bias): return (width, bias)\n"


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "hub"
    monkeypatch.setattr("plugrad_nn.hub.downloads._Settings.folder", str(folder))
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    path = list(sys.path)
    yield folder
    assert sys.path == path
    sys.modules.pop("helper_of_hubconf", None)


def files(folder: Path, hubconf: str = HUBCONF) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hubconf.py").write_text(hubconf)
    (folder / "helper_of_hubconf.py").write_text(HELPER)
    return folder


def archive(hubconf: str = HUBCONF, more: str = "") -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        file.writestr("me-models-0123abc/", b"")
        file.writestr("me-models-0123abc/hubconf.py", hubconf)
        file.writestr("me-models-0123abc/helper_of_hubconf.py", HELPER)
        if more:
            file.writestr(more, b"")
    return data.getvalue()


class Server:
    """Answers by path; records the requests."""

    def __init__(self) -> None:
        branches = [{"name": "v1", "commit": {"sha": "abcdef"}}]
        self.answers: dict[str, tuple[int, bytes]] = {
            "/me/models/zipball/v1": (200, archive()),
            "/repos/me/models/branches?per_page=100&page=1": (200, json.dumps(branches).encode()),
        }
        self.asked: list[str] = []
        self.tokens: list[str | None] = []

    def answer(self, path: str, token: str | None) -> tuple[int, bytes]:
        self.asked.append(path)
        self.tokens.append(token)
        return self.answers.get(path, (200, b"[]") if path.startswith("/repos") else (404, b""))


class Handler(http.server.BaseHTTPRequestHandler):
    def __init__(self, owner: Server, *args: Any) -> None:
        self.owner = owner
        super().__init__(*args)

    def do_GET(self) -> None:
        status, body = self.owner.answer(self.path, self.headers.get("Authorization"))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    owner = Server()
    with http.server.HTTPServer(("127.0.0.1", 0), functools.partial(Handler, owner)) as listening:
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        address = f"http://127.0.0.1:{listening.server_port}"
        monkeypatch.setattr(_Site, "pages", address)
        monkeypatch.setattr(_Site, "api", address)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield owner
        listening.shutdown()
        thread.join()


def answering(monkeypatch: pytest.MonkeyPatch, answer: str) -> list[str]:
    asked: list[str] = []

    def ask(prompt: str) -> str:
        asked.append(prompt)
        return answer

    monkeypatch.setattr("builtins.input", ask)
    return asked


def test_a_folders_function_is_called(tmp_path: Path) -> None:
    folder = files(tmp_path / "mine")
    assert hub.load(folder, "net", 3, bias=False, source="Local") == (3, False)
    assert hub.load(str(folder), "plain", source="local") == 1


@pytest.mark.parametrize(
    ("call", "hubconf"),
    [
        (lambda lib, at: lib.load(at, "none", source="local"), HUBCONF),
        (lambda lib, at: lib.load(at, "constant", source="local"), HUBCONF),
        (lambda lib, at: lib.load(at, 3, source="local"), HUBCONF),
        (lambda lib, at: lib.load(at, "net", source="web"), HUBCONF),
        (lambda lib, at: lib.load(at + "/none", "net", source="local"), HUBCONF),
        (
            lambda lib, at: lib.load(at, "f", source="local"),
            "dependencies = ['no_a', 'json', 'b_']",
        ),
        (lambda lib, at: lib.load(at, "f", source="local"), "import no_such_module"),
        (lambda lib, at: lib.load(at, "f", source="local"), "def f(): return 1 / 0"),
        (lambda lib, at: lib.load(at, "f", 2, source="local"), "def f(): pass"),
    ],
)
def test_errors_of_a_folder_are_torchs(
    torch: Any, tmp_path: Path, call: Callable[[Any, str], Any], hubconf: str
) -> None:
    folder = str(files(tmp_path / "mine", hubconf))
    errors = []
    for library in (hub, torch.hub):
        with pytest.raises(Exception) as caught:  # compared below
            call(library, folder)
        errors.append((type(caught.value), str(caught.value)))
    assert errors[0] == errors[1]


def test_a_copy_that_is_there_gives_what_torch_gives(
    torch: Any, kept: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    files(kept / "me_models_v1")
    given = []
    before = torch.hub.get_dir()
    try:
        torch.hub.set_dir(str(kept))
        for library in (hub, torch.hub):
            found = (library.list("me/models:v1"), library.help("me/models:v1", "net"))
            given.append((found, library.help("me/models:v1", "plain"), capfd.readouterr().err))
    finally:
        torch.hub.set_dir(before)
    assert given[0] == given[1]
    assert given[0][0] == (["net", "plain"], "A net.")


def test_a_repository_is_downloaded_once(server: Server, kept: Path, capfd: Any) -> None:
    assert hub.load("me/models:v1", "net", 3, trust_repo=True) == (3, True)
    assert "Downloading: " in capfd.readouterr().out
    assert sorted(entry.name for entry in kept.iterdir()) == ["me_models_v1", "trusted_list"]
    assert (kept / "trusted_list").read_text() == "me_models\n"
    server.asked.clear()
    assert hub.list("me/models:v1") == ["net", "plain"]
    assert f"Using cache found in {kept / 'me_models_v1'}" in capfd.readouterr().err
    assert hub.load("me/models:v1", "plain", verbose=False) == 1
    assert capfd.readouterr().err == ""
    assert server.asked == []


def test_force_reload_downloads_again(server: Server, kept: Path) -> None:
    (files(kept / "me_models_v1") / "old").touch()
    server.answers["/me/models/zipball/v1"] = (200, archive("def new(): pass"))
    assert hub.list("me/models:v1", force_reload=True) == ["new"]
    assert not (kept / "me_models_v1" / "old").exists()


@pytest.mark.parametrize("more", ["../out", "/out", "a/../../out", "C:\\out"])
def test_an_archive_that_leaves_its_folder_changes_nothing(
    server: Server, kept: Path, more: str
) -> None:
    files(kept / "me_models_v1")
    server.answers["/me/models/zipball/v1"] = (200, archive("def new(): pass", more))
    with pytest.raises(ValueError, match="Archive entry "):
        hub.list("me/models:v1", force_reload=True)
    assert hub.list("me/models:v1") == ["net", "plain"]
    assert sorted(entry.name for entry in kept.iterdir()) == ["me_models_v1", "trusted_list"]


@pytest.mark.parametrize("answer", ["", "n", "No"])
def test_an_untrusted_repository_is_not_asked_for(
    server: Server, kept: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    asked = answering(monkeypatch, answer)
    with pytest.raises(RuntimeError, match="Untrusted repository"):
        hub.load("me/models:v1", "plain")
    assert "me_models" in asked[0]
    assert server.asked == []
    assert (kept / "trusted_list").read_text() == ""


def test_who_is_trusted_once_is_not_asked_about_again(
    server: Server, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = answering(monkeypatch, "Yes")
    for _ in range(2):
        assert hub.load("me/models:v1", "plain", force_reload=True) == 1
    assert len(asked) == 1
    assert hub.load("me/models:v1", "plain", trust_repo=False) == 1
    assert len(asked) == 2
    assert (kept / "trusted_list").read_text() == "me_models\n"


def test_other_answers_and_values_are_refused(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, "perhaps")
    with pytest.raises(ValueError, match="Unrecognized response perhaps"):
        hub.load("me/models:v1", "plain")
    with pytest.raises(ValueError, match="trust_repo must be True, False or \"check\", got 'yes'"):
        hub.load("me/models:v1", "plain", trust_repo="yes")
    for name in ("models", "me/models:v1:v2", "me/../models", "/models"):
        with pytest.raises(ValueError, match=r"must have the form owner/name\[:ref\]"):
            hub.list(name)


@pytest.mark.parametrize(("status", "ref"), [(200, "main"), (404, "master")])
def test_the_default_branch_is_main_or_master(
    server: Server, kept: Path, status: int, ref: str
) -> None:
    server.answers["/me/models/tree/main/"] = (status, b"")
    server.answers[f"/me/models/zipball/{ref}"] = (200, archive())
    hub.list("me/models", trust_repo=True, skip_validation=True)
    assert (kept / f"me_models_{ref}").is_dir()


def test_a_ref_of_a_fork_is_refused_unless_validation_is_skipped(server: Server) -> None:
    server.answers["/me/models/zipball/fork"] = (200, archive())
    with pytest.raises(ValueError, match="Cannot find fork in "):
        hub.list("me/models:fork", trust_repo=True)
    assert "/me/models/zipball/fork" not in server.asked
    assert hub.list("me/models:fork", skip_validation=True) == ["net", "plain"]


def test_the_beginning_of_a_commit_will_do(server: Server) -> None:
    server.answers["/me/models/zipball/abcd"] = (200, archive())
    assert hub.list("me/models:abcd", trust_repo=True) == ["net", "plain"]


def test_a_token_goes_to_the_interface_only_and_may_be_of_no_use(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    page = "/repos/me/models/branches?per_page=100&page=1"
    good, plain = server.answers[page], server.answer

    def answer(path: str, token: str | None) -> tuple[int, bytes]:
        server.answers[page] = (401, b"") if token else good
        return plain(path, token)

    server.answer = answer  # type: ignore[method-assign]
    hub.list("me/models:v1", trust_repo=True)
    assert server.asked == [page, page, "/me/models/zipball/v1"]
    assert server.tokens == ["token secret", None, None]


def test_of_a_branch_and_a_tag_with_one_name_the_branch_is_taken(server: Server) -> None:
    server.answers["/me/models/zipball/v1"] = (300, b"")
    server.answers["/me/models/zipball/refs/heads/v1"] = (200, archive())
    with pytest.warns(UserWarning, match="may be a tag and a branch"):
        assert hub.list("me/models:v1", trust_repo=True) == ["net", "plain"]


def test_without_a_connection_the_copy_is_used(
    kept: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(_Site, "pages", (tmp_path / "nothing").as_uri())
    with pytest.raises(RuntimeError, match="there is no internet connection"):
        hub.list("me/models")
    files(kept / "me_models_master")
    assert hub.list("me/models", verbose=False) == ["net", "plain"]
