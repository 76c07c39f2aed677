"""Python lists as a backend of plugrad: `device="numbers"`."""

from __future__ import annotations
