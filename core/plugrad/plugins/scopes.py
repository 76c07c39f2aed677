"""Blocks that change state and always restore it, and locks that a fork waits for.

KeyboardInterrupt is raised between two bytecodes: in an `__enter__` that is a Python function it
may come after the change and before `with` has registered the block. A subclass of `Scope` defines
how its state is read, changed and restored, and `Scope` does the rest. `restore` may run twice.
`Undone`, `Swapped`, `SwappedItems` and `Locked` are scopes for common cases. Pass a lock that lives
as long as its module to `hold_while_forking`, so that the child of a fork never finds it held by a
thread that does not exist there.

    >>> from plugrad.plugins.scopes import Scope
    >>> settings = {"exact": False}
    >>> class exact(Scope):
    ...     def read(self, state):
    ...         return settings["exact"]
    ...     def change(self, state):
    ...         settings["exact"] = True
    ...     def restore(self, state, before):
    ...         settings["exact"] = before
    >>> with exact():
    ...     print(settings)
    {'exact': True}
    >>> settings
    {'exact': False}
"""

from plugrad.dispatch.fork import hold_while_forking
from plugrad.dispatch.scope import Locked, Scope, Swapped, SwappedItems, Undone

__all__ = ["Locked", "Scope", "Swapped", "SwappedItems", "Undone", "hold_while_forking"]
