"""What comparing plugrad with a table of PyTorch's finds, and what of it is known."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

import plugrad
from tests.torch_tables.compare import difference

# Reasons by entry and kind of finding.
Known: TypeAlias = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Finding:
    """One way in which plugrad differs from PyTorch.

    Attributes:
        kind: what differs: "value", "gradient", "out", "error" and so on.
        where: the sample.
        words: how.
    """

    kind: str
    where: str
    words: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}: {self.words}"


class Attempt:
    """What a call gives, or the exception that it raises."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.result: Any = None
        self.error: Exception | None = None
        # Random operators get the same numbers in both libraries, in each of their forms.
        # `torch.manual_seed` keeps a traceback for each missing device.
        torch.default_generator.manual_seed(1)
        plugrad.manual_seed(1)
        try:
            self.result = call()
        except Exception as error:
            self.error = error

    def differs(self, theirs: Attempt, slack: float) -> str:
        """How this differs from PyTorch's attempt; "" if it does not."""
        if self.error is not None and theirs.error is None:
            return f"{type(self.error).__name__}: {str(self.error)[:160]}"
        if self.error is None and theirs.error is not None:
            return f"no error, expected {type(theirs.error).__name__}: {str(theirs.error)[:120]}"
        return "" if theirs.error is not None else difference(self.result, theirs.result, slack)

    def lacks_dtype(self) -> bool:
        """Whether PyTorch has no kernel, or no gradient, for the dtype of this attempt."""
        return self.error is not None and bool(
            re.search(
                "not implemented for '|does not support automatic differentiation", str(self.error)
            )
        )

    def refused(self, theirs: Attempt, kind: type[BaseException], pattern: str) -> str:
        """How the error differs from the one that a table expects; "" if it does not.

        Args:
            theirs: PyTorch's attempt. Where its error is not the expected one, it counts.
            pattern: the expression that the table has for PyTorch's message.
        """
        their_words = str(theirs.error)
        if not re.search(pattern, their_words):
            pattern = re.escape(their_words)
        if not isinstance(theirs.error, kind):
            kind = type(theirs.error)
        if not isinstance(self.error, kind):
            got = type(self.error).__name__ if self.error else "no error"
            return f"{got}, expected {kind.__name__}: {their_words[:120]}"
        if not re.search(pattern.replace("torch", "plugrad"), str(self.error)):
            return f"{str(self.error)[:120]!r}, expected {pattern[:120]!r}"
        return ""


def words_of(value: Any) -> str:
    """A value in a few words, tensors by dtype and shape."""
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).partition('.')[2]}{list(value.shape)}"
    if isinstance(value, torch.nn.Module):
        return f"{type(value).__name__}(...)"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(words_of, value))}]"
    return repr(value)


def call_words(args: Iterable[Any], kwargs: Mapping[str, Any]) -> str:
    """The arguments of a call in a few words."""
    named = [f"{key}={words_of(value)}" for key, value in kwargs.items()]
    return f"({', '.join([*map(words_of, args), *named])})"


def unknown(known: Known, name: str, found: Iterable[Finding]) -> list[str]:
    """The findings of an entry whose kind is not in the table of known differences."""
    return [str(finding) for finding in found if finding.kind not in known.get(name, {})]
