"""Makes `from plugrad.autograd.gradcheck import GradcheckError` work beside the function.

PyTorch has a function and a module of this name. Here the function is imported under the module's
name, and has the module's contents as attributes. So `plugrad.autograd.gradcheck` can be called,
whichever of the two a program imports first.
"""

# Interpreted: it takes its own place in `sys.modules`.

from __future__ import annotations

import importlib
import sys
from typing import Any

_kit: Any = importlib.import_module("plugrad.testing.gradcheck")
_older: Any = importlib.import_module("plugrad.testing.gradcheck.older")
_function: Any = _kit.gradcheck

for _module, _names in (
    (_kit, ("gradcheck", "gradgradcheck", "GradcheckError")),
    (_older, _older.__all__),
):
    for _name in _names:
        setattr(_function, _name, getattr(_module, _name))

sys.modules[__name__] = _function
