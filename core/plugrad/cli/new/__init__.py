"""`plugrad new`: packages for backends and operators, complete enough to install and to pass."""

from __future__ import annotations

from plugrad.cli.new.commands import app

__all__ = ["app"]
