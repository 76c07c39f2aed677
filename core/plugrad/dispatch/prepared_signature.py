"""What `inspect.signature` shows of scopes that take effect when they are constructed."""

from __future__ import annotations

# Interpreted, because classes read an attribute of it.
import inspect
from typing import Any


class PreparedSignature:
    """As the attribute `__signature__` of a `SetAtOnce`: the parameters of its `prepare`."""

    def __get__(self, instance: object, owner: Any) -> inspect.Signature:
        found = inspect.signature(owner.prepare, eval_str=True)
        return found.replace(parameters=list(found.parameters.values())[1:])
