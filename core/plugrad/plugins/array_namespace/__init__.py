"""Backends from namespaces of the Python Array API standard: `Backend.from_array_namespace`."""

from __future__ import annotations

from plugrad.plugins.array_namespace.backend import ArrayNamespaceBackend

__all__ = ["ArrayNamespaceBackend"]
