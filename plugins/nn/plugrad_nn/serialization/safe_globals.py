"""The names in a file that the user allows `load` to use, besides the names that tensors need."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

SafeGlobal = Callable[..., Any] | tuple[Callable[..., Any], str]

# Names that can run any program cannot be allowed.
BLOCKED_MODULES: Final = frozenset({"sys", "os", "posix", "nt"})

_allowed: dict[str, SafeGlobal] = {}


def add_safe_globals(safe_globals: Sequence[SafeGlobal]) -> None:
    """Allow `load` to use these classes and functions when a file names them.

    Allow only names that are harmless with any arguments, because the file chooses the arguments.

    Args:
        safe_globals: classes and functions, or pairs of one and its full name in files, such as
            ``(Config, "old_package.Config")``.

    Raises:
        TypeError: an entry is neither.

    >>> import fractions, io, plugrad
    >>> file = io.BytesIO()
    >>> plugrad.save({"ratio": fractions.Fraction(1, 3)}, file, format="pt")
    >>> _ = file.seek(0)
    >>> plugrad.serialization.add_safe_globals([fractions.Fraction])
    >>> plugrad.load(file)
    {'ratio': Fraction(1, 3)}
    >>> plugrad.serialization.clear_safe_globals()
    """
    _allowed.update({name_of(entry): entry for entry in _checked(safe_globals)})


def get_safe_globals() -> list[SafeGlobal]:
    """The names that `add_safe_globals` and `safe_globals` have allowed.

    >>> import fractions, plugrad
    >>> with plugrad.serialization.safe_globals([fractions.Fraction]):
    ...     plugrad.serialization.get_safe_globals()
    [<class 'fractions.Fraction'>]
    """
    return list(_allowed.values())


def clear_safe_globals() -> None:
    """Remove everything that `add_safe_globals` has allowed.

    >>> import fractions, plugrad
    >>> plugrad.serialization.add_safe_globals([fractions.Fraction])
    >>> plugrad.serialization.clear_safe_globals()
    >>> plugrad.serialization.get_safe_globals()
    []
    """
    _allowed.clear()


@contextlib.contextmanager
def safe_globals(safe_globals: Sequence[SafeGlobal]) -> Iterator[None]:
    """Context manager: `add_safe_globals` for the block only.

    Args:
        safe_globals: as for `add_safe_globals`; errors are the same, too.

    >>> import fractions, plugrad
    >>> with plugrad.serialization.safe_globals([fractions.Fraction]):
    ...     len(plugrad.serialization.get_safe_globals())
    1
    >>> plugrad.serialization.get_safe_globals()
    []
    """
    before = dict(_allowed)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _allowed.clear()
        _allowed.update(before)


def allowed() -> dict[str, Any]:
    """The currently allowed objects, by their names in files."""
    return {
        name: entry[0] if isinstance(entry, tuple) else entry for name, entry in _allowed.items()
    }


def name_of(entry: SafeGlobal) -> str:
    """The full name of an entry in files."""
    if isinstance(entry, tuple):
        return entry[1]
    return f"{entry.__module__}.{entry.__qualname__}"


def _checked(entries: Sequence[SafeGlobal]) -> Sequence[SafeGlobal]:
    for entry in entries:
        thing = entry[0] if isinstance(entry, tuple) and len(entry) == 2 else entry
        has_name = isinstance(entry, tuple) or hasattr(entry, "__qualname__")
        if not callable(thing) or not has_name:
            raise TypeError(
                "add_safe_globals(): expected classes, functions, or pairs of one and its name in "
                f"files, got {entry!r}"
            )
        if isinstance(entry, tuple) and not isinstance(entry[1], str):
            raise TypeError(f"add_safe_globals(): a name must be str, got {entry[1]!r}")
    return entries
