"""Resolves the strings that hooks return in place of kernels and variants."""

from __future__ import annotations

import importlib


def resolved(source: object) -> object:
    """What ``package.module`` or ``package.module:attribute`` names; other sources as they are."""
    if isinstance(source, list | tuple):
        return [resolved(part) for part in source]
    if not isinstance(source, str):
        return source
    module, _, attribute = source.partition(":")
    found: object = importlib.import_module(module)
    for part in attribute.split(".") if attribute else ():
        found = getattr(found, part)
    return found
