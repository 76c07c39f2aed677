"""What `tools/snippets.py` takes from the pages; `make lint` runs the checkers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import pages
from tools import snippets

PAGE = """
```python
x = 1
```

<!-- untyped: an outline -->
```python
y = left_out
```

```pycon
>>> for i in range(2):
...     x += i
>>> x + "one"
Traceback (most recent call last):
TypeError: unsupported operand
>>> x
2
```
"""


def test_a_page_is_one_module_with_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    (tmp_path / "README.md").write_text("")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(pages, "PAGES", [page])
    monkeypatch.setattr(pages, "FOLDER_READMES", [])
    ((path, code),) = snippets.modules()
    assert path == Path("page.py")
    lines = {number: line for number, line in enumerate(code.splitlines(), 1) if line}
    assert lines == {3: "x = 1", 12: "for i in range(2):", 13: "    x += i", 17: "x"}


def test_files_that_a_reader_saves_are_files() -> None:
    written = dict(snippets.modules())
    assert Path("plugrad_curves/functions.py") in written
    assert "README.py" in {path.name for path in written}
