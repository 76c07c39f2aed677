"""`python -m benchmarks.cuda [--smoke] [--json PATH] [names...]`: steps on a GPU against PyTorch
(if that also finds a GPU), eager and as CUDA graphs.

Without a GPU it prints the reason and measures nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import plugrad
from benchmarks.libraries import Library, libraries
from benchmarks.measure import PLUGRAD, Effort, Row, interleave
from benchmarks.report import tables, write_json

CHAIN = 100
# Steps per wait: a training loop rarely reads its loss.
STEPS = 10
# Losses of the first steps may differ by rounding: PyTorch's convolutions round to TF32.
TOLERANCE = 2e-2
Step = Callable[..., Any]


def small_ops(lib: Any) -> tuple[Step, list[Any]]:
    """A chain of 100 multiplications of 4x4 matrices, forward and backward."""
    factor = lib.full((4, 4), 0.99, device="cuda")
    x = lib.ones(4, 4, device="cuda", requires_grad=True)

    def step(x: Any) -> Any:
        y = x
        for _ in range(CHAIN):
            y = y * factor
        (gradient,) = lib.autograd.grad(y.sum(), x)
        return gradient.sum()

    return step, [x]


def _training(
    lib: Any, model: Any, inputs: tuple[int, ...], classes: int = 10
) -> tuple[Step, list[Any]]:
    # Both libraries draw the same numbers on the host.
    x = lib.randn(inputs).to("cuda")
    labels = lib.randint(0, classes, (inputs[0],)).to("cuda")
    model = model.to("cuda")
    optimizer = lib.optim.SGD(model.parameters(), lr=0.01)
    loss_of = lib.nn.CrossEntropyLoss()

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step, [x, labels]


def mlp(lib: Any) -> tuple[Step, list[Any]]:
    """Three layers of 256, a batch of 64."""
    nn = lib.nn
    layers = [nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)]
    return _training(lib, nn.Sequential(*layers), (64, 256))


def cnn(lib: Any) -> tuple[Step, list[Any]]:
    """Two convolutions with pooling, 28x28 pictures, a batch of 64."""
    nn = lib.nn
    layers = [
        *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(32 * 7 * 7, 10)),
    ]
    return _training(lib, nn.Sequential(*layers), (64, 1, 28, 28))


def transformer(lib: Any) -> tuple[Step, list[Any]]:
    """One block of width 128, four heads, a batch of 16 sequences of 64."""
    nn, width, heads = lib.nn, 128, 4

    class Block(nn.Module):  # type: ignore[misc, name-defined]  # either library's
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.head = nn.Linear(width, 10)

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            shape = (batch, length, 3, heads, width // heads)
            q, k, v = self.into(self.first(x)).reshape(shape).permute(2, 0, 3, 1, 4).unbind(0)
            mixed = nn.functional.scaled_dot_product_attention(q, k, v)
            x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
            x = x + self.down(nn.functional.gelu(self.up(self.second(x))))
            return self.head(x.mean(1))

    return _training(lib, Block(), (16, 64, width))


BENCHMARKS: dict[str, Callable[[Any], tuple[Step, list[Any]]]] = {
    "small_ops": small_ops,
    "mlp": mlp,
    "cnn": cnn,
    "transformer": transformer,
}


def captured(lib: Any, step: Step, args: list[Any]) -> Step:
    """The step as one CUDA graph, which copies its inputs to the captured addresses."""
    if lib is plugrad:
        return lib.cuda.capture(step, *args)  # type: ignore[no-any-return]
    side = lib.cuda.Stream()
    side.wait_stream(lib.cuda.current_stream())
    with lib.cuda.stream(side):
        for _ in range(3):
            step(*args)
    lib.cuda.current_stream().wait_stream(side)
    graph = lib.cuda.CUDAGraph()
    places = [arg.detach().clone().requires_grad_(arg.requires_grad) for arg in args]
    with lib.cuda.graph(graph):
        loss = step(*places)

    def replay(*given: Any) -> Any:
        for place, value in zip(places, given, strict=True):
            place.detach().copy_(value)
        graph.replay()
        return loss

    return replay


def with_gpu() -> list[Library]:
    """The libraries that find a GPU."""
    return [found for found in libraries() if found.module.cuda.is_available()]


def check(name: str, steps: dict[str, Callable[[], Any]]) -> None:
    """Check that all compute the same losses."""
    for number in range(3):
        losses = {who: float(step().detach()) for who, step in steps.items()}
        ours = losses[PLUGRAD]
        if any(abs(loss - ours) > TOLERANCE * max(abs(ours), 1e-6) for loss in losses.values()):
            raise AssertionError(f"{name}: the losses of step {number} differ: {losses}")


def repeated(lib: Any, step: Step, args: list[Any]) -> Callable[[], Any]:
    """Several steps, and one wait for the GPU."""

    def run() -> Any:
        for _ in range(STEPS):
            result = step(*args)
        lib.cuda.synchronize()
        return result

    return run


def run(names: list[str], effort: Effort) -> list[Row]:
    """Each benchmark, eager and as a CUDA graph."""
    rows = []
    for name in names:
        made = {}
        for library in with_gpu():
            library.module.manual_seed(0)
            made[library] = BENCHMARKS[name](library.module)
        about = BENCHMARKS[name].__doc__ or name
        check(name, {lib.name: lambda m=m: m[0](*m[1]) for lib, m in made.items()})  # type: ignore[misc]
        for how in ("eager", "CUDA graph"):
            steps = {}
            for library, (step, args) in made.items():
                if how != "eager":
                    step = captured(library.module, step, args)
                steps[library.name] = repeated(library.module, step, args)
            samples = interleave(steps, effort, units=STEPS)
            rows.append(Row(name, f"{about.rstrip('.')}: {how}", "us per step", samples))
        print(tables(rows[-2:]), flush=True)
    return rows


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cuda", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"any of {', '.join(BENCHMARKS)}")
    parser.add_argument("--smoke", action="store_true", help="only check that everything runs")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write all figures to this file")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(BENCHMARKS):
        parser.error(
            f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}"
        )
    try:
        plugrad.cuda.init()
    except RuntimeError as error:
        print(f"Nothing was measured: {error}")
        return
    print(f"{plugrad.cuda.get_device_name()}, {', '.join(lib.name for lib in with_gpu())}")
    rows = run(arguments.names or list(BENCHMARKS), Effort(arguments.smoke))
    if arguments.json:
        write_json(arguments.json, rows)


if __name__ == "__main__":
    main()
