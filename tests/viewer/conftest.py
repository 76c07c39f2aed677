"""plugrad-viewer is an optional part of the workspace, as for its users."""

from __future__ import annotations

import pytest

pytest.importorskip("plugrad_viewer", reason="plugrad-viewer is not installed")
