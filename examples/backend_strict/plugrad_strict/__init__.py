"""array-api-strict as a backend of plugrad: `device="strict"`."""

from __future__ import annotations
