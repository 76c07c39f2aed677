"""The demo's pictures: the training curves and the digits that the model gets wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from plugrad_nn.demo.digits import Digits, Evaluation
from plugrad_nn.demo.training import Curves

COLUMNS = 6
FEWEST_COLUMNS = 3
MOST_SHOWN = 24
DOTS_PER_INCH = 150
LINE, MARK = "#1f5fa8", "#c2410c"


def draw_curves(curves: Curves, scores: list[float], title: str, unit: str, path: Path) -> None:
    """Training loss by step on a logarithmic scale, and the scores by epoch."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    steps = np.arange(1, len(curves.losses) + 1)
    left.plot(steps, curves.losses, color=LINE, alpha=0.3, linewidth=0.8, label="each step")
    left.plot(steps, _smoothed(curves.losses), color=LINE, linewidth=1.8, label="running mean")
    left.set(title="Training loss", xlabel="step", ylabel="cross-entropy", yscale="log")
    left.legend(frameon=False)

    epochs = np.arange(1, len(scores) + 1)
    right.plot(epochs, scores, color=MARK, marker="o", markersize=3.5, linewidth=1.8)
    right.annotate(
        f"{scores[-1]:.4g} {unit}",
        (float(epochs[-1]), scores[-1]),
        textcoords="offset points",
        xytext=(0, -16 if scores[-1] >= scores[0] else 10),
        ha="right",
        color=MARK,
    )
    right.set(title=title, xlabel="epoch", ylabel=unit)
    right.xaxis.get_major_locator().set_params(integer=True)
    for axes in (left, right):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    _write(figure, path)


def draw_mistakes(evaluation: Evaluation, held_out: Digits, path: Path) -> None:
    """The wrongly classified digits, the most confident mistakes first."""
    mistakes = evaluation.mistakes
    shown = mistakes[:MOST_SHOWN]
    columns = max(FEWEST_COLUMNS, min(COLUMNS, len(shown)))
    rows = max(1, -(-len(shown) // columns))
    figure = Figure(figsize=(1.5 * columns, 0.5 + 1.8 * rows), layout="constrained")
    total = len(evaluation.labels)
    title = f"{len(mistakes)} of {total} held-out digits misclassified"
    if len(shown) < len(mistakes):
        title += f", the {len(shown)} most confident shown"
    figure.suptitle(title)
    cells = figure.subplots(rows, columns, squeeze=False).ravel()
    images = held_out.images.to("cpu").numpy()
    for axes in cells[len(shown) :]:
        axes.set_axis_off()
    for axes, index in zip(cells, shown, strict=False):
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_color("#cccccc")
        axes.imshow(images[index, 0], cmap="gray_r", vmin=0, vmax=1)
        label, predicted = evaluation.labels[index], evaluation.predicted[index]
        share = f"{100 * evaluation.confidence[index]:.0f} %"
        axes.set_title(f"{label} taken for {predicted}\n({share} sure)", fontsize=9)
    _write(figure, path)


def _smoothed(losses: list[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Exponential running mean in which early steps are not drawn towards zero."""
    decay, mean, weight = 0.95, 0.0, 0.0
    smoothed = np.empty(len(losses))
    for step, loss in enumerate(losses):
        mean = decay * mean + (1 - decay) * loss
        weight = decay * weight + (1 - decay)
        smoothed[step] = mean / weight
    return smoothed


def _write(figure: Figure, path: Path) -> None:
    # A figure that pyplot did not make looks for no display.
    figure.savefig(path, dpi=DOTS_PER_INCH, format="png")
