"""Tests an installed wheel of the core: ``python tools/smoke.py compiled``.

It tests the wheels for other systems before they are published. It needs plugrad and plugrad-cpu,
but not the checkout.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import plugrad
from plugrad.tensor import base

# One file of each kind that is not a module.
DATA = (
    "py.typed",
    "__init__.pyi",
    "ops/needs.json",
    "ops/views.yaml",
    "codegen/public.pyi.in",
    "cli/new/templates/backend/pyproject.toml.tmpl",
)


def check_installation(kind: str) -> None:
    origin = str(base.__file__)
    found = "pure" if origin.endswith(".py") else "compiled"
    assert found == kind, f"the core is {found}: {origin}"
    assert plugrad.__version__ == version("plugrad"), (plugrad.__version__, version("plugrad"))
    for data in DATA:
        assert files("plugrad").joinpath(data).is_file(), data


def check_gradients() -> None:
    x = plugrad.tensor([1.0, 2.0, 3.0], dtype=plugrad.float64, requires_grad=True)
    (first,) = plugrad.autograd.grad((x**3).sum(), x, create_graph=True)
    assert first.tolist() == [3.0, 12.0, 27.0]
    first.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [6.0, 12.0, 18.0]
    with plugrad.no_grad():
        x.mul_(2)
    assert x.tolist() == [2.0, 4.0, 6.0]
    assert not (x.detach() @ x.detach()).requires_grad


def check_long_graph() -> None:
    """Fifty thousand nodes: neither backward nor freeing them may recurse."""
    x = plugrad.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(50_000):
        y = y + 0.0
    y.backward()
    assert x.grad is not None
    assert x.grad.item() == 1.0


def check_threads() -> None:
    def work() -> None:
        x = plugrad.ones(8, requires_grad=True)
        for _ in range(50):
            (x.sin() * x).sum().backward()
        done.append(x.grad is not None and x.grad.shape == (8,))

    done: list[bool] = []
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == [True] * 4


def check_errors() -> None:
    """The build's additions to mypyc's C code: PyTorch's messages, signatures, files in
    tracebacks."""
    refused = raised_by(plugrad.sin, "one")
    assert "sin(): argument 'input'" in str(refused), refused
    refused = raised_by(plugrad.matmul, plugrad.ones(2), plugrad.ones(3))
    frames = traceback.extract_tb(refused.__traceback__)
    assert all(Path(frame.filename).is_file() for frame in frames), frames
    assert "radians" in str(plugrad.sin.__doc__)


def raised_by(function: Callable[..., object], *arguments: object) -> Exception:
    try:
        function(*arguments)
    except Exception as error:
        return error
    raise AssertionError(f"{function} takes {arguments}")


def main(kind: str) -> None:
    check_installation(kind)
    check_gradients()
    check_long_graph()
    check_threads()
    check_errors()
    print(f"plugrad {plugrad.__version__}, {kind}, on Python {sys.version.split()[0]}: works")


if __name__ == "__main__":
    main(sys.argv[1])
