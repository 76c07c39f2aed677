"""The NumPy backend of plugrad: tensors in host memory."""

from __future__ import annotations
