"""What a shell proposes for arguments and options."""

from __future__ import annotations

from plugrad.plugins import get_manager
from plugrad.plugins.loading.messages import PUBLISHED_BACKENDS
from plugrad.plugins.loading.published import OURS


def backend_names(incomplete: str) -> list[str]:
    """Installed backends; by the names of their plugins, so that none is imported."""
    names = get_manager().discovered()
    backends = [name for name in names if name in PUBLISHED_BACKENDS or name not in OURS]
    return sorted(name for name in backends if name.startswith(incomplete))


def operator_names(incomplete: str) -> list[str]:
    """Plugrad's own operators, without overloads."""
    from plugrad.dispatch.operator import all_operators

    names = {op.name for op in all_operators() if op.namespace == "plugrad"}
    return sorted(name for name in names if name.startswith(incomplete))
