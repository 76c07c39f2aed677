"""What plugrad-as-torch adds to plugrad: `plugrad.as_torch`, `plugrad run`, `plugrad check`."""

from __future__ import annotations

from typing import Any

import pluggy

hookimpl = pluggy.HookimplMarker("plugrad")


@hookimpl
def plugrad_namespaces() -> dict[str, str]:
    """`plugrad.as_torch`."""
    return {"as_torch": "plugrad_as_torch.as_torch"}


@hookimpl
def plugrad_cli(app: Any) -> None:
    """Adds `plugrad run` and `plugrad check`."""
    from plugrad_as_torch.commands import add_to

    add_to(app)
