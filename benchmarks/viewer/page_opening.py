"""The size of the viewer's pages, and how long Chromium takes to open them.

`python -m benchmarks.viewer.page_opening` needs Playwright and Chromium. It records training steps
of residual CNNs. The figure is the time from navigation to the first picture of the graph: the
median of several, each in its own tab. A large graph is drawn in pieces, so it also gives the time
until all of it is drawn.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

BLOCKS = {"a CNN of 100 nodes": 6, "a CNN of 10,000 nodes": 666}
TIMES = 5
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
# Milliseconds from navigation to the first picture, and until every node is in the graph.
OPENED = """async nodes => {
    const shown = () => performance.getEntriesByName("shown")[0];
    const later = () => new Promise(done => setTimeout(done, 10));
    while (!shown()) await later();
    const graph = document.querySelector(".graph-canvas")._cyreg.cy;
    while (graph.nodes(".box").length < nodes) await later();
    return [shown().startTime, performance.now()];
}"""


def record(blocks: int) -> Any:
    """A recording of a training step with this number of residual blocks."""
    import plugrad
    from plugrad import nn, viewer

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.norm1 = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)
            self.conv2, self.norm2 = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)

        def forward(self, x: Any) -> Any:
            y = self.norm1(self.conv1(x)).relu()
            return (self.norm2(self.conv2(y)) + x).relu()

    plugrad.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        *(Block() for _ in range(blocks)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 10),
    )
    optimizer = plugrad.optim.SGD(model.parameters(), lr=0.1)
    images, digits = plugrad.randn(4, 1, 8, 8), plugrad.tensor([1, 2, 3, 4])
    with viewer.record(title=f"{blocks} blocks") as recorded:
        nn.functional.cross_entropy(model(images), digits).backward()
        optimizer.step()
    return recorded


def main() -> int:
    from playwright.sync_api import sync_playwright

    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        print(f"no browser: expected one of {', '.join(BROWSERS)}")
        return 1
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            Path(folder) / "profile", executable_path=browser, headless=True, args=list(FLAGS)
        )
        for title, blocks in BLOCKS.items():
            recorded = record(blocks)
            file = Path(folder) / "page.html"
            recorded.save(str(file))
            nodes = len(recorded.data["nodes"])
            times = []
            for _ in range(TIMES):
                page = context.new_page()
                page.goto(file.as_uri())
                times.append(page.evaluate(OPENED, nodes))
                page.close()
            shown, whole = (statistics.median(each) / 1000 for each in zip(*times, strict=True))
            size = file.stat().st_size / 1e6
            print(
                f"{title} ({nodes} nodes, {len(recorded.data['events'])} events): {size:.2f} MB, "
                f"opens in {shown:.2f} s, all of it in {whole:.2f} s"
            )
        context.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
