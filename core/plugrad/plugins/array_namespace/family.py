"""A family of kernels: an object with methods that declare the functions they need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from plugrad.dispatch.backends.kernel_table import marked_kernels
from plugrad.plugins.array_namespace.namespace import Namespace

Kernel = Callable[..., Any]
_Method = TypeVar("_Method", bound=Kernel)
_NEEDS: Final = "__needs__"


def needs(*functions: str) -> Callable[[_Method], _Method]:
    """Mark a kernel of a `Family` that exists only if the namespace has these functions, in
    addition to the `REQUIRED` ones."""

    def mark(method: _Method) -> _Method:
        setattr(method, _NEEDS, functions)
        return method

    return mark


class Family:
    """Kernels on the arrays of one namespace: a table of those that follow a pattern, and methods
    that are marked with `kernel`."""

    def __init__(self, namespace: Namespace) -> None:
        self.ns = namespace
        self.xp = namespace.xp

    def table(self) -> dict[str, Kernel]:
        """Kernels that follow a pattern; marked methods come before them."""
        return {}

    def kernels(self) -> dict[str, Kernel]:
        """Operator name to kernel, for kernels that find their functions in the namespace."""
        found = self.table()
        for name, method in marked_kernels(self).items():
            if self.there(method):
                found[name] = method
        return found

    def there(self, method: Kernel) -> bool:
        """Whether the namespace has what a kernel needs."""
        return self.ns.has(*getattr(method, _NEEDS, ()))
