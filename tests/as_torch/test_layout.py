"""The tables of layout.toml say nothing that has become untrue. Oracle: plugrad's own modules, in
which a name that the tables call missing must not be found."""

from __future__ import annotations

import pytest

import plugrad
from plugrad_as_torch.layout import Layout, layouts
from plugrad_as_torch.layout import _table as table
from plugrad_as_torch.lookup import find, has_module, lacks

# A row stays behind after its operator or class was added. It changes nothing, because working
# names are found first, but it misinforms its readers.
ROWS = sorted(layouts().items())
# What these have depends on whether plugrad-cuda, plugrad-onnx and plugrad-distributed are
# installed; their rows are for the case without.
OPTIONAL = ("torch.cuda.", "torch.onnx.", "torch.distributed.", "torch.nn.parallel.")
FIXED = [row for row in ROWS if not f"{row[0]}.".startswith(OPTIONAL)]


@pytest.mark.parametrize(("module", "layout"), FIXED, ids=[name for name, _ in FIXED])
def test_what_a_row_calls_missing_is_missing(module: str, layout: Layout) -> None:
    stubs = (*layout.empty, *layout.later)
    assert [name for name in stubs if not lacks(f"{module}.{name}")] == []


@pytest.mark.parametrize(("module", "layout"), ROWS, ids=[name for name, _ in ROWS])
def test_no_name_stands_twice_in_a_row(module: str, layout: Layout) -> None:
    lists = (layout.values, layout.answers, layout.nothing, layout.same, layout.empty, layout.later)
    names = [name for names in lists for name in names]
    assert sorted(names) == sorted(set(names))


def test_what_to_use_instead_is_text() -> None:
    assert {type(use) for use in table()["instead"].values()} == {str}


def test_what_to_use_instead_is_for_what_is_missing() -> None:
    # A module's note covers what it lacks, so existing modules may have one.
    names = [name for name in table()["instead"] if not has_module(name)]
    assert [name for name in names if not lacks(name)] == []


def test_hub_load_is_not_the_function_that_reads_files() -> None:
    assert lacks("torch.hub.load") == ""
    assert find("torch.hub", "load") is plugrad.hub.load
    assert find("torch.hub", "load") is not plugrad.load
