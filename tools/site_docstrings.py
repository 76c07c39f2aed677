"""Prepares docstrings for mkdocstrings: their examples become blocks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import griffe

sys.path.insert(0, str(Path(__file__).parent))

from reference import fenced  # in this folder; mkdocstrings runs this file by its path


class FencedExamples(griffe.Extension):
    """Fences the examples of every docstring that griffe reads."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
