"""Which version of the array API standard a tensor's functions follow."""

from __future__ import annotations

# Interpreted: it loads modules on demand.
from importlib import import_module
from typing import Any

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def array_namespace(api_version: str | None) -> Any:
    """`plugrad.array_api`; ValueError for a version of the standard that it does not follow."""
    if api_version is not None and api_version not in _VERSIONS:
        raise ValueError(
            f"plugrad follows the array API standard {_VERSIONS[-1]}, not {api_version!r}; "
            f"versions: {', '.join(_VERSIONS)}"
        )
    return import_module("plugrad.array_api")
