"""The code of docs/ and of READMEs runs and prints what they show; their links lead somewhere."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from subprocess import run

import pytest

from tests.docs import pages, workshop

LINK = re.compile(r"\]\(([^)#:]+)\)")
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
# Pages with settings that a library reads when it is imported, so each has its own process.
APART = ("scipy.md",)
RUN_APART = """
import sys
from pathlib import Path
from tests.docs import pages
with pages.typed_into("page") as module:
    pages.run(Path(sys.argv[1]), module)
"""
ALL = [*pages.PAGES, *pages.FOLDER_READMES]


def shown(page: Path) -> str:
    return page.relative_to(pages.ROOT).as_posix()


@pytest.mark.parametrize("page", ALL, ids=shown)
def test_code_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if page.name in workshop.WORKSHOPS:
        workshop.Workshop(tmp_path).follow(page)
        return
    if pages.library_of(page) == "jax":
        pytest.importorskip("plugrad_jax")
    if page.name in APART:
        pytest.importorskip("scipy")
        done = run(
            [sys.executable, "-c", RUN_APART, str(page)],
            cwd=pages.ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return
    with pages.typed_into(f"page_{page.stem}") as module:
        pages.run(page, module)


@pytest.mark.parametrize("page", ALL, ids=shown)
def test_links_lead_to_files(page: Path) -> None:
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    for link in LINK.findall(text):
        assert (page.parent / link).exists(), link


def test_every_page_is_in_the_index() -> None:
    index = pages.ROOT / "docs" / "index.md"
    listed = set(LINK.findall(index.read_text(encoding="utf-8")))
    written = {page.relative_to(index.parent).as_posix() for page in pages.PAGES}
    assert written - {"index.md"} <= listed


def test_pages_for_a_shell_are_there() -> None:
    assert set(workshop.WORKSHOPS) <= {page.name for page in pages.PAGES}


def test_a_wrong_output_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\n```\n\n```pycon\n>>> x + 1\n3\n```\n")
    with pages.typed_into("page_wrong") as module, pytest.raises(AssertionError, match="Got:"):
        pages.run(page, module)


WORKSHOP = """
```python title="inner/module.py"
x = 1
```

```sh
cd inner
```

```pycon
>>> import module
>>> module.x
1
```

```sh
python -c "import module; print('module', module.x)"
```

```text title="output"
module ...
```

```shell
exit 1
```
"""


def test_a_page_is_followed_in_an_environment_of_its_own(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(WORKSHOP)
    steps = workshop.Workshop(tmp_path).follow(page)
    assert [step.kind for step in steps] == ["python", "sh", "pycon", "sh", "text", "shell"]


@pytest.mark.parametrize(
    ("line", "other", "message"),
    [
        (">>> module.x\n1", ">>> module.x\n2", "page.md, line 10: exit code 1"),
        ("module ...", "nothing", "page.md, line 20: the commands print\nmodule 1"),
        ("cd inner", "false", "page.md, line 6: exit code 1"),
    ],
)
def test_what_a_followed_page_gets_wrong_is_noticed(
    tmp_path: Path, line: str, other: str, message: str
) -> None:
    page = tmp_path / "page.md"
    page.write_text(WORKSHOP.replace(line, other))
    with pytest.raises(AssertionError, match=re.escape(message)):
        workshop.Workshop(tmp_path).follow(page)


def test_a_wrong_program_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("text\n\n```python\n1 / 0\n```\n")
    with pages.typed_into("page_wrong") as module, pytest.raises(ZeroDivisionError) as caught:
        pages.run(page, module)
    assert caught.traceback[-1].lineno == 3
