"""`plugrad.as_torch`: in this process `torch` means plugrad.

    python -m plugrad.as_torch SCRIPT args...
    python -m plugrad.as_torch -m MODULE args...
    pytest -p plugrad.as_torch

or, in a program, before anything imports torch:

>>> import plugrad.as_torch
>>> plugrad.as_torch.install()  # doctest: +SKIP
>>> import torch  # doctest: +SKIP
>>> torch.ones(2, dtype=torch.float64)  # doctest: +SKIP
tensor([1., 1.], dtype=torch.float64)
"""

from __future__ import annotations

from typing import Any

from plugrad_as_torch.finder import install, is_installed, uninstall

__all__ = ["install", "is_installed", "uninstall"]


def pytest_addhooks(pluginmanager: Any) -> None:
    """Install under `pytest -p plugrad.as_torch`, before other plugins import torch."""
    install()


def pytest_unconfigure(config: Any) -> None:
    """Uninstall: the process may continue after its tests."""
    uninstall()


if __name__ == "__main__":
    from plugrad_as_torch.running import main

    main()
