"""For plugins that let plugrad replace another library: the name under which objects print."""

from __future__ import annotations

from plugrad._printed_name import printed_name, set_printed_name

__all__ = ["printed_name", "set_printed_name"]
