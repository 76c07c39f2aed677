"""What an error message must not look like."""

from __future__ import annotations

import re
import traceback

# What says something about how plugrad is made, not about what the caller did.
_WORDS = re.compile(
    r"object expected; got|plugrad\.(tensor|dispatch|graph|_generated|levels|codegen)\.\w+\.|"
    r"plugrad\.ops\.(?!plugrad\.)\w+\.|"
    r"plugrad\._\w+|could not be broadcast together|ufunc '|of ufunc|numpy\.core|numpy\._core|"
    r"_UFunc\w+|_ArrayMemoryError|cannot reshape array|Unable to allocate|array must not contain|"
    r"Axis \d|axis \d+ is out of bounds|(?<!apply to a )'NoneType' object|mypyc|__internal|"
    r"Python integer \S+ out of bounds|Python int too large|"
    r"setting an array element|inhomogeneous shape|buffer is too small|"
    r"negative dimensions are not allowed|maximum supported dimension|zero-size array to reduction|"
    r"only length-1 arrays|only integer scalar arrays|invalid literal|unhashable type|"
    r"not supported between instances of|bad operand type|has no len\(\)|"
    r"object has no attribute|float\(\) argument must be|int\(\) argument must be"
)
_CLASSES = (
    *("AttributeError", "KeyError", "OverflowError", "RecursionError", "AssertionError"),
    *("SystemError", "UnboundLocalError", "NameError", "ZeroDivisionError", "MemoryError"),
    *("StopIteration", "AxisError", "UFuncTypeError", "_UFuncNoLoopError", "LinAlgError"),
    "RuntimeWarning",  # see `calls.silence`
    *("UFuncBinaryResolutionError", "DTypePromotionError", "_ArrayMemoryError"),
)
# PyTorch says these by AssertionErrors, too.
_ASSERTED = (
    *("Padding_idx must be within", "Shape of weight does not match", "Size mismatch between"),
    *("Expected gradient function to be set", "Expected output to be a"),
)


def internal(error: BaseException, expected: BaseException | None = None) -> str | None:
    """Why an error is not one that a caller can use; None if it is.

    Args:
        expected: what PyTorch raises for the same call.
    """
    name = type(error).__name__
    if name == "AssertionError" and str(error).startswith(_ASSERTED):
        return None
    # NumPy's comes from inside, ours is what callers catch.
    if name == "LinAlgError" and type(error).__module__.startswith("plugrad."):
        return None
    if name in _CLASSES and (expected is None or type(expected).__name__ != name):
        return f"{name} from inside"
    text = str(error)
    if (match := _WORDS.search(text)) and (expected is None or match.group() not in str(expected)):
        return f"internal words {match.group()!r}"
    if not text.strip():
        return f"{name} without a message"
    return None


def place(error: BaseException) -> str:
    """Where it was raised, in the innermost frame."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "?"
    last = frames[-1]
    return f"{last.filename.rpartition('/')[2]}:{last.name}"


def says_not_implemented(error: BaseException) -> bool:
    """Whether an error says that plugrad lacks something, which PyTorch may have."""
    text = str(error).lower()
    return isinstance(error, NotImplementedError) or any(
        words in text
        for words in (
            "not implemented",
            "not supported",
            "does not support",
            "no kernel",
            "unsupported",
        )
    )
