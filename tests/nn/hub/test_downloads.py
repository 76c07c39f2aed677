"""plugrad.hub: files from file:// URLs, their hashes, and where they are kept. No network."""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

import plugrad
from plugrad import hub


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("plugrad_nn.hub.downloads._Settings.folder", None)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "hub"


def source(tmp_path: Path, name: str = "weights.pth") -> Path:
    path = tmp_path / name
    plugrad.save({"w": plugrad.arange(3.0)}, path, format="pt")
    return path


def test_a_state_dict_is_downloaded_once(tmp_path: Path, folder: Path, capfd: Any) -> None:
    path = source(tmp_path)
    state = hub.load_state_dict_from_url(path.as_uri(), progress=False)
    assert state["w"].tolist() == [0, 1, 2]
    assert (folder / "checkpoints" / "weights.pth").read_bytes() == path.read_bytes()
    assert "Downloading: " in capfd.readouterr().err
    path.unlink()
    assert hub.load_state_dict_from_url(path.as_uri())["w"].tolist() == [0, 1, 2]
    assert capfd.readouterr().err == ""


def test_names_and_folders_can_be_chosen(tmp_path: Path) -> None:
    url = source(tmp_path).as_uri()
    model_dir = tmp_path / "models"
    state = hub.load_state_dict_from_url(
        url, str(model_dir), map_location="meta", progress=False, file_name="mine.pt"
    )
    assert state["w"].device.type == "meta"
    assert [entry.name for entry in model_dir.iterdir()] == ["mine.pt"]


def test_hashes_in_names_are_checked(tmp_path: Path, folder: Path) -> None:
    data = source(tmp_path).read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    good, bad = tmp_path / f"net-{digest[:8]}.pth", tmp_path / "net-0123abcd.pth"
    for path in (good, bad):
        path.write_bytes(data)
    hub.load_state_dict_from_url(good.as_uri(), progress=False, check_hash=True)
    message = rf'invalid hash value \(expected "0123abcd", got "{digest}"\)'
    with pytest.raises(RuntimeError, match=message):
        hub.load_state_dict_from_url(bad.as_uri(), progress=False, check_hash=True)
    assert [entry.name for entry in (folder / "checkpoints").iterdir()] == [good.name]
    hub.load_state_dict_from_url(bad.as_uri(), progress=False)


def test_a_zip_file_around_one_file_is_unpacked(tmp_path: Path) -> None:
    inside = source(tmp_path)
    wrapped = tmp_path / "wrapped.zip"
    with zipfile.ZipFile(wrapped, "w") as archive:
        archive.write(inside, "weights.pth")
    found = hub.load_state_dict_from_url(wrapped.as_uri(), progress=False)
    assert found["w"].tolist() == [0, 1, 2]
    for names, message in [
        (["a", "b"], "Only one file"),
        (["../a"], "is not the name of a file"),
    ]:
        other = tmp_path / f"other{len(names)}.zip"
        with zipfile.ZipFile(other, "w") as archive:
            for name in names:
                archive.writestr(name, b"")
        with pytest.raises(RuntimeError, match=message):
            hub.load_state_dict_from_url(other.as_uri(), progress=False)


def test_programs_in_files_are_not_run_unless_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "model.pth"
    plugrad.save(plugrad.nn.Linear(1, 1), path, format="pt")
    with pytest.raises(Exception, match="Weights only load failed"):
        hub.load_state_dict_from_url(path.as_uri(), progress=False)
    found = hub.load_state_dict_from_url(path.as_uri(), weights_only=False)
    assert type(found) is plugrad.nn.Linear


@pytest.mark.parametrize("progress", [True, False])
def test_downloads_replace_whole_files(tmp_path: Path, progress: bool) -> None:
    url = source(tmp_path).as_uri()
    target = tmp_path / "out" / "target"
    target.parent.mkdir()
    target.write_bytes(b"old")
    with pytest.raises(RuntimeError, match="invalid hash"):
        hub.download_url_to_file(url, str(target), "ffff", progress)
    assert target.read_bytes() == b"old"
    hub.download_url_to_file(url, str(target), None, progress)
    assert plugrad.load(target)["w"].tolist() == [0, 1, 2]
    assert [entry.name for entry in target.parent.iterdir()] == ["target"]
    if os.name != "nt":
        assert target.stat().st_mode == (tmp_path / "weights.pth").stat().st_mode


@pytest.mark.parametrize("url", ["data:,x", "weights.pth", "gopher://x/y"])
def test_other_urls_are_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="url must begin with http, https, ftp or file"):
        hub.download_url_to_file(url, str(tmp_path / "x"))


@pytest.mark.parametrize("name", ["a/b", "..", "a\0b"])
def test_names_that_leave_the_folder_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not the name of a file"):
        hub.load_state_dict_from_url(source(tmp_path).as_uri(), file_name=name)
    with pytest.raises(ValueError, match="is not the name of a file"):
        hub.load_state_dict_from_url("file:///a/b/%2e%2e")


def test_the_folder_is_pytorchs_unless_it_is_set(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hub.get_dir() == str(folder)
    monkeypatch.delenv("TORCH_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert hub.get_dir() == str(tmp_path / "cache" / "torch" / "hub")
    hub.set_dir(tmp_path)
    assert hub.get_dir() == str(tmp_path)
