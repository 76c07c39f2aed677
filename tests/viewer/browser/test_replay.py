"""The replay in a browser: what the keys, the buttons and the search do.

What is expected follows from the number of layers: recordings_by_hand.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.viewer.browser.conftest import Viewer
from tests.viewer.browser.recordings_by_hand import training_step

Opened = Callable[..., Viewer]
STEP = training_step(3)
EVENTS = STEP["events"]


def place(kind: str, **more: Any) -> int:
    """After which event (counted from 1) comes the first of a kind."""
    return next(
        number
        for number, event in enumerate(EVENTS, 1)
        if event["k"] == kind and more.items() <= event.items()
    )


def node(label: str) -> int:
    return next(number for number, each in enumerate(STEP["nodes"]) if each["label"] == label)


@pytest.fixture
def viewer(opened: Opened) -> Viewer:
    return opened(STEP)


def test_it_opens_with_all_its_panels_at_the_start(viewer: Viewer) -> None:
    assert viewer.page.title() == "A net of 3 blocks"
    headings = viewer.page.get_by_role("heading", level=2).all_inner_texts()
    assert {"Program", "Dispatch", "Graph", "Engine", "Time"} <= set(headings)
    assert viewer.at == 0
    assert not viewer.playing
    assert viewer.graph("cy.nodes('.box.absent').length") == 16


def test_play_goes_on_until_pause(viewer: Viewer) -> None:
    viewer.page.get_by_role("button", name="Play").click()
    viewer.wait("Number(document.querySelector('.page').dataset.at) > 3")
    viewer.page.get_by_role("button", name="Pause").click()
    viewer.settle()
    at = viewer.at
    viewer.page.wait_for_timeout(400)
    assert viewer.at == at


def test_play_stops_at_the_end(viewer: Viewer) -> None:
    viewer.seek(len(EVENTS) - 3)
    viewer.press("Space")
    viewer.wait("document.querySelector('.page').dataset.playing === 'false'")
    assert viewer.at == len(EVENTS)


def test_steps_go_both_ways(viewer: Viewer) -> None:
    viewer.press("ArrowRight", "ArrowRight", "ArrowRight")
    assert viewer.at == 3
    assert viewer.sentence == "addmm is called on MainThread."
    viewer.page.get_by_role("button", name="Step back").click()
    viewer.settle()
    assert viewer.at == 2
    viewer.page.get_by_role("button", name="Step forward").click()
    viewer.settle()
    assert viewer.sentence == "addmm is called on MainThread."


def test_a_step_back_undoes_what_the_graph_shows(viewer: Viewer) -> None:
    at = place("run", n=15)
    viewer.seek(at)
    assert viewer.graph("cy.$('.running').map(node => node.id())") == ["n15"]
    viewer.press("ArrowLeft")
    assert viewer.graph("cy.$('.running').length") == 0
    assert viewer.graph("cy.$id('n15').hasClass('ready')")


def test_shift_and_arrow_go_to_what_begins(viewer: Viewer) -> None:
    viewer.press("Shift+ArrowRight", "Shift+ArrowRight")
    assert viewer.at == [n for n, event in enumerate(EVENTS, 1) if event["k"] == "call"][1]


def test_home_and_end(viewer: Viewer) -> None:
    viewer.press("End")
    assert viewer.at == len(EVENTS)
    assert viewer.sentence == "SGD changes the parameters."
    assert viewer.graph("cy.$('.box.done').length") == 16
    viewer.press("Home")
    assert viewer.at == 0


def test_a_step_passes_over_memory(viewer: Viewer) -> None:
    at = place("memory")
    viewer.seek(at - 1)
    viewer.press("ArrowRight")
    assert viewer.at == at + 1


def test_the_ladder_shows_how_far_the_call_is(viewer: Viewer) -> None:
    viewer.seek(place("step", s=1))
    rungs = viewer.page.locator(".rung")
    assert rungs.locator(".key").all_inner_texts() == ["AutogradCPU", "ADInplaceOrView", "CPU"]
    assert viewer.page.locator(".rung[aria-current=step] .key").inner_text() == "ADInplaceOrView"


def test_the_line_of_the_call_is_marked(viewer: Viewer) -> None:
    viewer.seek(place("call"))
    line = viewer.page.locator(".line[aria-current=step]")
    assert line.inner_text().split(maxsplit=1) == ["14", "x = layer(x)"]
    viewer.seek(place("run", n=15))
    assert line.inner_text().split(maxsplit=1)[0] == "15"
    assert viewer.page.get_by_text("differentiated now").is_visible()


def test_queues_counts_and_buffers(viewer: Viewer) -> None:
    viewer.seek(place("ready"))
    assert viewer.page.get_by_test_id("queue").inner_text() == "MseLossBackward0"
    first = place("count", left=1)
    name = STEP["nodes"][EVENTS[first - 1]["n"]]["name"]
    viewer.seek(first)
    row = viewer.page.locator(".row.buffer", has_text=name)
    assert "waits for 1" in row.inner_text()
    assert row.get_by_label("1 of 2 gradients have arrived").count() == 1


def test_gradients_arrive_at_leaves(viewer: Viewer) -> None:
    viewer.seek(place("grad"))
    leaves = viewer.page.locator(".leaves")
    assert "1 of 6" in leaves.inner_text()
    assert EVENTS[place("grad") - 1]["label"] in leaves.inner_text()


def test_search_jumps_to_where_a_node_runs(viewer: Viewer) -> None:
    viewer.press("/")
    viewer.page.keyboard.type("blocks.1.linear.bias")
    viewer.press("Enter")
    number = node("blocks.1.linear.bias")
    assert viewer.at == place("run", n=number)
    assert viewer.page.get_by_role("heading", name="blocks.1.linear.bias").is_visible()
    assert viewer.graph("cy.$('.chosen').map(node => node.id())") == [f"n{number}"]
    # The letters went to the box, not to the page's keys.
    assert viewer.page.evaluate("document.documentElement.dataset.theme") == "light"


def test_details_tell_what_a_node_has_saved(viewer: Viewer) -> None:
    viewer.page.get_by_label("Find a node").fill("mseloss")
    viewer.press("Enter")
    details = viewer.page.get_by_test_id("details")
    text = details.inner_text()
    assert "mse_loss" in text
    assert re.search(r"self\s+32 × 8\s+float32\s+1 KiB", text)
    assert "1 KiB held now" in text
    viewer.press("End")
    assert "released" in details.inner_text()
    details.get_by_role("button", name="AddBackward0").click()
    assert viewer.page.get_by_role("heading", name="AddBackward0").is_visible()
    viewer.press("Escape")
    assert details.count() == 0


def test_a_click_on_a_node_shows_its_details(viewer: Viewer) -> None:
    x, y = viewer.graph("Object.values(cy.$id('n0').renderedPosition())")
    viewer.page.locator(".graph-canvas").click(position={"x": x, "y": y})
    heading = viewer.page.get_by_role("heading", name="blocks.0.linear.weight")
    heading.wait_for()
    assert heading.is_visible()


def test_a_filter_steps_through_one_module_and_makes_the_rest_pale(viewer: Viewer) -> None:
    viewer.page.get_by_label("Filter by module").select_option("blocks.1 (Block)")
    viewer.press("ArrowRight")
    assert viewer.at == place("node", n=node("blocks.1.linear.weight"))
    assert viewer.graph("cy.$('.box.dim').length") == 16 - 5
    viewer.page.get_by_label("Filter by module").select_option("all")
    viewer.settle()
    assert viewer.graph("cy.$('.dim').length") == 0


def test_modules_collapse_to_one_box_and_expand(viewer: Viewer) -> None:
    viewer.page.get_by_label("blocks.1 (Block)").uncheck()
    viewer.settle()
    assert viewer.graph("cy.nodes('.box').length") == 16 - 4
    viewer.press("End")
    assert "5 of 5 nodes have run" in viewer.graph("cy.$('.box.module').data('label')")
    viewer.page.get_by_role("button", name="Expand all modules").click()
    viewer.settle()
    viewer.page.get_by_role("button", name="Collapse modules").click()
    viewer.settle()
    assert viewer.graph("cy.nodes('.box').map(node => node.id())") == ["m1", "n15"]


def test_zoom_and_the_whole_graph(viewer: Viewer) -> None:
    before = viewer.graph("cy.zoom()")
    viewer.page.get_by_role("button", name="Zoom in").click()
    assert viewer.graph("cy.zoom()") > before
    viewer.page.get_by_role("button", name="Show the whole graph").click()
    box = viewer.graph("cy.nodes('.box').renderedBoundingBox()")
    size = viewer.graph("[cy.width(), cy.height()]")
    assert box["x1"] >= 0
    assert box["y1"] >= 0
    assert box["x2"] <= size[0]
    assert box["y2"] <= size[1]


def test_a_click_in_the_timeline_goes_there(viewer: Viewer) -> None:
    lanes = viewer.page.locator(".lane-holder")
    size = lanes.bounding_box()
    assert size is not None
    lanes.click(position={"x": size["width"] / 2, "y": 5})
    viewer.settle()
    half = EVENTS[-1]["t"] / 2
    expected = sum(event["t"] <= half for event in EVENTS)
    assert abs(viewer.at - expected) <= 2


def test_a_screen_reader_is_told_each_step(viewer: Viewer) -> None:
    viewer.press("ArrowRight", "ArrowRight", "ArrowRight")
    said = viewer.page.locator("[aria-live=polite]")
    viewer.wait("document.querySelector('[aria-live=polite]').textContent.startsWith('addmm')")
    assert said.inner_text() == "addmm is called on MainThread."


def test_what_can_be_operated_has_a_name(viewer: Viewer) -> None:
    viewer.seek(place("grad"))
    nameless = viewer.page.evaluate("""
        () => [...document.querySelectorAll("button, input, select, [role=img]")]
            .filter(it => !(it.ariaLabel || it.textContent.trim() || it.closest("label")))
            .map(it => it.outerHTML)
    """)
    assert nameless == []


def test_help_names_the_keys(viewer: Viewer) -> None:
    viewer.press("?")
    dialog = viewer.page.get_by_role("dialog")
    assert "play, pause" in dialog.inner_text()
    viewer.press("Escape")
    assert dialog.count() == 0
