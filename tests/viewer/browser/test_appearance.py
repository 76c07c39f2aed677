"""How the page looks: widths, dark mode, text size; the page of a graph alone; large recordings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import plugrad
from plugrad import nn
from tests.viewer.browser.conftest import Viewer
from tests.viewer.browser.recordings_by_hand import graph_alone, training_step

Opened = Callable[..., Viewer]


def background(viewer: Viewer) -> str:
    return str(viewer.page.evaluate("getComputedStyle(document.body).backgroundColor"))


@pytest.mark.parametrize("width", [1400, 420])
def test_no_sideways_scrolling(opened: Opened, width: int) -> None:
    viewer = opened(training_step(3), width=width)
    assert viewer.overflow() <= 0
    viewer.page.get_by_label("Find a node").fill("linear.weight")
    viewer.seek(200)
    assert viewer.overflow() <= 0
    viewer.press("Escape")
    viewer.page.get_by_label("Find a node").fill("mseloss")
    viewer.press("Enter")
    assert viewer.overflow() <= 0


def test_a_phone_reaches_every_part(opened: Opened) -> None:
    viewer = opened(training_step(3), width=420, height=800)
    for name in ("Program", "Dispatch", "Graph", "Engine", "Time", "Modules"):
        heading = viewer.page.get_by_role("heading", name=name, exact=True)
        heading.scroll_into_view_if_needed()
        assert heading.is_visible()
    assert viewer.page.get_by_role("button", name="Play").is_visible()


def test_dark_mode_follows_the_system_until_it_is_switched(opened: Opened) -> None:
    dark = opened(training_step(1), scheme="dark")
    light = opened(training_step(1), scheme="light")
    assert background(dark) != background(light)
    light.press("d")
    assert background(light) == background(dark)
    light.page.get_by_role("button", name="Dark mode").click()
    assert background(light) != background(dark)


def test_the_graph_takes_the_colours_of_dark_mode(opened: Opened) -> None:
    viewer = opened(training_step(1))
    colour = "cy.nodes('.box')[0].style('color')"
    before = viewer.graph(colour)
    viewer.press("d")
    assert viewer.graph(colour) != before


def test_text_can_be_small(opened: Opened) -> None:
    viewer = opened(training_step(1))
    size = "parseFloat(getComputedStyle(document.body).fontSize)"
    before = viewer.page.evaluate(size)
    viewer.press("t")
    assert viewer.page.evaluate(size) < before


def test_a_graph_alone_has_no_transport_and_shows_every_node(opened: Opened) -> None:
    viewer = opened(graph_alone(3))
    assert viewer.page.get_by_role("button", name="Play").count() == 0
    assert viewer.graph("cy.$('.box.made').length") == 16
    viewer.page.get_by_label("Find a node").fill("blocks.2.linear.weight")
    viewer.press("Enter")
    assert "8 × 8" in viewer.page.get_by_test_id("details").inner_text()
    assert viewer.overflow() <= 0


def test_text_of_the_recording_is_shown_and_not_run(opened: Opened) -> None:
    recording = training_step(1)
    attack = "</script><img src=x onerror=\"document.title='run'\"><!--"
    recording["about"]["title"] = attack
    recording["sources"][0]["lines"][2] = attack
    recording["nodes"][0]["label"] = attack
    viewer = opened(recording)
    viewer.seek(20)
    assert viewer.page.title() == attack
    assert viewer.page.get_by_role("heading", level=1).inner_text() == attack
    assert viewer.page.locator("img").count() == 0


def test_ten_thousand_nodes_are_all_drawn_and_can_be_jumped_to(opened: Opened) -> None:
    viewer = opened(training_step(2000))
    viewer.wait("document.querySelector('.graph-canvas')._cyreg.cy.nodes('.box').length === 10001")
    viewer.page.get_by_label("Find a node").fill("blocks.1000.linear.weight")
    viewer.press("Enter")
    assert viewer.graph("cy.$('.chosen').data('label')") == "blocks.1000.linear.weight"
    viewer.page.get_by_role("button", name="Collapse modules").click()
    viewer.settle()
    assert viewer.graph("cy.nodes('.box').length") == 2


def test_a_recorded_step_replays(opened: Opened, tmp_path: Path) -> None:
    """What `plugrad.viewer.record` writes is what the page reads."""
    from plugrad import viewer as recorder

    plugrad.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    with recorder.record() as recorded:
        model(plugrad.ones(2, 4)).sum().backward()
    shown = opened(recorded.data)
    shown.press("End")
    assert "4 of 4" in shown.page.locator(".leaves").inner_text()
    assert shown.graph("cy.$('.box.running, .box.ready').length") == 0
