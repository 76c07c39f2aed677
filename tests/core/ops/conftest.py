"""Drops the placeholders pytest makes where a family has no case for a test."""

from typing import Any


def pytest_collection_modifyitems(items: list[Any]) -> None:
    items[:] = [item for item in items if "[NOTSET]" not in item.name]
