"""Finds the line of the user's program that made the current call, on the compiled and the
interpreted core."""

from __future__ import annotations

import sys
import warnings
from opcode import opmap
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from types import FrameType


def caller_outside_plugrad() -> FrameType | None:
    """The innermost frame of this thread from a module outside of the core, or None.

    Compiled functions have no frames, so the interpreted core's frames are skipped, too.
    """
    frame: FrameType | None = sys._getframe(0)
    while frame is not None and _is_ours(frame):
        frame = frame.f_back
    if frame is not None and frame.f_globals.get("__name__") == "threading":
        return None  # a thread that begins in plugrad
    return frame


def _is_ours(frame: FrameType) -> bool:
    if frame.f_code.co_filename.startswith("<plugrad.codegen"):
        return True  # a plugin's operators
    name = frame.f_globals.get("__name__", "")
    return isinstance(name, str) and (name == "plugrad" or name.startswith("plugrad."))


def is_given_by_keyword(name: str) -> bool:
    """Whether the program passes an argument by that keyword in its current call of plugrad.

    It is read from the program's next instruction, so it costs nothing until it is called. It does
    not detect keywords in a `**kwargs`.
    """
    frame: Any = caller_outside_plugrad()
    if frame is None:
        return False
    code: bytes = frame.f_code.co_code
    place: int = frame.f_lasti
    # The call itself, and the interpreter's notes on it, which the place may be in.
    while place > 1 and code[place] in _CALLS:
        place -= 2
    if place < 2 or (code[place] != _KW_NAMES and code[place] != _CALL_KW):
        return False
    if code[place] == _CALL_KW:
        place -= 2
    number: int = code[place + 1]
    if place >= 2 and code[place - 2] == _EXTENDED_ARG:
        number += code[place - 1] << 8
    constants: tuple[object, ...] = frame.f_code.co_consts
    names = constants[number] if number < len(constants) else None
    return isinstance(names, tuple) and name in names


# Where the names of keywords are: CPython 3.13 has them on the stack, from the instruction before.
_CALL_KW: Final[int] = opmap.get("CALL_KW", -1)
_KW_NAMES: Final[int] = opmap.get("KW_NAMES", -1)
_CALLS: Final[set[int]] = {0, opmap["CALL"], opmap.get("PRECALL", 0)}
_EXTENDED_ARG: Final[int] = opmap["EXTENDED_ARG"]


def warn_at_caller(text: str, category: type[Warning] = UserWarning) -> None:
    """A warning that points to the user's line; once per line, as warnings are by default."""
    frame = caller_outside_plugrad()
    if frame is None:
        warnings.warn(text, category, stacklevel=1)
        return
    warnings.warn_explicit(
        text,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )
