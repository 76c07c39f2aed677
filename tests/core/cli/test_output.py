"""How commands answer: in a terminal, and into a pipe."""

from __future__ import annotations

import io
from collections import Counter

import pytest

from plugrad.cli.output import print_line, print_table, width_of, wrapped

SENTENCE = "Install it with pip install plugrad-distributed, then run the program again."


def test_sentences_are_broken_at_words_and_never_at_hyphens() -> None:
    lines = wrapped(SENTENCE, 24).split("\n")
    assert " ".join(lines) == SENTENCE
    assert any("plugrad-distributed," in line for line in lines)
    assert max(map(len, lines)) <= 24


def test_what_is_broken_off_is_indented_as_its_line() -> None:
    assert wrapped("Problem:\n  one two", 8) == "Problem:\n  one\n  two"
    assert wrapped("one two", 6, indent="> ") == "> one\n> two"


def test_a_word_that_is_too_long_stays_whole() -> None:
    assert wrapped("see /a/very/long/path now", 8).split("\n") == [
        "see",
        "/a/very/long/path",
        "now",
    ]


def test_into_a_pipe_lines_are_as_long_as_they_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    print_line(SENTENCE * 5)
    print_table({"name": False, "text": True}, [("one", SENTENCE * 5), ("two", "x")])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == SENTENCE * 5
    assert [line.split()[0] for line in lines if line.strip()][-2:] == ["one", "two"]


def test_columns_says_how_wide_a_pipe_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert width_of(io.StringIO()) == 40
    print_table({"name": False, "text": True}, [("one", SENTENCE)])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 40
    assert " ".join(" ".join(lines[3:]).split()) == f"one {SENTENCE}"


@pytest.mark.parametrize("width", [12, 25, 40, 60, 80])
def test_a_table_loses_nothing_at_any_width(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    rows = [
        ("nn", "plugrad-nn 0.2.0", "loaded", "plugrad.nn, plugrad.multiprocessing, plugrad.hub"),
        ("special", "plugrad-special 0.2.0", "loaded", "plugrad.quasirandom, 138 operators"),
    ]
    print_table({"NAME": False, "DISTRIBUTION": True, "STATUS": False, "PROVIDES": True}, rows)
    printed = capsys.readouterr().out
    # Headings, in capitals, may be repeated; cells may be broken anywhere.
    shown = Counter(char for char in printed if char.islower() or char in ".,0123456789-")
    assert shown == Counter("".join("".join(row) for row in rows).replace(" ", ""))
    assert max(map(len, printed.splitlines())) <= max(width, len("plugrad.multiprocessing,") + 2)
