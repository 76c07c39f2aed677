"""RemovableHandle: what registering a hook returns."""

from __future__ import annotations

# Interpreted: handles are subclassed, and pickled by their attributes.
import itertools
import weakref
from collections import OrderedDict
from typing import Any

from plugrad.dispatch.local_state import LocalState
from plugrad.dispatch.scope import Scope


class _Numbers:
    """Counts handles. Not a number under a lock: threads share it, and a fork's child might find
    the lock held."""

    def __init__(self) -> None:
        self.count = itertools.count()

    def skip_to(self, number: int) -> None:
        """Give out no number up to this one."""
        following = next(self.count)
        self.count = itertools.count(max(following, number + 1))


_numbers = _Numbers()


class RemovableHandle(Scope):
    """Takes a hook out again: `remove()`, or leaving it as a context manager.

    Whoever registers makes the handle, then puts the hook under its `id` into `hooks_dict`, to
    which the handle refers weakly.

    Args:
        hooks_dict: an OrderedDict of hooks, in order of registration.
        extra_dict: such a dict or a list of them, from which the id is removed, too.

    >>> from collections import OrderedDict
    >>> from plugrad.graph.removable_handle import RemovableHandle
    >>> hooks = OrderedDict()
    >>> handle = RemovableHandle(hooks)
    >>> hooks[handle.id] = print
    >>> handle.remove()
    >>> len(hooks)
    0
    """

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref: Any = weakref.ref(hooks_dict)
        self.id: int = next(_numbers.count)
        self.extra_dict_ref: tuple[Any, ...] = ()
        if isinstance(extra_dict, dict):
            self.extra_dict_ref = (weakref.ref(extra_dict),)
        elif isinstance(extra_dict, list):
            self.extra_dict_ref = tuple(weakref.ref(extra) for extra in extra_dict)

    def remove(self) -> None:
        """Remove the hook; idempotent.

        >>> import plugrad
        >>> x = plugrad.ones(2, requires_grad=True)
        >>> handle = x.register_hook(lambda grad: grad * 10)
        >>> handle.remove()
        >>> (x * 2).sum().backward()
        >>> x.grad
        tensor([2., 2.])
        """
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, ...]:
        return (self.hooks_dict_ref(), self.id, tuple(extra() for extra in self.extra_dict_ref))

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        # The hooks may have been freed: then make a dead reference.
        self.hooks_dict_ref = weakref.ref(OrderedDict() if state[0] is None else state[0])
        self.id = state[1]
        _numbers.skip_to(self.id)
        self.extra_dict_ref = tuple(
            weakref.ref(OrderedDict() if extra is None else extra) for extra in state[2]
        )

    def read(self, state: LocalState) -> Any:
        return None

    def change(self, state: LocalState) -> None:
        pass

    def restore(self, state: LocalState, before: Any) -> None:
        self.remove()

    def value(self) -> Any:
        return self


def register(hooks: Any, hook: Any) -> RemovableHandle:
    """Add a hook to an OrderedDict of them."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle
