"""plugrad-special is an optional part of the workspace, as for its users."""

from __future__ import annotations

import pytest

pytest.importorskip("scipy", reason="SciPy is not installed")
